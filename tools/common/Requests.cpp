// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Requests.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <map>

namespace pgkp::rt {

namespace {

std::vector<std::string> splitLine(const std::string &line) {
  std::vector<std::string> fields(1);
  for (char c : line) {
    if (c == ',')
      fields.emplace_back();
    else if (c != '\r' && c != ' ' && c != '\t')
      fields.back().push_back(c);
  }
  return fields;
}

template <typename T> bool parseNumber(const std::string &text, T &out) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

} // namespace

Expected<std::vector<Request>> readRequests(const std::string &path,
                                            const Module &module,
                                            const std::string &onlyEntry) {
  std::ifstream file(path);
  if (!file)
    return makeErrnoError(errno,
                          fmt::format("cannot open requests '{}'", path));

  std::string line;
  unsigned lineNumber = 0;
  std::vector<std::string> header;
  while (header.empty() && std::getline(file, line)) {
    ++lineNumber;
    if (!line.empty() && line[0] != '#')
      header = splitLine(line);
  }
  if (header.size() < 2 || header[0] != "arrival_s" || header[1] != "entry")
    return makeError(
        Code::invalidArgument,
        "{}:{}: expected a header that starts with 'arrival_s,entry'", path,
        lineNumber);
  std::map<std::string, size_t> columns;
  for (size_t i = 2; i < header.size(); ++i) {
    bool known = false;
    for (const EntryInfo &entry : module.entries())
      for (const std::string &root : entry.roots)
        known |= root == header[i];
    if (!known)
      return makeError(Code::invalidArgument,
                       "{}:{}: column '{}' is no root of an entry of '{}'",
                       path, lineNumber, header[i], module.name());
    if (!columns.emplace(header[i], i).second)
      return makeError(Code::invalidArgument, "{}:{}: column '{}' stands twice",
                       path, lineNumber, header[i]);
  }

  std::vector<Request> requests;
  double last = 0;
  while (std::getline(file, line)) {
    ++lineNumber;
    if (line.empty() || line[0] == '#')
      continue;
    const std::vector<std::string> fields = splitLine(line);
    if (fields.size() != header.size())
      return makeError(Code::invalidArgument,
                       "{}:{}: expected {} fields, found {}", path, lineNumber,
                       header.size(), fields.size());
    Request request;
    if (!parseNumber(fields[0], request.arrival) ||
        !std::isfinite(request.arrival) || request.arrival < 0)
      return makeError(
          Code::invalidArgument,
          "{}:{}: arrival_s is '{}'; expected seconds, not negative", path,
          lineNumber, fields[0]);
    if (request.arrival < last)
      return makeError(
          Code::invalidArgument,
          "{}:{}: arrival_s {} is before the request above it ({})", path,
          lineNumber, request.arrival, last);
    last = request.arrival;
    if (!onlyEntry.empty() && fields[1] != onlyEntry)
      continue;
    const auto entry = module.findEntry(fields[1]);
    if (!entry)
      return makeError(Code::invalidArgument, "{}:{}: '{}' has no entry '{}'",
                       path, lineNumber, module.name(), fields[1]);
    request.entry = *entry;
    for (const std::string &root : module.entries()[*entry].roots) {
      const auto column = columns.find(root);
      if (column == columns.end())
        return makeError(Code::invalidArgument,
                         "{}: no column '{}', a root of entry '{}'", path, root,
                         fields[1]);
      int64_t value = 0;
      if (!parseNumber(fields[column->second], value))
        return makeError(Code::invalidArgument,
                         "{}:{}: {} is '{}'; expected an integer", path,
                         lineNumber, root, fields[column->second]);
      if (value < 0 || value > kMaxExtent)
        return makeError(Code::invalidArgument,
                         "{}:{}: {} is {}; expected an extent in [0, {}]", path,
                         lineNumber, root, value, kMaxExtent);
      request.roots.push_back(value);
    }
    requests.push_back(std::move(request));
  }
  if (requests.empty())
    return makeError(
        Code::invalidArgument, "{}: no requests{}", path,
        onlyEntry.empty() ? "" : fmt::format(" for entry '{}'", onlyEntry));
  return requests;
}

} // namespace pgkp::rt
