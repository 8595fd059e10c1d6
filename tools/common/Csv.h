// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Rows of comma-separated values whose columns are found by name.
/// Quoting is not supported: no format read here has it.
#pragma once

#include "InputFile.h"

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace pgkp::rt {

/// All of the text as a number, or false.
template <typename T> bool parseNumber(std::string_view text, T &out) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

/// Thread-compatible. Fields have no blanks around them; lines that are empty
/// or begin with '#' are skipped.
class CsvReader {
public:
  /// Reads the header. The file must outlive the reader.
  static Expected<CsvReader> open(InputFile &file);

  const std::vector<std::string> &header() const { return names; }
  size_t headerLine() const { return firstLine; }
  /// Position of a column; an error that names the file where it is missing.
  Expected<size_t> column(std::string_view name) const;

  /// False at the end of the file; an error where the number of fields differs
  /// from the header's.
  Expected<bool> next();
  size_t line() const { return number; }
  std::string_view field(size_t column) const { return fields[column]; }
  /// An integer in [low, high], or an error with file, line and column.
  Expected<int64_t> integer(size_t column, int64_t low, int64_t high) const;
  /// A finite number that is not negative, likewise.
  Expected<double> seconds(size_t column) const;
  /// "<path>:<line>: <message>".
  tl::unexpected<Error> fail(std::string_view message) const;

private:
  explicit CsvReader(InputFile &file) : file(&file) {}
  bool readLine();

  InputFile *file;
  std::string text;
  std::vector<std::string_view> fields; ///< of `text`
  std::vector<std::string> names;
  size_t number = 0, firstLine = 0;
};

} // namespace pgkp::rt
