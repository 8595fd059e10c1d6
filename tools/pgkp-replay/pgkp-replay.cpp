// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// Compares policies on recorded requests, on a virtual clock with the
/// runtime's own code.

#include "ToolMain.h"
#include "Workload.h"

#include "base/File.h"
#include "engine/Replay.h"
#include "store/ProfileFile.h"

#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

using namespace pgkp::rt;

namespace {

struct Options {
  WorkloadOptions workload;
  std::string announce = "on", profile, saveProfile, json, events;
  std::vector<std::string> policies{"off", "eager", "lazy", "predictive",
                                    "oracle"};
  ReplayOptions replay;
};

/// The number at a path of the metrics, or "-" for null.
std::string cell(const nlohmann::json &metrics, const char *path,
                 const char *format) {
  const nlohmann::json value =
      metrics.value(nlohmann::json::json_pointer(path), nlohmann::json());
  if (!value.is_number())
    return "-";
  char text[64];
  std::snprintf(text, sizeof text, format, value.get<double>());
  return text;
}

std::map<std::string, TraceFormat> formats() {
  std::map<std::string, TraceFormat> result;
  for (const std::string &name : traceFormatNames())
    result.emplace(name, static_cast<TraceFormat>(result.size()));
  return result;
}

Status run(Options &options) {
  PGKP_ASSIGN(const ReplayWorkload workload, loadWorkload(options.workload));
  if (!options.profile.empty()) {
    PGKP_ASSIGN(auto profile, loadProfile(options.profile));
    options.replay.profile =
        std::make_shared<const pgkp::schema::ProfileT>(std::move(profile));
  }
  options.replay.announce = options.announce == "on";

  std::ofstream events;
  if (!options.events.empty())
    events.open(options.events);
  nlohmann::json all = nlohmann::json::array();
  options.replay.recordProfile = !options.saveProfile.empty();
  std::printf("%-12s %9s %9s %9s %9s %6s %9s %12s %9s\n", "policy", "hit_rate",
              "lost_s", "wait_s", "slow_s", "jobs", "cpu_s", "completion_s",
              "next_key");
  for (const std::string &policy : options.policies) {
    options.replay.policy = policy;
    MemorySink log;
    PGKP_ASSIGN(ReplayOutcome outcome, replay(workload, options.replay, log));
    if (events.is_open())
      for (const Event &event : log.events)
        events << toJsonLine(event) << '\n';
    if (options.replay.recordProfile)
      PGKP_TRY(saveProfile(options.saveProfile, outcome.profile));
    const auto metrics =
        nlohmann::json::parse(computeMetrics(outcome.info, log.events));
    options.replay.recordProfile = !options.saveProfile.empty();
    std::printf("%-12s %9s %9s %9s %9s %6s %9s %12s %9s\n", policy.c_str(),
                cell(metrics, "/preparation/hit_rate", "%.3f").c_str(),
                cell(metrics, "/lost/total_s", "%.4f").c_str(),
                cell(metrics, "/lost/wait_s", "%.4f").c_str(),
                cell(metrics, "/lost/slow_s", "%.4f").c_str(),
                cell(metrics, "/compile/jobs", "%.0f").c_str(),
                cell(metrics, "/compile/cpu_s", "%.2f").c_str(),
                cell(metrics, "/completion_s", "%.3f").c_str(),
                cell(metrics, "/prediction/next_accuracy", "%.4f").c_str());
    all.push_back(metrics);
  }
  if (events.is_open() && !events.flush())
    return makeError(Code::io, "cannot write '{}'", options.events);
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    if (!(file << all.dump(2) << std::endl))
      return makeError(Code::io, "cannot write '{}'", options.json);
  }
  return {};
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Compares policies on recorded requests, on a virtual clock: "
               "the runtime's own "
               "forecasts and plans, a simulated compiler and device.\n"
               "Exit status: 0 done, 1 the work failed, 2 bad usage.",
               "pgkp-replay");
  Options o;
  std::string fallback = "generic";
  std::vector<std::string> known;
  for (std::string_view name : policyNames())
    known.emplace_back(name);
  app.add_option(
         "--workload", o.workload.path,
         "Trace, plain or .gz: forwards (CSV arrival_s,entry,<roots...>), "
         "served requests, or kernel launches")
      ->required();
  app.add_option("--format", o.workload.format, "Its format")
      ->transform(CLI::CheckedTransformer(formats()))
      ->default_str("auto");
  app.add_option(
      "--bundle", o.workload.bundle,
      "Bundle with the kernels and entries; kernel traces need none");
  app.add_option("--entry", o.workload.entry, "Play only this entry");
  app.add_option("--policy", o.policies, "Policies to compare")
      ->delimiter(',')
      ->check(CLI::IsMember(known))
      ->capture_default_str();
  app.add_option("--workers", o.replay.workers, "Compile jobs at a time")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--lead", o.replay.lead,
                 "Seconds of preparation before the first arrival")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_option("--announce", o.announce,
                 "The runtime hears of requests when they arrive")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option("--fallback", fallback, "generic or none")
      ->check(CLI::IsMember({"generic", "none"}))
      ->capture_default_str();
  app.add_option("--seed", o.replay.seed, "Of the simulated compile times")
      ->capture_default_str();
  app.add_option("--stage-median,--compile-median", o.replay.compileMedian,
                 "Seconds, lognormal")
      ->check(CLI::Range(1e-6, 1e6))
      ->capture_default_str();
  app.add_option("--stage-sigma,--compile-sigma", o.replay.compileSigma,
                 "Of its logarithm")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  app.add_option("--profile", o.profile,
                 "Profile of earlier runs to start from");
  app.add_option("--save-profile", o.saveProfile,
                 "Write what the last policy's run saw, merged with --profile");
  app.add_option("--json", o.json,
                 "Write all metrics here, an array in the policies' order");
  app.add_option("--events", o.events,
                 "Write the event logs here, one JSON object a line");
  if (int code = parseCommandLine(app, argc, argv); code >= 0)
    return code;
  o.replay.fallbackGeneric = fallback == "generic";
  if (Status status = run(o); !status)
    return reportError(status.error());
  return exitOk;
}
