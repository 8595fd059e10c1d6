// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Environment variables, all from Env.def.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pgkp::rt {

struct EnvEntry {
  std::string_view name, type, fallback, text;
};

/// The rows of Env.def, in order.
std::span<const EnvEntry> envTable();

/// The variable's value; nothing if unset or empty. The name must be in
/// Env.def.
std::optional<std::string> getEnv(std::string_view name);

/// As a number; nothing if unset. A value that is not a number, or not in [low,
/// high], is reported once on standard error and ignored.
std::optional<double> getEnvNumber(std::string_view name, double low,
                                   double high);

/// True for "1", "true", "yes", "on".
bool getEnvFlag(std::string_view name);

} // namespace pgkp::rt
