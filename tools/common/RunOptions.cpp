// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RunOptions.h"

#include "planner/Planner.h"

namespace pgkp::rt {

void addRunOptions(CLI::App &app, RunOptions &options, const char *json,
                   const char *seed) {
  app.add_option("--entry", options.entry, "Play only requests of this entry");
  app.add_option("--fallback", options.fallback,
                 "generic: run it while a variant is missing; none: wait")
      ->check(CLI::IsMember({"generic", "none"}))
      ->envname("PGKP_FALLBACK")
      ->capture_default_str();
  app.add_option("--lead", options.lead,
                 "Seconds of preparation before the first arrival")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_option("--profile", options.profile,
                 "Profile of earlier runs to start from");
  app.add_option("--save-profile", options.saveProfile,
                 "Merge what this run saw into this file");
  app.add_option("--json", options.json, json);
  app.add_option("--events", options.events,
                 "Write the event log here, one JSON object a line");
  app.add_option("--seed", options.seed, seed)->capture_default_str();
}

std::string describePolicies(bool replay) {
  std::string out = "Policies:\n";
  for (const PolicyInfo &info : policies())
    if (replay || !info.replayOnly)
      out += fmt::format("  {:<17} {}\n", info.name, info.summary);
  return out;
}

} // namespace pgkp::rt
