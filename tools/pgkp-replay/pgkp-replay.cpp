// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// Compares policies on recorded workloads, on a virtual clock with the
/// runtime's own code.

#include "Report.h"
#include "RunOptions.h"
#include "ToolMain.h"
#include "Workload.h"

#include "base/File.h"
#include "base/Random.h"
#include "engine/Replay.h"
#include "metrics/EventLog.h"
#include "planner/Planner.h"
#include "schema/ContentKey.h"
#include "store/ProfileFile.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <numeric>

using namespace pgkp::rt;

namespace {

struct Options : RunOptions {
  WorkloadOptions workload;
  std::string announce = "on", stageCosts = "drawn", html, emitRequests;
  std::string slice = "0:1", profileSlice;
  std::vector<std::string> policies{"off", "eager", "lazy", "predictive",
                                    "oracle"};
  std::vector<std::string> roots, without;
  unsigned repeats = 1;
  bool profileShuffle = false;
  int64_t shuffle = -1;
  ReplayOptions replay;
};

std::map<std::string, TraceFormat> formats() {
  std::map<std::string, TraceFormat> result;
  uint8_t value = 0;
  for (const std::string &name : traceFormatNames())
    result.emplace(name, static_cast<TraceFormat>(value++));
  return result;
}

Status writeText(const std::string &path, const std::string &text) {
  return writeFileAtomically(
      path, {reinterpret_cast<const uint8_t *>(text.data()), text.size()});
}

/// Gives what the profile knows to other keys of the module, drawn at random:
/// as wrong as a profile can be that still fits.
void shuffleProfile(pgkp::schema::ProfileT &profile, const Module &module,
                    uint64_t seed) {
  std::vector<KeyId> keys;
  for (KeyId key = 0; key < module.keys().size(); ++key)
    if (!module.isGeneric(key))
      keys.push_back(key);
  SeededRandom random(seed);
  for (size_t i = keys.size(); i > 1; --i)
    std::swap(keys[i - 1], keys[random.below(i)]);
  profile.keys.resize(std::min(profile.keys.size(), keys.size()));
  for (size_t i = 0; i < profile.keys.size(); ++i) {
    auto &entry = *profile.keys[i];
    const KernelInfo &kernel = module.kernels()[module.keys()[keys[i]].kernel];
    entry.kernel = kernel.name;
    entry.kernel_hash =
        std::make_unique<pgkp::schema::Digest>(toSchema(kernel.hash));
    const auto facts = module.facts(keys[i]);
    entry.facts.assign(facts.begin(), facts.end());
    entry.generic_ns = entry.variant_ns = 0; // times are the kernel's own
  }
  for (const auto &request : profile.roots)
    for (int64_t &root : request->roots)
      root = 1 + static_cast<int64_t>(random.below(4096));
}

/// Compile times by key: as the profile measured them, or in proportion to the
/// kernel's code.
Status setStageCosts(Options &options, const Module &module) {
  auto &seconds = options.replay.compileSeconds;
  seconds.assign(module.keys().size(), 0);
  if (options.stageCosts == "measured") {
    if (!options.replay.profile)
      return makeError(Code::invalidArgument,
                       "--stage-costs=measured needs a profile");
    std::map<Digest, double> measured;
    for (const auto &key : options.replay.profile->keys)
      if (key->kernel_hash && key->compile_ms > 0)
        measured.emplace(keyDigest(toDigest(*key->kernel_hash), key->facts),
                         key->compile_ms * 1e-3);
    for (KeyId key = 0; key < seconds.size(); ++key)
      if (const auto it = measured.find(module.keys()[key].digest);
          it != measured.end())
        seconds[key] = it->second;
  } else if (options.stageCosts == "size") {
    double mean = 0;
    for (const KernelInfo &kernel : module.kernels())
      mean += static_cast<double>(kernel.bytecode.size()) /
              static_cast<double>(module.kernels().size());
    for (KeyId key = 0; key < seconds.size() && mean > 0; ++key)
      seconds[key] =
          options.replay.compileMedian *
          static_cast<double>(
              module.kernels()[module.keys()[key].kernel].bytecode.size()) /
          mean;
  }
  return {};
}

/// The profile to start from: a file's, or what a lazy run of another part of
/// the workload leaves behind.
Status setProfile(Options &options, const WorkloadSource &source,
                  const Module &module) {
  pgkp::schema::ProfileT profile;
  if (!options.profile.empty()) {
    PGKP_ASSIGN(profile, loadProfile(options.profile));
  } else if (!options.profileSlice.empty()) {
    PGKP_ASSIGN(const Slice slice, parseSlice(options.profileSlice));
    PGKP_ASSIGN(const ReplayWorkload earlier, source.part(slice));
    ReplayOptions recording = options.replay;
    recording.policy = "lazy";
    recording.lead = 0;
    recording.recordForecasts = recording.recordNextKeys = false;
    recording.recordProfile = true;
    MemorySink ignored;
    PGKP_ASSIGN(ReplayOutcome outcome, replay(earlier, recording, ignored));
    profile = std::move(outcome.profile);
  } else {
    return {};
  }
  if (options.profileShuffle)
    shuffleProfile(profile, module, options.seed);
  options.replay.profile =
      std::make_shared<const pgkp::schema::ProfileT>(std::move(profile));
  return {};
}

Status playAll(Options &options, const ReplayWorkload &workload,
               std::vector<RunReport> &runs) {
  std::unique_ptr<EventSink> events;
  if (!options.events.empty()) {
    PGKP_ASSIGN(events, openJsonLines(options.events));
  }
  for (const std::string &policy : options.policies) {
    MemorySink log;
    options.replay.policy = policy;
    PGKP_ASSIGN(ReplayOutcome outcome, replay(workload, options.replay, log));
    if (events)
      PGKP_TRY(events->write(log.events));
    if (options.replay.recordProfile)
      PGKP_TRY(saveProfile(options.saveProfile, outcome.profile));
    RunReport run{
        policy, options.replay.seed,
        nlohmann::ordered_json::parse(computeMetrics(outcome.info, log.events)),
        std::nullopt};
    if (!options.html.empty() && options.replay.seed == options.seed)
      run.series = makeSeries(log.events);
    runs.push_back(std::move(run));
  }
  return events ? events->flush() : Status();
}

Status run(Options &options) {
  PGKP_ASSIGN(const Slice slice, parseSlice(options.slice));
  PGKP_ASSIGN(const WorkloadSource source,
              WorkloadSource::open(options.workload));
  PGKP_ASSIGN(const ReplayWorkload workload, source.part(slice));
  if (!options.emitRequests.empty())
    PGKP_TRY(writeText(options.emitRequests, toCsv(workload)));
  options.replay.announce = options.announce == "on";
  options.replay.recordProfile = !options.saveProfile.empty();
  options.replay.lead = options.lead;
  options.replay.fallbackGeneric = options.fallback == "generic";
  std::vector<RunReport> runs;
  for (unsigned i = 0; i < options.repeats; ++i) {
    options.replay.seed = options.seed + i;
    // The same for all seeds, but for stage costs that the profile remembers.
    PGKP_TRY(setProfile(options, source, *workload.module));
    PGKP_TRY(setStageCosts(options, *workload.module));
    PGKP_TRY(playAll(options, workload, runs));
  }
  addGaps(runs);
  std::fputs(toTable(runs).c_str(), stdout);
  if (!options.json.empty())
    PGKP_TRY(writeText(options.json, toJson(runs)));
  if (!options.html.empty())
    PGKP_TRY(writeText(
        options.html,
        toHtml(runs, std::filesystem::path(options.workload.path).filename())));
  return {};
}

void addWorkloadOptions(CLI::App &app, Options &o) {
  app.add_option(
         "--workload", o.workload.path,
         "Trace, plain or .gz: forwards (CSV arrival_s,entry,<roots...>), "
         "served requests, kernel launches; or synthetic:NAME=VALUE,... "
         "with requests, rate, burst, burst_share, prompt_median, "
         "prompt_sigma, output_median, output_sigma, repeat, max_tokens, "
         "seed")
      ->required();
  app.add_option("--format", o.workload.format, "Its format")
      ->transform(CLI::CheckedTransformer(formats()))
      ->default_str("auto");
  app.add_option(
      "--bundle", o.workload.bundle,
      "Bundle with the kernels and entries; kernel traces need none");
  app.add_option("--slice", o.slice,
                 "Play this part of the trace: BEGIN:END, shares of its length")
      ->capture_default_str();
  app.add_option(
         "--shuffle", o.shuffle,
         "With this seed, let requests change places among the arrivals")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--emit-requests", o.emitRequests,
                 "Write the forwards as CSV for pgkp-run");
  auto *serving = app.add_option_group("Serving loop",
                                       "How served requests become forwards");
  ServingOptions &s = o.workload.serving;
  serving
      ->add_option("--max-batched-tokens", s.maxTokens,
                   "In a forward; longer "
                   "prompts run in chunks")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  serving->add_option("--max-sequences", s.maxSequences, "Running at a time")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  serving
      ->add_option("--max-context", s.maxContext,
                   "Positions of a sequence, longer ones are cut; 0: what the "
                   "entry holds")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30))
      ->capture_default_str();
  serving
      ->add_option("--iteration-base", s.base,
                   "Seconds of a forward on the best variants, plus ...")
      ->check(CLI::Range(0.0, 1e3))
      ->capture_default_str();
  serving
      ->add_option("--iteration-token", s.perToken,
                   "... per new token, plus ...")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  serving
      ->add_option("--iteration-position", s.perPosition,
                   "... per position in the caches it reads")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  serving->add_option(
      "--root", o.roots,
      "NAME=batch, seq, tokens, kv, context or a number: what a "
      "root stands for where its name does not say so");
}

void addCostOptions(CLI::App &app, Options &o) {
  ReplayOptions &r = o.replay;
  auto *costs = app.add_option_group("Costs", "What stages and kernels take");
  costs
      ->add_option("--stage-median,--compile-median", r.compileMedian,
                   "Seconds to compile a variant, lognormal, the same under "
                   "every policy")
      ->check(CLI::Range(1e-6, 1e6))
      ->capture_default_str();
  costs
      ->add_option("--stage-sigma,--compile-sigma", r.compileSigma,
                   "Of its logarithm")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  costs
      ->add_option("--stage-costs", o.stageCosts,
                   "drawn, as above; measured: by key from the profile, drawn "
                   "for others; size: in proportion to the kernel's code")
      ->check(CLI::IsMember({"drawn", "measured", "size"}))
      ->capture_default_str();
  costs->add_option("--load-median", r.loadMedian, "Seconds to load a variant")
      ->check(CLI::Range(0.0, 1e3))
      ->capture_default_str();
  costs->add_option("--load-sigma", r.loadSigma, "Of its logarithm")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  costs
      ->add_option("--slowdown-product", r.matmulSlowdown,
                   "A matrix product's time on the generic variant over its "
                   "best, where it was not measured")
      ->check(CLI::Range(0.1, 100.0))
      ->capture_default_str();
  costs->add_option("--slowdown-other", r.otherSlowdown, "Any other kernel's")
      ->check(CLI::Range(0.1, 100.0))
      ->capture_default_str();
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Compares policies on recorded workloads, on a virtual clock: "
               "the runtime's own "
               "forecasts and plans, a simulated compiler and device.\n"
               "Exit status: 0 done, 1 the work failed, 2 bad usage.",
               "pgkp-replay");
  Options o;
  addWorkloadOptions(app, o);
  app.add_option("--policy", o.policies, "Policies to compare")
      ->delimiter(',')
      ->check(CLI::IsMember(policyNames(true)))
      ->capture_default_str();
  app.add_option("--workers", o.replay.workers, "Compile jobs at a time")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--announce", o.announce,
                 "The runtime hears of requests before they run")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option("--repeats", o.repeats,
                 "With that many seeds; the table has the mean and (the worst)")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option(
      "--profile-slice", o.profileSlice,
      "Start from the profile of a lazy run of this part of the trace");
  app.add_flag("--profile-shuffle", o.profileShuffle,
               "Give what the profile knows to other keys: a wrong profile");
  app.add_option("--without", o.without,
                 "Forecast without structure, profile or history")
      ->delimiter(',')
      ->check(CLI::IsMember({"structure", "profile", "history"}));
  app.add_flag_callback(
      "--quick",
      [&o] { o.replay.recordForecasts = o.replay.recordNextKeys = false; },
      "Keep forecasts and predictions out of the log: faster, and the "
      "prediction.* metrics are null");
  addRunOptions(app, o, "Write all metrics here, an array in the runs' order",
                "Of the simulated costs");
  app.add_option("--html", o.html, "Write a self-contained page here");
  addCostOptions(app, o);
  app.footer(describePolicies(true));
  if (int code = parseCommandLine(app, argc, argv); code >= 0)
    return code;
  o.workload.entry = o.entry;
  if (o.shuffle >= 0)
    o.workload.shuffle = static_cast<uint64_t>(o.shuffle);
  for (const std::string &root : o.roots) {
    const size_t equals = root.find('=');
    if (equals == std::string::npos)
      return reportError(fmt::format("--root={}: expected NAME=MEANING", root),
                         exitUsage);
    o.workload.serving.roots[root.substr(0, equals)] = root.substr(equals + 1);
  }
  for (const std::string &part : o.without) {
    o.replay.forecaster.structure &= part != "structure";
    o.replay.forecaster.profile &= part != "profile";
    o.replay.forecaster.history &= part != "history";
  }
  if (Status status = run(o); !status)
    return reportError(status.error());
  return exitOk;
}
