// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// Executes a bundle, or a module that is first built to one, on recorded
/// requests.

#include "RunOptions.h"
#include "Runner.h"
#include "ToolMain.h"

#include "base/File.h"
#include "base/Log.h"
#include "engine/Engine.h"
#include "schema/Envelope.h"
#include "store/ProfileFile.h"

#include <cstdio>
#include <fstream>
#include <unistd.h>

using namespace pgkp::rt;

namespace {

struct Options : RunOptions {
  std::string input, requests, device = "host", policy, cacheDir, worker, dump;
  int workers = -1;
  double pace = 1;
  unsigned paired = 0;
  double pairSeconds = 1;
  bool check = false, quiet = false, noAnnounce = false;
};

/// One line on a terminal, rewritten in place; nothing elsewhere.
class Progress {
public:
  explicit Progress(bool quiet) : active(!quiet && isatty(STDERR_FILENO)) {}
  ~Progress() { clear(); }
  void show(const std::string &text) {
    if (!active)
      return;
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    dirty = true;
  }
  void clear() {
    if (dirty)
      std::fprintf(stderr, "\r\033[K");
    dirty = false;
  }

private:
  bool active, dirty = false;
};

bool isBundle(const std::vector<uint8_t> &file) {
  static constexpr std::string_view magic = "PGKPFILE";
  return file.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), file.begin());
}

Status writeText(const std::string &path, const std::string &text) {
  std::ofstream file(path);
  file << text;
  file.flush();
  if (!file)
    return makeError(Code::io, "cannot write '{}'", path);
  return {};
}

Status runAll(const Options &options, bool &mismatch) {
  Progress progress(options.quiet);
  EngineOptions engineOptions;
  engineOptions.device = options.device;
  if (!options.cacheDir.empty())
    engineOptions.cacheDir = options.cacheDir;
  if (!options.worker.empty())
    engineOptions.worker = options.worker;
  engineOptions.workers = options.workers;
  engineOptions.fallbackGeneric = options.fallback != "none";
  engineOptions.recordEvents = true;

  PGKP_ASSIGN(std::vector<uint8_t> input, readFile(options.input));
  double buildSeconds = -1;
  std::vector<uint8_t> bundle;
  if (isBundle(input)) {
    PGKP_ASSIGN(auto payload, unseal(FileKind::bundle, input, options.input));
    bundle.assign(payload.begin(), payload.end());
  } else {
    progress.show("building " + options.input);
    EngineOptions buildOptions = engineOptions;
    buildOptions.policy = "off";
    PGKP_ASSIGN(auto builder, Engine::create(buildOptions));
    PGKP_ASSIGN(bundle, builder->bundleFor(
                            options.input, std::move(input),
                            {options.device == "sim" ? "host" : options.device},
                            &buildSeconds));
  }

  if (!options.profile.empty()) {
    PGKP_ASSIGN(auto profile, loadProfile(options.profile));
    engineOptions.profile =
        std::make_shared<const pgkp::schema::ProfileT>(std::move(profile));
  }

  // Requests are checked against the module before anything is prepared.
  PGKP_ASSIGN(auto module, Module::load(bundle));
  if (!options.entry.empty() && !module->findEntry(options.entry))
    return makeError(Code::notFound, "'{}' has no entry '{}'", options.input,
                     options.entry);
  PGKP_ASSIGN(auto requests,
              readRequests(options.requests, *module, options.entry));

  RunnerOptions runnerOptions;
  runnerOptions.pace = options.pace;
  runnerOptions.lead = options.lead;
  runnerOptions.check = options.check;
  runnerOptions.seed = options.seed;
  runnerOptions.announce = !options.noAnnounce;
  runnerOptions.dump = options.dump;

  engineOptions.policy = options.policy;
  if (options.policy == "oracle") {
    // A pass on generic variants tells the future.
    progress.show("recording a pass for the oracle");
    EngineOptions recording = engineOptions;
    recording.policy = "off";
    recording.cacheDir = "none";
    PGKP_ASSIGN(auto engine, Engine::create(recording));
    PGKP_ASSIGN(auto loaded, engine->load(bundle));
    RunnerOptions recordOptions = runnerOptions;
    recordOptions.check = false;
    recordOptions.dump.clear();
    recordOptions.lead = 0;
    PGKP_ASSIGN(auto runner, Runner::create(loaded, recordOptions));
    PGKP_TRY(runner->run(requests));
    loaded->quiesce(kNsPerSecond);
    engineOptions.future = loaded->recordedUses();
    for (FutureUse &use : engineOptions.future)
      use.at += fromSeconds(options.lead);
  }

  PGKP_ASSIGN(auto engine, Engine::create(engineOptions));
  PGKP_ASSIGN(auto loaded, engine->load(std::move(bundle)));
  if (buildSeconds >= 0)
    engine->record({.t = engine->now(),
                    .kind = EventKind::buildEnd,
                    .value = buildSeconds});
  if (options.lead > 0)
    progress.show(fmt::format("preparing for {} s", options.lead));
  runnerOptions.progress = [&](size_t done, size_t total) {
    progress.show(
        fmt::format("{}: request {} of {}", options.policy, done, total));
  };
  PGKP_ASSIGN(auto runner, Runner::create(loaded, runnerOptions));
  PGKP_ASSIGN(RunnerResult result, runner->run(requests));
  if (options.paired > 0)
    PGKP_TRY(runner->runPairs(requests, options.paired, options.pairSeconds));
  progress.clear();

  if (!options.saveProfile.empty())
    PGKP_TRY(saveProfileMerged(options.saveProfile, loaded->profile()));
  runner.reset();

  RunInfo info;
  info.policy = options.policy;
  info.fallback = options.fallback;
  info.device = engine->deviceName();
  info.workers = engine->workers();
  info.leadSeconds = options.lead;
  info.pace = options.pace;
  info.seed = options.seed;
  // Jobs that still run would have no end in the log: the engine ends them
  // first.
  loaded->cancelPreparation();
  loaded->quiesce(2 * kNsPerSecond);
  const std::vector<Event> events = engine->events();
  const std::string metrics = computeMetrics(info, events);
  if (!options.events.empty()) {
    std::string text;
    for (const Event &event : events)
      text += toJsonLine(event) + "\n";
    PGKP_TRY(writeText(options.events, text));
  }
  if (options.json.empty())
    std::printf("%s\n", metrics.c_str());
  else
    PGKP_TRY(writeText(options.json, metrics + "\n"));

  if (options.check) {
    mismatch = result.mismatches > 0;
    if (mismatch)
      return makeError(
          Code::internal,
          "--check: {} outputs differ from the generic ones; first: {}",
          result.mismatches, result.firstMismatch);
    if (!options.quiet)
      std::fprintf(stderr, "check: %zu requests, no mismatch\n",
                   result.requests);
  }
  return {};
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app(
      "Executes a bundle (or a module, built first) on recorded requests while "
      "the "
      "runtime forecasts, compiles, loads and dispatches kernel variants.\n"
      "Exit status: 0 done, 1 the work failed, 2 bad usage.",
      "pgkp-run");
  Options o;
  o.policy = "predictive";
  std::vector<std::string> policies;
  for (const std::string &name : policyNames(false))
    policies.emplace_back(name);
  app.add_option("input", o.input, "Bundle (.pgkp) or MLIR module")->required();
  app.add_option("--requests", o.requests, "CSV: arrival_s,entry,<roots...>")
      ->required();
  app.add_option("--device", o.device, "host, sim or cuda")
      ->capture_default_str();
  app.add_option("--policy", o.policy, "When variants are prepared")
      ->check(CLI::IsMember(policies))
      ->envname("PGKP_POLICY")
      ->capture_default_str();
  app.add_option("--cache-dir", o.cacheDir,
                 "Store directory; none: memory only");
  app.add_option("--worker", o.worker, "Path of pgkp-worker");
  app.add_option("--workers", o.workers, "Compiler processes at most")
      ->check(CLI::Range(0, 1024));
  app.add_option("--pace", o.pace,
                 "Arrivals this many times faster; 0: back to back")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  app.add_option("--paired", o.paired,
                 "Pairs of steady times, preparation running and paused")
      ->check(CLI::Range(0, 10000));
  app.add_option("--pair-seconds", o.pairSeconds,
                 "Length of each side of a pair")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  addRunOptions(app, o, "Write the metrics here instead of standard output",
                "Of the inputs");
  app.footer(describePolicies(false));
  app.add_flag("--check", o.check,
               "Compare every output with the generic variants'");
  app.add_option("--dump", o.dump,
                 "Write inputs and outputs as NumPy files into this folder")
      ->check(CLI::ExistingDirectory);
  app.add_flag("--no-announce", o.noAnnounce,
               "Do not tell the runtime of waiting requests");
  app.add_flag("--quiet", o.quiet, "No progress");
  if (int code = parseCommandLine(app, argc, argv); code >= 0)
    return code;

  bool mismatch = false;
  if (Status status = runAll(o, mismatch); !status)
    return reportError(status.error());
  return exitOk;
}
