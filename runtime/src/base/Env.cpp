// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/Env.h"

#include "base/Log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <charconv>
#include <cstdlib>

namespace pgkp::rt {

static constexpr EnvEntry kTable[] = {
#define PGKP_ENV(name, type, fallback, text) {#name, type, fallback, text},
#include "base/Env.def"
#undef PGKP_ENV
};

std::span<const EnvEntry> envTable() { return kTable; }

static size_t rowOf(std::string_view name) {
  size_t row = 0;
  while (row < std::size(kTable) && kTable[row].name != name)
    ++row;
  assert(row < std::size(kTable) && "variable is not in Env.def");
  return row;
}

std::optional<std::string> getEnv(std::string_view name) {
  rowOf(name);
  const char *value = std::getenv(std::string(name).c_str());
  if (!value || !*value)
    return std::nullopt;
  return value;
}

std::optional<double> getEnvNumber(std::string_view name, double low,
                                   double high) {
  static std::array<std::atomic<bool>, std::size(kTable) + 1> reported{};
  const std::optional<std::string> text = getEnv(name);
  if (!text)
    return std::nullopt;
  double value = 0;
  const char *end = text->data() + text->size();
  auto [stop, failure] = std::from_chars(text->data(), end, value);
  // Written so that a NaN is refused.
  if (failure == std::errc() && stop == end && value >= low && value <= high)
    return value;
  if (!reported[rowOf(name)].exchange(true))
    log(LogLevel::warning,
        "{}: '{}' is not a number from {} to {}; it is ignored", name, *text,
        low, high);
  return std::nullopt;
}

bool getEnvFlag(std::string_view name) {
  const std::optional<std::string> text = getEnv(name);
  return text &&
         (*text == "1" || *text == "true" || *text == "yes" || *text == "on");
}

} // namespace pgkp::rt
