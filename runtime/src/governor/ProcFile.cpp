// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "governor/ProcFile.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace pgkp::rt {

std::optional<std::string> readText(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0)
      parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<double> parseNumber(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.remove_suffix(1);
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::optional<double> readNumber(const std::string &path) {
  const auto text = readText(path);
  return text ? parseNumber(*text) : std::nullopt;
}

std::optional<double> findNumber(std::string_view text, std::string_view name) {
  for (std::string_view line : split(text, '\n')) {
    const auto fields = split(line, ' ');
    if (fields.size() >= 2 && fields[0] == name)
      return parseNumber(fields[1]);
  }
  return std::nullopt;
}

} // namespace pgkp::rt
