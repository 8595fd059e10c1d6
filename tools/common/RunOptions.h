// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The options that pgkp-run and pgkp-replay share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace pgkp::rt {

struct RunOptions {
  std::string entry, fallback = "generic", profile, saveProfile, json, events;
  double lead = 0;
  uint64_t seed = 1;
};

/// Declares them. `json`: what the file gets; `seed`: what it is of.
void addRunOptions(CLI::App &app, RunOptions &options, const char *json,
                   const char *seed);

/// One line per policy: its name and what it does. `replay`: those too that
/// only a replay has.
std::string describePolicies(bool replay);

} // namespace pgkp::rt
