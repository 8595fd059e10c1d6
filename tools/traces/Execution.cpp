// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PyTorch execution traces, schemas 1.0 (members of the node) and 1.1 (chakra:
// inputs.shapes, attrs): the operators that launch work, with element types and
// shapes, in the order in which they began. They have no times.
#include "JsonStream.h"
#include "KernelTable.h"
#include "OperatorTime.h"

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>

namespace pgkp::rt {

namespace {

struct Node {
  uint64_t id = 0, parent = 0;
  std::string name, schema, backend;
  std::string shapes, types; ///< as written, without blanks
};

/// Makes nodes of the members it knows.
class Handler {
public:
  using Ch = char;
  std::string problem;
  std::vector<Node> nodes;
  bool sawNodes = false;

  bool Null() { return token("null"); }
  bool Bool(bool v) { return token(v ? "true" : "false"); }
  bool Int(int v) { return integer(v); }
  bool Uint(unsigned v) { return integer(v); }
  bool Int64(int64_t v) { return integer(v); }
  bool Uint64(uint64_t v) {
    return integer(static_cast<int64_t>(std::min<uint64_t>(v, INT64_MAX)));
  }
  bool Double(double) { return token("0"); }
  bool RawNumber(const Ch *, rapidjson::SizeType, bool) { return token("0"); }
  bool String(const Ch *text, rapidjson::SizeType length, bool) {
    const std::string_view view(text, length);
    if (capture)
      return token(view);
    if (inNode() && depth == kNode) {
      if (member == "name")
        node.name = view;
      else if (member == "op_schema")
        node.schema = view;
    } else if (inNode() && member == "attrs" && depth == kNode + 2) {
      if (inner == "name")
        attribute = view;
      else if (inner == "value" && attribute == "op_schema")
        node.schema = view;
      else if (inner == "value" && attribute == "kernel_backend")
        node.backend = view;
    }
    return true;
  }
  bool Key(const Ch *text, rapidjson::SizeType length, bool) {
    const std::string_view view(text, length);
    if (depth == 1)
      nodesNext = view == "nodes";
    else if (inNode() && depth == kNode)
      member = view;
    else if (inNode() && depth > kNode)
      inner = view;
    return true;
  }
  bool StartObject() {
    ++depth;
    if (inNode() && depth == kNode)
      node = {};
    return true;
  }
  bool EndObject(rapidjson::SizeType) {
    if (inNode() && depth == kNode && !node.name.empty())
      nodes.push_back(std::move(node));
    --depth;
    return true;
  }
  bool StartArray() {
    ++depth;
    if (depth == 2 && nodesNext)
      sawNodes = inside = true;
    if (!capture && inNode()) {
      if (depth == kNode + 1 && member == "input_shapes")
        begin(node.shapes);
      else if (depth == kNode + 1 && member == "input_types")
        begin(node.types);
      else if (depth == kNode + 2 && member == "inputs" && inner == "shapes")
        begin(node.shapes);
      else if (depth == kNode + 2 && member == "inputs" && inner == "types")
        begin(node.types);
    }
    return !capture || open();
  }
  bool EndArray(rapidjson::SizeType) {
    if (capture) {
      *capture += ']';
      comma = true;
      if (depth == captureDepth)
        capture = nullptr;
    }
    --depth;
    if (depth == 1)
      inside = false;
    return true;
  }

private:
  static constexpr unsigned kNode = 3; ///< root object, node array, node

  bool inNode() const { return inside && depth >= kNode; }
  void begin(std::string &into) {
    capture = &into;
    captureDepth = depth;
    comma = false;
  }
  bool separate() {
    if (comma)
      *capture += ',';
    comma = true;
    return true;
  }
  bool open() {
    separate();
    *capture += '[';
    comma = false;
    return true;
  }
  bool token(std::string_view text) {
    if (capture) {
      separate();
      *capture += text;
    }
    return true;
  }
  bool integer(int64_t v) {
    if (capture) {
      if (v < 0 && capture == &node.shapes) {
        problem = fmt::format("node {} '{:.80}' has the extent {}; expected "
                              "none below 0",
                              node.id, node.name, v);
        return false;
      }
      return token(fmt::to_string(v));
    }
    if (inNode() && depth == kNode) {
      if (member == "id")
        node.id = static_cast<uint64_t>(v);
      else if (member == "parent" || member == "ctrl_deps")
        node.parent = static_cast<uint64_t>(v);
    }
    return true;
  }

  unsigned depth = 0, captureDepth = 0;
  bool nodesNext = false, inside = false, comma = false;
  std::string *capture = nullptr;
  std::string member, inner, attribute;
  Node node;
};

/// An operator that computes: it reads a tensor, and its schema does not say
/// that the result only aliases an argument.
bool computes(const Node &node) {
  if (node.types.find("Tensor") == std::string::npos)
    return false;
  if (!node.backend.empty())
    return true;
  static constexpr std::array<std::string_view, 8> kNoWork = {
      "aten::empty_like",        "aten::new_empty", "aten::resize_",
      "aten::new_empty_strided", "aten::set_",      "aten::detach_",
      "aten::is_nonzero",        "aten::item"};
  if (std::find(kNoWork.begin(), kNoWork.end(), node.name) != kNoWork.end())
    return false;
  const size_t result = node.schema.find("->");
  if (result == std::string::npos)
    return false;
  const size_t alias = node.schema.find("(a", result);
  return alias == std::string::npos ||
         node.schema.find('!', alias) == alias + 2;
}

/// The integers of "[[5,6],[],[1,1024]]"; the pattern "2,0,2" of its nesting.
void splitShapes(std::string_view text, std::string &pattern,
                 std::vector<int64_t> &extents) {
  for (size_t i = 0; i < text.size();) {
    if (text[i] >= '0' && text[i] <= '9') {
      int64_t value = 0;
      for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
        value = std::min(value, kMaxExtent) * 10 + (text[i] - '0');
      extents.push_back(std::min(value, kMaxExtent));
      pattern += '#';
    } else {
      pattern += text[i++];
    }
  }
}

} // namespace

Expected<KernelTrace> readExecution(InputFile &file) {
  Handler handler;
  PGKP_TRY(parseJson(file, handler));
  if (!handler.sawNodes)
    return file.fail("no member 'nodes'");
  std::stable_sort(handler.nodes.begin(), handler.nodes.end(),
                   [](const Node &a, const Node &b) { return a.id < b.id; });

  // The innermost operators do the work; those around them only call them.
  boost::unordered_flat_map<uint64_t, size_t> byId;
  for (size_t i = 0; i < handler.nodes.size(); ++i)
    byId.try_emplace(handler.nodes[i].id, i);
  std::vector<bool> works(handler.nodes.size()), calls(handler.nodes.size());
  for (size_t i = 0; i < handler.nodes.size(); ++i) {
    works[i] = computes(handler.nodes[i]);
    if (!works[i])
      continue;
    auto parent = byId.find(handler.nodes[i].parent);
    while (parent != byId.end() && !calls[parent->second]) {
      calls[parent->second] = true;
      parent = byId.find(handler.nodes[parent->second].parent);
    }
  }

  KernelTable table;
  std::string pattern;
  std::vector<int64_t> extents;
  double at = 0;
  for (size_t i = 0; i < handler.nodes.size(); ++i) {
    const Node &node = handler.nodes[i];
    if (!works[i] || calls[i])
      continue;
    pattern.clear();
    extents.clear();
    splitShapes(node.shapes, pattern, extents);
    const double seconds = operatorSeconds(extents);
    const uint32_t name =
        table.name(fmt::format("{}:{}:{}", node.name, node.types, pattern));
    table.add(table.key(name, extents), at, seconds, 0, node.id);
    at += seconds;
  }
  if (table.size() == 0)
    return file.fail("no operator with tensors among the nodes");
  KernelTrace trace = table.finish();
  trace.measured = false;
  return trace;
}

} // namespace pgkp::rt
