// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/Replay.h"

#include "base/Random.h"
#include "history/ProfileRecorder.h"
#include "schema/ContentKey.h"

#include <cmath>
#include <cstring>
#include <map>
#include <queue>
#include <set>
#include <tuple>

namespace pgkp::rt {

namespace {

/// Box-Muller, one of the pair.
double normal(Random &random) {
  const double u = 1 - random.uniform(), v = random.uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
}

/// For policies that ask nothing, where no one wants to see predictions.
class NoForecasts final : public Forecaster {
public:
  void onRequest(uint32_t, std::span<const int64_t>, TimeNs) override {}
  void onAnnounce(uint32_t, std::span<const int64_t>, TimeNs, TimeNs) override {
  }
  void onPrepareHint(KeyId, double, double, TimeNs) override {}
  void onUse(KeyId, TimeNs, uint32_t) override {}
  void onTick(TimeNs) override {}
  FirstUse forecast(KeyId, TimeNs) const override { return {}; }
  KeyId nextKey(double *, uint32_t) const override { return kNoKey; }
  void keys(std::vector<KeyId> &) const override {}
};

/// What is known of each key's costs before the run, from module, options and
/// profile alone: the same under every policy.
class KeyCosts {
public:
  KeyCosts(const Module &module, const ReplayOptions &options)
      : compile(options.compileSeconds), load(module.keys().size()),
        slowdown(module.keys().size()) {
    compile.resize(module.keys().size());
    std::map<Digest, const schema::KeyProfileT *> measured;
    if (options.profile)
      for (const auto &entry : options.profile->keys)
        if (entry && entry->kernel_hash)
          measured.emplace(
              keyDigest(toDigest(*entry->kernel_hash), entry->facts),
              entry.get());
    for (KeyId key = 0; key < slowdown.size(); ++key) {
      const KeyInfo &info = module.keys()[key];
      uint64_t state;
      std::memcpy(&state, info.digest.bytes.data(), sizeof state);
      SeededRandom random(state ^ options.seed * 0x9e3779b97f4a7c15);
      const auto draw = [&](double median, double sigma) {
        return median * std::exp(sigma * normal(random));
      };
      const double drawn = draw(options.compileMedian, options.compileSigma);
      if (!(compile[key] > 0))
        compile[key] = drawn;
      load[key] = draw(options.loadMedian, options.loadSigma);
      const bool product = module.kernels()[info.kernel].family.find(
                               "matmul") != std::string::npos;
      slowdown[key] = product ? options.matmulSlowdown : options.otherSlowdown;
      const auto it = measured.find(info.digest);
      if (it != measured.end() && it->second->generic_ns > 0 &&
          it->second->variant_ns > 0)
        slowdown[key] = it->second->generic_ns / it->second->variant_ns;
    }
  }

  std::vector<double> compile, load; ///< s
  std::vector<double> slowdown;      ///< generic time over the variant's
};

class Simulation final : public BrainActions {
public:
  Simulation(const ReplayWorkload &workload, const ReplayOptions &options,
             const KeyCosts &costs, EventSink &log)
      : workload(workload), module(*workload.module), options(options),
        costs(costs), log(log), recorder(workload.module),
        described(module.keys().size()), missed(module.keys().size()) {}

  Expected<ReplayOutcome> run(std::vector<FutureUse> future);

private:
  /// Something that the simulated compiler or device finishes.
  struct Completion {
    TimeNs at;
    uint64_t order; ///< ties: first started, first done
    KeyId key;
    JobId job;       ///< 0: a load
    uint64_t window; ///< of a load
    TimeNs started;
    bool operator>(const Completion &other) const {
      return std::tie(at, order) > std::tie(other.at, other.order);
    }
  };
  /// A kernel of a forward, with its time on the best variant.
  struct Launch {
    KeyId key, generic;
    double seconds;
  };

  bool startJob(KeyId key, JobId job) override {
    if (running >= limit)
      return false;
    ++running;
    jobStarts[job] = now;
    completions.push(
        {now + fromSeconds(costs.compile[key]), order++, key, job, 0, now});
    return true;
  }

  void cancelJob(KeyId key, JobId job) override {
    if (cancelled.insert(job).second)
      completions.push({now, order++, key, job, 0, kNever});
  }

  /// A load waits until nothing is in flight, and launches wait for the load;
  /// loads that wait together share the window.
  void startLoad(KeyId key) override {
    if (now > loadsUntil)
      ++window;
    loadsUntil =
        std::max({loadsUntil, now, deviceFree}) + fromSeconds(costs.load[key]);
    record({.t = now, .kind = EventKind::loadBegin, .key = key, .id = window});
    completions.push({loadsUntil, order++, key, 0, window, now});
  }

  void setJobLimit(unsigned jobs) override { limit = jobs; }

  void record(Event event) override {
    if (event.t == 0)
      event.t = now;
    if (event.kind == EventKind::nextKey && !options.recordNextKeys)
      return;
    batch.push_back(std::move(event));
    if (batch.size() == kBatch)
      flush();
  }
  void flush() {
    if (status)
      status = log.write(batch);
    batch.clear();
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

  void complete();
  void replan() { nextPlan = std::max(now + 1, brain->plan(now)); }
  void planSoon() { nextPlan = std::min(nextPlan, now + 1); }

  Status start(std::vector<FutureUse> future);
  void makeAllReady();
  void applyProfile(const schema::ProfileT &profile);
  void describe(KeyId key);
  double roofline(const KernelInfo &kernel,
                  std::span<const int64_t> extents) const;
  void expand(const ReplayRequest &request);
  double dispatch(KeyId key, KeyId generic, double best, uint32_t stream,
                  uint64_t request);
  void announce();
  void playRequests();
  void playLaunches();
  void finish();

  static constexpr size_t kBatch = 4096;
  static constexpr TimeNs kNever = -1; ///< the end of a cancelled job

  const ReplayWorkload &workload;
  const Module &module;
  const ReplayOptions &options;
  const KeyCosts &costs;
  EventSink &log;
  ProfileRecorder recorder;
  std::unique_ptr<Brain> brain;
  std::priority_queue<Completion, std::vector<Completion>, std::greater<>>
      completions;
  std::set<JobId> cancelled; ///< whose first end has not come
  std::set<JobId> stopped;   ///< whose second, the one of the compiler, has not
  std::map<JobId, TimeNs> jobStarts;
  std::vector<Event> batch;
  std::vector<Launch> launches;  ///< of the forward that runs
  std::vector<bool> described;   ///< by key: its best time is in the log
  std::vector<bool> missed;      ///< by key
  std::vector<uint32_t> numbers; ///< by stream: dispatches so far
  std::vector<int64_t> extents;  ///< scratch
  TimeNs now = 0, nextPlan = 0;
  TimeNs deviceFree = 0; ///< when the kernel that runs ends
  TimeNs loadsUntil = 0; ///< when the last load of the window ends
  uint64_t window = 0, order = 1;
  size_t announced = 0;
  unsigned running = 0, limit = 0;
  bool blocks = false;
  Status status;
};

void Simulation::complete() {
  const Completion done = completions.top();
  completions.pop();
  if (done.job == 0) {
    record({.t = now,
            .kind = EventKind::loadEnd,
            .key = done.key,
            .id = done.window});
    describe(done.key);
    if (costs.slowdown[done.key] > 1)
      brain->onLoaded(done.key, toSeconds(now - done.started), now);
    else
      brain->onNotWorth(done.key, now);
    return;
  }
  if (stopped.erase(done.job))
    return; // it was cancelled before
  --running;
  const TimeNs started = jobStarts[done.job];
  jobStarts.erase(done.job);
  const double seconds = toSeconds(now - started);
  if (cancelled.erase(done.job)) {
    stopped.insert(done.job);
    CompileResult result;
    result.id = done.job;
    result.outcome = JobOutcome::cancelled;
    result.started = started;
    result.finished = now;
    result.cpuSeconds = seconds;
    brain->onJobResult(done.key, result, now);
    return;
  }
  if (options.recordProfile)
    recorder.onStageTimes(done.key, seconds * 1e3, costs.load[done.key] * 1e3);
  CompileResult result;
  result.id = done.job;
  result.outcome = JobOutcome::done;
  result.started = started;
  result.finished = now;
  result.cpuSeconds = seconds;
  brain->onJobResult(done.key, result, now);
}

/// What the variant is worth, for the metrics: the simulation knows it.
void Simulation::describe(KeyId key) {
  if (described[key] || module.isGeneric(key))
    return;
  described[key] = true;
  record({.t = now,
          .kind = EventKind::tune,
          .key = key,
          .value2 = costs.slowdown[key],
          .value3 = 1});
}

double Simulation::roofline(const KernelInfo &kernel,
                            std::span<const int64_t> extents) const {
  const auto amount = [&](const Expr &expr) {
    return expr.empty()
               ? 0.0
               : static_cast<double>(expr.evaluate(extents).value_or(0));
  };
  return std::max(amount(kernel.flops) / options.flopsPerSecond,
                  amount(kernel.bytes) / options.bytesPerSecond) +
         options.overhead;
}

void Simulation::expand(const ReplayRequest &request) {
  launches.clear();
  double sum = 0;
  for (const SiteInfo &site : module.entries()[request.entry].sites) {
    if (!site.derivable)
      continue;
    extents.clear();
    for (const Expr &expr : site.extents)
      extents.push_back(expr.evaluate(request.roots).value_or(0));
    const KernelInfo &kernel = module.kernels()[site.kernel];
    const double seconds = roofline(kernel, extents);
    sum += seconds;
    launches.push_back(
        {module.classify(site.kernel, extents),
         kernel.firstKey + static_cast<KeyId>(kernel.classes.size()), seconds});
  }
  if (request.seconds > 0 && sum > 0)
    for (Launch &launch : launches)
      launch.seconds *= request.seconds / sum;
}

/// \returns what the launch took beyond its time on the best variant.
double Simulation::dispatch(KeyId key, KeyId generic, double best,
                            uint32_t stream, uint64_t request) {
  const TimeNs entered = now;
  const bool wasReady = brain->stage(key) == KeyStage::ready;
  describe(key);
  if (blocks && !brain->settled(key)) {
    brain->onDemand(key, now);
    replan();
    while (!brain->settled(key) && !completions.empty())
      advanceTo(completions.top().at);
  }
  const double waited = toSeconds(now - entered);
  advanceTo(loadsUntil); // a load holds every launch up
  const double issued = toSeconds(now - entered);
  const bool special = brain->stage(key) == KeyStage::ready;
  const bool own = special || key == generic;
  // What is compiled anyway has no slower generic variant.
  const double seconds = own ? best : best * costs.slowdown[key];
  record({.t = entered,
          .kind = EventKind::dispatch,
          .key = key,
          .ran = own ? kNoKey : generic,
          .stream = stream,
          .id = request,
          .a = static_cast<int64_t>(waited > 0 ? DispatchReason::waited
                                    : special  ? DispatchReason::classMatch
                                               : DispatchReason::generic),
          .b = wasReady,
          .value = issued,
          .value2 = waited,
          .value3 = seconds});
  if (stream >= numbers.size())
    numbers.resize(stream + 1);
  brain->onUse(key, own ? key : generic, seconds, stream, numbers[stream]++,
               now);
  if (options.recordProfile) {
    recorder.onUse(key, now);
    recorder.onKernelTimes(key, best * costs.slowdown[key] * 1e9, best * 1e9);
  }
  if (!own && !missed[key]) {
    missed[key] = true;
    planSoon();
  }
  deviceFree = now + fromSeconds(seconds);
  return issued + seconds - best;
}

/// Tells the brain of what has been announced by now.
void Simulation::announce() {
  if (!options.announce || workload.announcements.empty())
    return;
  const TimeNs begin = fromSeconds(options.lead);
  const double first = workload.requests.front().arrival;
  while (announced < workload.announcements.size()) {
    const ReplayAnnouncement &next = workload.announcements[announced];
    if (begin + fromSeconds(next.at - first) > now)
      return;
    const TimeNs when = begin + fromSeconds(next.when - first);
    brain->onAnnounce(next.entry, next.roots, std::max(now, when), now);
    record({.t = now,
            .kind = EventKind::announce,
            .id = announced,
            .value = toSeconds(when)});
    ++announced;
    planSoon();
  }
}

void Simulation::playRequests() {
  const auto &requests = workload.requests;
  const TimeNs begin = fromSeconds(options.lead);
  const double first = requests.front().arrival;
  const auto arrival = [&](size_t i) {
    return begin + fromSeconds(requests[i].arrival - first);
  };
  const bool onArrival = options.announce && workload.announcements.empty();
  size_t heard = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const ReplayRequest &request = requests[i];
    advanceTo(arrival(i));
    announce();
    for (heard = std::max(heard, i + 1);
         onArrival && heard < requests.size() && arrival(heard) <= now;
         ++heard) {
      brain->onAnnounce(requests[heard].entry, requests[heard].roots, now, now);
      record({.t = now,
              .kind = EventKind::announce,
              .id = heard,
              .value = toSeconds(now)});
      planSoon();
    }
    record({.t = now,
            .kind = EventKind::requestBegin,
            .id = i,
            .a = request.entry,
            .value = toSeconds(now - arrival(i))});
    brain->onRequest(request.entry, request.roots, now);
    if (options.recordProfile)
      recorder.onRequest(request.entry, request.roots, now);
    expand(request);
    for (const Launch &launch : launches) {
      dispatch(launch.key, launch.generic, launch.seconds, 0, i);
      advanceTo(deviceFree);
    }
    brain->onRequestDone(now);
    record({.t = now, .kind = EventKind::requestEnd, .id = i});
  }
}

/// Kernels of several streams overlap as they did when they were recorded; what
/// one of them loses, the host loses, and everything behind it is later.
void Simulation::playLaunches() {
  const TimeNs begin = fromSeconds(options.lead);
  double shift = 0;
  for (size_t i = 0; i < workload.launches.size(); ++i) {
    const ReplayLaunch &launch = workload.launches[i];
    advanceTo(begin + fromSeconds(launch.start + shift));
    const KernelInfo &kernel =
        module.kernels()[module.keys()[launch.key].kernel];
    shift += dispatch(
        launch.key, kernel.firstKey + static_cast<KeyId>(kernel.classes.size()),
        launch.seconds, launch.stream, 0);
  }
  advanceTo(deviceFree);
}

void Simulation::makeAllReady() {
  for (KeyId key = 0; key < module.keys().size(); ++key)
    if (!module.isGeneric(key) && costs.slowdown[key] > 1)
      brain->onLoaded(key, costs.load[key], 0);
}

Status Simulation::start(std::vector<FutureUse> future) {
  auto policy = makePolicy(options.policy);
  if (!policy)
    return makeError(Code::invalidArgument, "no policy '{}'", options.policy);
  policy->begin(module, options.profile.get());
  blocks = policy->blocksOnMiss() ||
           (!options.fallbackGeneric && options.policy != "off");
  std::unique_ptr<Forecaster> forecaster;
  if (!future.empty())
    forecaster = makeOracle(workload.module, std::move(future), 0);
  else if (policy->speculates() || options.recordNextKeys)
    forecaster = makeForecaster(workload.module, options.profile.get(),
                                options.forecaster, 0);
  else
    forecaster = std::make_unique<NoForecasts>();
  BrainOptions brainOptions;
  brainOptions.fallbackGeneric = options.fallbackGeneric;
  brainOptions.matmulSlowdown = options.matmulSlowdown;
  brainOptions.otherSlowdown = options.otherSlowdown;
  brainOptions.recordForecasts = options.recordForecasts;
  brain = std::make_unique<Brain>(
      workload.module, std::move(forecaster), std::move(policy),
      makeFixedGovernor(options.workers), StageCosts{}, brainOptions, *this, 0);
  if (options.profile)
    applyProfile(*options.profile);
  record({.kind = EventKind::engineStart});
  replan();
  if (options.policy == "ready")
    makeAllReady();
  return {};
}

/// What an engine takes from it, too: costs of stages, times of kernels.
void Simulation::applyProfile(const schema::ProfileT &profile) {
  std::map<Digest, const schema::KeyProfileT *> known;
  for (const auto &entry : profile.keys)
    if (entry && entry->kernel_hash)
      known.emplace(keyDigest(toDigest(*entry->kernel_hash), entry->facts),
                    entry.get());
  for (KeyId key = 0; key < module.keys().size(); ++key)
    if (const auto it = known.find(module.keys()[key].digest);
        it != known.end()) {
      brain->onKnownCosts(key, it->second->compile_ms * 1e-3,
                          it->second->load_ms * 1e-3);
      if (it->second->generic_ns > 0 && it->second->variant_ns > 0)
        brain->onMeasured(key, it->second->generic_ns * 1e-9,
                          it->second->variant_ns * 1e-9);
    }
}

void Simulation::finish() {
  // Jobs that still run are ended, as an engine's release does.
  for (; !completions.empty(); completions.pop())
    if (const Completion &left = completions.top();
        left.job != 0 && left.started != kNever && !stopped.contains(left.job))
      record({.t = now,
              .kind = EventKind::jobEnd,
              .key = left.key,
              .id = left.job,
              .a = static_cast<int64_t>(JobOutcome::cancelled),
              .value = toSeconds(now - left.started),
              .value2 = toSeconds(now - left.started)});
  record({.t = now, .kind = EventKind::engineEnd});
  flush();
}

Expected<ReplayOutcome> Simulation::run(std::vector<FutureUse> future) {
  PGKP_TRY(start(std::move(future)));
  if (workload.launches.empty())
    playRequests();
  else
    playLaunches();
  finish();
  PGKP_TRY(status);

  ReplayOutcome outcome;
  outcome.info.clock = "virtual";
  outcome.info.policy = options.policy;
  outcome.info.fallback = options.fallbackGeneric ? "generic" : "none";
  outcome.info.device = "sim";
  outcome.info.workers = options.workers;
  outcome.info.leadSeconds = options.lead;
  outcome.info.seed = options.seed;
  if (options.recordProfile)
    outcome.profile = recorder.merge(options.profile.get(), now);
  return outcome;
}

/// Collects the uses of a pass, and from when on they are announced.
class FutureSink final : public EventSink {
public:
  FutureSink(const ReplayWorkload &workload, const ReplayOptions &options)
      : requests(workload.requests), lead(fromSeconds(options.lead)),
        limited(options.policy == "announced") {}

  Status write(std::span<const Event> events) override {
    for (const Event &event : events)
      if (event.kind == EventKind::dispatch) {
        future.push_back({event.t, event.key});
        if (limited)
          future.back().known = knownAt(event);
      }
    return {};
  }
  std::vector<FutureUse> future;

private:
  TimeNs knownAt(const Event &dispatch) const {
    if (requests.empty()) // launches are announced by nothing
      return dispatch.t;
    const ReplayRequest &request = requests[dispatch.id];
    const double known = request.known >= 0 ? request.known : request.arrival;
    return lead + fromSeconds(known - requests.front().arrival);
  }

  const std::vector<ReplayRequest> &requests;
  const TimeNs lead;
  const bool limited;
};

} // namespace

Expected<ReplayOutcome> replay(const ReplayWorkload &workload,
                               const ReplayOptions &options, EventSink &log) {
  if (workload.requests.empty() && workload.launches.empty())
    return makeError(Code::invalidArgument, "no requests to replay");
  const KeyCosts costs(*workload.module, options);
  FutureSink recorded(workload, options);
  if (options.policy == "oracle" || options.policy == "announced") {
    // The uses of a pass on generic variants, which nothing delays.
    ReplayOptions recording = options;
    recording.policy = "off";
    recording.fallbackGeneric = true;
    recording.recordProfile = recording.recordNextKeys = false;
    PGKP_TRY(Simulation(workload, recording, costs, recorded).run({}));
  }
  return Simulation(workload, options, costs, log)
      .run(std::move(recorded.future));
}

} // namespace pgkp::rt
