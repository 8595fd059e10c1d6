// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Csv.h"

#include <algorithm>
#include <cmath>

namespace pgkp::rt {

static std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && blank(text.back()))
    text.remove_suffix(1);
  return text;
}

bool CsvReader::readLine() {
  while (file->getLine(text)) {
    ++number;
    if (trim(text).empty() || text[0] == '#')
      continue;
    fields.clear();
    std::string_view rest = text;
    for (size_t comma; (comma = rest.find(',')) != std::string_view::npos;
         rest.remove_prefix(comma + 1))
      fields.push_back(trim(rest.substr(0, comma)));
    fields.push_back(trim(rest));
    return true;
  }
  return false;
}

Expected<CsvReader> CsvReader::open(InputFile &file) {
  CsvReader reader(file);
  const bool found = reader.readLine();
  PGKP_TRY(file.status());
  if (!found)
    return makeError(Code::invalidArgument, "{}:{}: expected a header line",
                     file.path(), std::max<size_t>(reader.number, 1));
  reader.firstLine = reader.number;
  reader.names.assign(reader.fields.begin(), reader.fields.end());
  for (size_t i = 0; i < reader.names.size(); ++i)
    if (std::find(reader.names.begin(), reader.names.begin() + i,
                  reader.names[i]) != reader.names.begin() + i)
      return reader.fail(
          fmt::format("column '{}' stands twice", reader.names[i]));
  return reader;
}

Expected<size_t> CsvReader::column(std::string_view name) const {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end())
    return makeError(Code::invalidArgument, "{}:{}: no column '{}'",
                     file->path(), firstLine, name);
  return static_cast<size_t>(it - names.begin());
}

Expected<bool> CsvReader::next() {
  if (!readLine()) {
    PGKP_TRY(file->status());
    return false;
  }
  if (fields.size() != names.size())
    return fail(fmt::format("expected {} fields, found {}", names.size(),
                            fields.size()));
  return true;
}

Expected<int64_t> CsvReader::integer(size_t column, int64_t low,
                                     int64_t high) const {
  int64_t value = 0;
  if (!parseNumber(fields[column], value))
    return fail(fmt::format("{} is '{}'; expected an integer", names[column],
                            fields[column]));
  if (value < low || value > high)
    return fail(fmt::format("{} is {}; expected an integer in [{}, {}]",
                            names[column], value, low, high));
  return value;
}

Expected<double> CsvReader::seconds(size_t column) const {
  double value = 0;
  if (!parseNumber(fields[column], value) || !std::isfinite(value) || value < 0)
    return fail(fmt::format("{} is '{}'; expected a time, not negative",
                            names[column], fields[column]));
  return value;
}

tl::unexpected<Error> CsvReader::fail(std::string_view message) const {
  return makeError(Code::invalidArgument, "{}:{}: {}", file->path(), number,
                   message);
}

} // namespace pgkp::rt
