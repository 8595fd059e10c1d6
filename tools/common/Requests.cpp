// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Requests.h"
#include "Csv.h"

#include <algorithm>
#include <limits>

namespace pgkp::rt {

namespace {
/// What a column of the header is for.
enum class Use { arrival, arrivalUs, entry, root, ignored };

Expected<std::vector<Use>> columnUses(const CsvReader &csv) {
  const std::vector<std::string> &names = csv.header();
  const bool recorder =
      names.size() >= 2 && names[0] == "fwd" && names[1] == "t_us";
  if (!recorder &&
      (names.size() < 2 || names[0] != "arrival_s" || names[1] != "entry"))
    return csv.fail("expected a header that starts with 'arrival_s,entry'");
  std::vector<Use> uses;
  for (const std::string &name : names)
    uses.push_back(recorder              ? name == "t_us" ? Use::arrivalUs
                                           : name == "fwd" || name == "phase" ? Use::ignored
                                                                              : Use::root
                   : name == "arrival_s" ? Use::arrival
                   : name == "entry"     ? Use::entry
                                         : Use::root);
  return uses;
}
} // namespace

Expected<ForwardTrace> readForwards(InputFile &file) {
  PGKP_ASSIGN(CsvReader csv, CsvReader::open(file));
  PGKP_ASSIGN(const std::vector<Use> uses, columnUses(csv));
  ForwardTrace trace;
  trace.path = file.path();
  trace.headerLine = csv.headerLine();
  trace.extraColumns = uses.front() == Use::ignored;
  for (size_t i = 0; i < uses.size(); ++i)
    if (uses[i] == Use::root)
      trace.columns.push_back(csv.header()[i]);
  double last = 0;
  while (true) {
    PGKP_ASSIGN(const bool more, csv.next());
    if (!more)
      break;
    ForwardTrace::Forward forward;
    forward.line = csv.line();
    for (size_t i = 0; i < uses.size(); ++i) {
      switch (uses[i]) {
      case Use::arrival:
      case Use::arrivalUs: {
        PGKP_ASSIGN(const double value, csv.seconds(i));
        forward.arrival = uses[i] == Use::arrival ? value : value * 1e-6;
        break;
      }
      case Use::entry:
        forward.entry = csv.field(i);
        break;
      case Use::root: {
        int64_t value = 0;
        if (!parseNumber(csv.field(i), value))
          return csv.fail(fmt::format("{} is '{}'; expected an integer",
                                      csv.header()[i], csv.field(i)));
        if (value < 0 || value > kMaxExtent)
          return csv.fail(fmt::format("{} is {}; expected an extent in [0, {}]",
                                      csv.header()[i], value, kMaxExtent));
        forward.values.push_back(value);
        break;
      }
      case Use::ignored:
        break;
      }
    }
    if (forward.arrival < last)
      return csv.fail(
          fmt::format("arrival_s {} is before the request above it ({})",
                      forward.arrival, last));
    last = forward.arrival;
    trace.forwards.push_back(std::move(forward));
  }
  return trace;
}

static bool isRoot(const Module &module, const std::string &name) {
  return std::any_of(module.entries().begin(), module.entries().end(),
                     [&](const EntryInfo &entry) {
                       return std::find(entry.roots.begin(), entry.roots.end(),
                                        name) != entry.roots.end();
                     });
}

Expected<std::vector<Request>> bindForwards(const ForwardTrace &trace,
                                            const Module &module,
                                            const std::string &onlyEntry) {
  constexpr size_t kMissing = std::numeric_limits<size_t>::max();
  if (!trace.extraColumns)
    for (const std::string &name : trace.columns)
      if (!isRoot(module, name))
        return makeError(Code::invalidArgument,
                         "{}:{}: column '{}' is no root of an entry of '{}'",
                         trace.path, trace.headerLine, name, module.name());
  // Where each entry's roots stand.
  std::vector<std::vector<size_t>> columns;
  for (const EntryInfo &entry : module.entries()) {
    columns.emplace_back();
    for (const std::string &root : entry.roots) {
      const auto it =
          std::find(trace.columns.begin(), trace.columns.end(), root);
      columns.back().push_back(
          it == trace.columns.end()
              ? kMissing
              : static_cast<size_t>(it - trace.columns.begin()));
    }
  }

  std::vector<Request> requests;
  for (const ForwardTrace::Forward &forward : trace.forwards) {
    std::string name = forward.entry.empty() ? onlyEntry : forward.entry;
    if (name.empty() && module.entries().size() == 1)
      name = module.entries()[0].name;
    if (!onlyEntry.empty() && name != onlyEntry)
      continue;
    const auto entry = module.findEntry(name);
    if (!entry)
      return makeError(Code::invalidArgument, "{}:{}: '{}' has no entry '{}'",
                       trace.path, forward.line, module.name(), name);
    Request request{forward.arrival, *entry, {}};
    for (size_t i = 0; i < columns[*entry].size(); ++i) {
      if (columns[*entry][i] == kMissing)
        return makeError(Code::invalidArgument,
                         "{}: no column '{}', a root of entry '{}'", trace.path,
                         module.entries()[*entry].roots[i], name);
      request.roots.push_back(forward.values[columns[*entry][i]]);
    }
    requests.push_back(std::move(request));
  }
  if (requests.empty())
    return makeError(
        Code::invalidArgument, "{}: no requests{}", trace.path,
        onlyEntry.empty() ? "" : fmt::format(" for entry '{}'", onlyEntry));
  return requests;
}

Expected<std::vector<Request>> readRequests(const std::string &path,
                                            const Module &module,
                                            const std::string &onlyEntry) {
  auto file = InputFile::open(path);
  if (!file)
    return makeError(file.error().code, "requests: {}", file.error().message);
  PGKP_ASSIGN(const ForwardTrace trace, readForwards(*file));
  return bindForwards(trace, module, onlyEntry);
}

} // namespace pgkp::rt
