// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The operator recorder's CSV: t_us,fwd,op,dtype,shapes, shapes as 1x374x64s
// joined by ';' (s: not contiguous). Key: operator, element type and shapes.
#include "Csv.h"
#include "KernelTable.h"
#include "OperatorTime.h"

namespace pgkp::rt {

/// One shape, "8x64s": its rank and flag to `pattern`, its extents to
/// `extents`. False: it is none.
static bool parseShape(std::string_view text, std::string &pattern,
                       std::vector<int64_t> &extents) {
  const bool strided = text.ends_with('s');
  if (strided)
    text.remove_suffix(1);
  size_t rank = 0;
  while (!text.empty()) { // a scalar has no extents
    const size_t end = std::min(text.find('x'), text.size());
    int64_t value = 0;
    if (!parseNumber(text.substr(0, end), value) || value < 0 ||
        value > kMaxExtent || end + 1 == text.size())
      return false;
    extents.push_back(value);
    ++rank;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  pattern += fmt::format("{}{}", rank, strided ? "s" : "");
  return true;
}

/// "8x64s;64" is the pattern "2s;1" and the extents 8, 64, 64.
static bool parseShapes(std::string_view text, std::string &pattern,
                        std::vector<int64_t> &extents) {
  while (true) {
    const size_t end = text.find(';');
    if (!parseShape(text.substr(0, end), pattern, extents))
      return false;
    if (end == std::string_view::npos)
      return true;
    pattern += ';';
    text.remove_prefix(end + 1);
  }
}

Expected<KernelTrace> readOperators(InputFile &file) {
  PGKP_ASSIGN(CsvReader csv, CsvReader::open(file));
  PGKP_ASSIGN(const size_t time, csv.column("t_us"));
  PGKP_ASSIGN(const size_t op, csv.column("op"));
  PGKP_ASSIGN(const size_t type, csv.column("dtype"));
  PGKP_ASSIGN(const size_t shapes, csv.column("shapes"));
  KernelTable table;
  std::string pattern;
  std::vector<int64_t> extents;
  while (true) {
    PGKP_ASSIGN(const bool more, csv.next());
    if (!more)
      break;
    PGKP_ASSIGN(const double us, csv.seconds(time));
    pattern.clear();
    extents.clear();
    if (csv.field(op).empty())
      return csv.fail("op is empty; expected an operator's name");
    if (!parseShapes(csv.field(shapes), pattern, extents))
      return csv.fail(fmt::format(
          "shapes is '{}'; expected extents like 8x64s;64, none negative",
          csv.field(shapes)));
    const uint32_t name = table.name(
        fmt::format("{}:{}:{}", csv.field(op), csv.field(type), pattern));
    table.add(table.key(name, extents), us * 1e-6, operatorSeconds(extents), 0,
              table.size());
  }
  if (table.size() == 0)
    return csv.fail("expected at least one operator");
  KernelTrace trace = table.finish();
  trace.measured = false;
  return trace;
}

} // namespace pgkp::rt
