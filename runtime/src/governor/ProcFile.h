// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The text files of /proc and /sys, any of which may be missing or odd.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pgkp::rt {

/// Nothing where it cannot be read.
std::optional<std::string> readText(const std::string &path);

/// The parts between separators; empty ones are left out.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The whole text as a number, white space at its end aside.
std::optional<double> parseNumber(std::string_view text);

/// A file that holds one number.
std::optional<double> readNumber(const std::string &path);

/// Of a file of lines "name value ...", the first value of the line `name`.
std::optional<double> findNumber(std::string_view text, std::string_view name);

} // namespace pgkp::rt
