// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/Replay.h"

#include "base/Random.h"

#include <cmath>
#include <cstring>
#include <queue>
#include <tuple>

namespace pgkp::rt {

namespace {

/// Box-Muller, one of the pair.
double normal(Random &random) {
  const double u = 1 - random.uniform(), v = random.uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
}

class Simulation final : public BrainActions {
public:
  Simulation(std::shared_ptr<const Module> module, const ReplayOptions &options)
      : module(module), options(options) {}

  Expected<ReplayResult> run(const std::vector<ReplayRequest> &requests,
                             std::vector<FutureUse> future);

private:
  /// Something that the simulated compiler or device finishes.
  struct Completion {
    TimeNs at;
    uint64_t order; ///< ties: first started, first done
    KeyId key;
    JobId job; ///< 0: a load
    TimeNs started;
    bool operator>(const Completion &other) const {
      return std::tie(at, order) > std::tie(other.at, other.order);
    }
  };

  bool startJob(KeyId key, JobId job) override {
    if (running >= limit)
      return false;
    ++running;
    const Digest &digest = module->keys()[key].digest;
    uint64_t state;
    std::memcpy(&state, digest.bytes.data(), sizeof state);
    SeededRandom random(state ^ options.seed * 0x9e3779b97f4a7c15);
    const double seconds =
        options.compileMedian * std::exp(options.compileSigma * normal(random));
    completions.push({now + fromSeconds(seconds), order++, key, job, now});
    return true;
  }
  void startLoad(KeyId key) override {
    completions.push({now + fromSeconds(options.load), order++, key, 0, now});
    record({.t = now, .kind = EventKind::loadBegin, .key = key, .id = order});
  }
  void setJobLimit(unsigned jobs) override { limit = jobs; }
  void record(Event event) override {
    if (event.t == 0)
      event.t = now;
    events.push_back(std::move(event));
  }

  /// Lets time pass: completions and plan ticks happen in order.
  void advanceTo(TimeNs t) {
    while (true) {
      const TimeNs next = std::min(
          nextPlan, completions.empty() ? kForever : completions.top().at);
      if (next > t)
        break;
      now = std::max(now, next);
      if (!completions.empty() && completions.top().at <= now)
        complete();
      replan();
    }
    now = std::max(now, t);
  }

  void complete() {
    const Completion done = completions.top();
    completions.pop();
    if (done.job == 0) {
      record({.t = now,
              .kind = EventKind::loadEnd,
              .key = done.key,
              .id = done.order});
      brain->onLoaded(done.key, toSeconds(now - done.started), now);
      return;
    }
    --running;
    CompileResult result;
    result.id = done.job;
    result.outcome = JobOutcome::done;
    result.started = done.started;
    result.finished = now;
    result.cpuSeconds = toSeconds(now - done.started);
    brain->onJobResult(done.key, result, now);
  }

  void replan() { nextPlan = std::max(now + 1, brain->plan(now)); }

  double kernelSeconds(const KernelInfo &kernel,
                       std::span<const int64_t> extents, bool generic) const {
    const double flops =
        kernel.flops.empty()
            ? 0
            : static_cast<double>(kernel.flops.evaluate(extents).value_or(0));
    const double bytes =
        kernel.bytes.empty()
            ? 0
            : static_cast<double>(kernel.bytes.evaluate(extents).value_or(0));
    const double best = std::max(flops / options.flopsPerSecond,
                                 bytes / options.bytesPerSecond) +
                        options.overhead;
    if (!generic)
      return best;
    return best * (kernel.family.find("matmul") != std::string::npos
                       ? options.matmulSlowdown
                       : options.otherSlowdown);
  }

  void dispatch(uint32_t kernel, std::span<const int64_t> extents,
                uint64_t request);

  std::shared_ptr<const Module> module;
  const ReplayOptions &options;
  std::unique_ptr<Brain> brain;
  std::priority_queue<Completion, std::vector<Completion>, std::greater<>>
      completions;
  std::vector<Event> events;
  TimeNs now = 0, nextPlan = 0;
  uint64_t order = 1;
  uint32_t dispatches = 0;
  unsigned running = 0, limit = 0;
  bool blocks = false;
};

void Simulation::dispatch(uint32_t kernel, std::span<const int64_t> extents,
                          uint64_t request) {
  const KernelInfo &info = module->kernels()[kernel];
  const KeyId key = module->classify(kernel, extents);
  const KeyId generic = info.firstKey + static_cast<KeyId>(info.classes.size());
  const TimeNs entered = now;
  const bool wasReady = brain->stage(key) == KeyStage::ready;
  if (blocks && !brain->settled(key)) {
    brain->onDemand(key, now);
    replan();
    while (!brain->settled(key) && !completions.empty())
      advanceTo(completions.top().at);
  }
  const TimeNs waited = now - entered;
  const bool special = brain->stage(key) == KeyStage::ready,
             own = special || key == generic;
  const double seconds = kernelSeconds(info, extents, !special);
  record({.t = entered,
          .kind = EventKind::dispatch,
          .key = key,
          .ran = own ? kNoKey : generic,
          .id = request,
          .a = static_cast<int64_t>(waited > 0 ? DispatchReason::waited
                                    : special  ? DispatchReason::classMatch
                                               : DispatchReason::generic),
          .b = wasReady,
          .value = toSeconds(waited),
          .value2 = toSeconds(waited),
          .value3 = seconds});
  const bool firstMiss = !own && key != generic;
  brain->onUse(key, own ? key : generic, seconds, 0, dispatches++, now);
  if (firstMiss)
    nextPlan = std::min(nextPlan, now + 1);
  advanceTo(now + fromSeconds(seconds));
}

Expected<ReplayResult>
Simulation::run(const std::vector<ReplayRequest> &requests,
                std::vector<FutureUse> future) {
  auto policy = makePolicy(options.policy);
  if (!policy)
    return makeError(Code::invalidArgument, "no policy '{}'", options.policy);
  blocks = policy->blocksOnMiss() ||
           (!options.fallbackGeneric && options.policy != "off");
  const bool oracle = options.policy == "oracle";
  auto forecaster = oracle ? makeOracle(module, std::move(future), 0)
                           : makeForecaster(module, options.profile.get(),
                                            ForecasterOptions{}, 0);
  BrainOptions brainOptions;
  brainOptions.fallbackGeneric = options.fallbackGeneric;
  brainOptions.matmulSlowdown = options.matmulSlowdown;
  brainOptions.otherSlowdown = options.otherSlowdown;
  StageCosts costs;
  costs.compile = costs.compileCpu = options.compileMedian;
  costs.load = options.load;
  brain = std::make_unique<Brain>(
      module, std::move(forecaster), std::move(policy),
      makeFixedGovernor(options.workers), costs, brainOptions, *this, 0);
  record({.kind = EventKind::engineStart});
  replan();

  const TimeNs begin = fromSeconds(options.lead);
  const double first = requests.front().arrival;
  auto arrival = [&](size_t i) {
    return begin + fromSeconds(requests[i].arrival - first);
  };
  size_t announced = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const ReplayRequest &request = requests[i];
    advanceTo(arrival(i));
    announced = std::max(announced, i + 1);
    while (options.announce && announced < requests.size() &&
           arrival(announced) <= now) {
      brain->onAnnounce(requests[announced].entry, requests[announced].roots,
                        now, now);
      record({.t = now,
              .kind = EventKind::announce,
              .id = announced,
              .value = toSeconds(now)});
      ++announced;
      nextPlan = std::min(nextPlan, now + 1);
    }
    record({.t = now,
            .kind = EventKind::requestBegin,
            .id = i,
            .a = request.entry,
            .value = toSeconds(now - arrival(i))});
    brain->onRequest(request.entry, request.roots, now);
    for (const SiteInfo &site : module->entries()[request.entry].sites) {
      if (!site.derivable)
        continue;
      std::vector<int64_t> extents;
      for (const Expr &expr : site.extents)
        extents.push_back(expr.evaluate(request.roots).value_or(0));
      dispatch(site.kernel, extents, i);
    }
    brain->onRequestDone(now);
    record({.t = now, .kind = EventKind::requestEnd, .id = i});
  }
  record({.t = now, .kind = EventKind::engineEnd});

  ReplayResult result;
  result.info.clock = "virtual";
  result.info.policy = options.policy;
  result.info.fallback = options.fallbackGeneric ? "generic" : "none";
  result.info.device = "sim";
  result.info.workers = options.workers;
  result.info.leadSeconds = options.lead;
  result.info.seed = options.seed;
  result.events = std::move(events);
  return result;
}

} // namespace

Expected<ReplayResult> replay(std::shared_ptr<const Module> module,
                              const std::vector<ReplayRequest> &requests,
                              const ReplayOptions &options) {
  if (requests.empty())
    return makeError(Code::invalidArgument, "no requests to replay");
  std::vector<FutureUse> future;
  if (options.policy == "oracle") {
    // The uses of a pass on generic variants, which nothing delays.
    ReplayOptions recording = options;
    recording.policy = "off";
    recording.fallbackGeneric = true;
    PGKP_ASSIGN(ReplayResult pass,
                Simulation(module, recording).run(requests, {}));
    for (const Event &event : pass.events)
      if (event.kind == EventKind::dispatch)
        future.push_back({event.t, event.key});
  }
  return Simulation(module, options).run(requests, std::move(future));
}

} // namespace pgkp::rt
