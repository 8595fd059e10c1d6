// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// Compares policies on recorded requests, on a virtual clock with the
/// runtime's own code.

#include "Requests.h"
#include "ToolMain.h"

#include "base/File.h"
#include "engine/Replay.h"
#include "schema/Envelope.h"
#include "store/ProfileFile.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace pgkp::rt;

namespace {

struct Options {
  std::string workload, bundle, announce = "on", profile, json, events;
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

Status run(Options &options) {
  PGKP_ASSIGN(auto payload, readSealed(FileKind::bundle, options.bundle));
  PGKP_ASSIGN(auto module, Module::load(std::move(payload)));
  PGKP_ASSIGN(auto recorded, readRequests(options.workload, *module));
  std::vector<ReplayRequest> requests;
  for (Request &request : recorded)
    requests.push_back(
        {request.arrival, request.entry, std::move(request.roots)});
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
  std::printf("%-12s %9s %9s %9s %9s %6s %9s %12s\n", "policy", "hit_rate",
              "lost_s", "wait_s", "slow_s", "jobs", "cpu_s", "completion_s");
  for (const std::string &policy : options.policies) {
    options.replay.policy = policy;
    PGKP_ASSIGN(ReplayResult result, replay(module, requests, options.replay));
    for (const Event &event : result.events)
      if (events.is_open())
        events << toJsonLine(event) << '\n';
    const auto metrics =
        nlohmann::json::parse(computeMetrics(result.info, result.events));
    std::printf("%-12s %9s %9s %9s %9s %6s %9s %12s\n", policy.c_str(),
                cell(metrics, "/preparation/hit_rate", "%.3f").c_str(),
                cell(metrics, "/lost/total_s", "%.4f").c_str(),
                cell(metrics, "/lost/wait_s", "%.4f").c_str(),
                cell(metrics, "/lost/slow_s", "%.4f").c_str(),
                cell(metrics, "/compile/jobs", "%.0f").c_str(),
                cell(metrics, "/compile/cpu_s", "%.2f").c_str(),
                cell(metrics, "/completion_s", "%.3f").c_str());
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
  app.add_option("--workload", o.workload, "CSV: arrival_s,entry,<roots...>")
      ->required();
  app.add_option("--bundle", o.bundle, "Bundle with the kernels and entries")
      ->required();
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
  app.add_option("--compile-median", o.replay.compileMedian,
                 "Seconds, lognormal")
      ->check(CLI::Range(1e-6, 1e6))
      ->capture_default_str();
  app.add_option("--compile-sigma", o.replay.compileSigma, "Of its logarithm")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  app.add_option("--profile", o.profile,
                 "Profile of earlier runs to start from");
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
