// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/Engine.h"

#include "base/Env.h"
#include "base/Log.h"
#include "devices/factory/Factory.h"
#include "engine/ModuleState.h"
#include "governor/WorkerCount.h"
#include "prepare/BuildBundle.h"

#include <algorithm>
#include <functional>
#include <sys/stat.h>
#include <thread>

namespace pgkp::rt {

void Engine::Impl::record(Event event) {
  if (made.forked())
    return;
  // A whole log must be whole: it may grow in memory. Otherwise the ring drops
  // and counts.
  if (options.recordEvents)
    log.append(std::move(event));
  else
    log.record(std::move(event));
}

void Engine::Impl::drainLog() {
  std::lock_guard lock(sinkMutex);
  if (Status s = log.drain(sink); !s)
    rt::log(LogLevel::info, "event log: {}", s.error().message);
}

Engine::Impl::~Impl() { jobs.reset(); } // its last results need the rest

JobTable &Engine::Impl::startPool(bool background) {
  std::lock_guard lock(poolMutex);
  if (!jobs) {
    WorkerOptions poolOptions = workerOptions;
    poolOptions.background = background;
    auto workers = std::make_unique<WorkerPool>(poolOptions);
    pool = workers.get();
    jobs = std::make_unique<JobTable>(std::move(workers));
    jobs->onResult(
        [this](CompileResult result) { routeResult(std::move(result)); });
  }
  return *jobs;
}

void Engine::Impl::routeResult(CompileResult result) {
  std::lock_guard lock(poolMutex);
  const auto owner = preparing.find(moduleOfJob(result.id));
  if (owner != preparing.end())
    owner->second->push(ResultInput{std::move(result)}, /*wake=*/true);
}

void Engine::Impl::noteWorkers() {
  const WorkerCounts counts = pool->counts();
  const TimeNs now = clock.now();
  for (; seenCounts.killed < counts.killed; ++seenCounts.killed)
    record({.t = now, .kind = EventKind::workerLost, .a = 0});
  for (; seenCounts.hung < counts.hung; ++seenCounts.hung)
    record({.t = now, .kind = EventKind::workerLost, .a = 1});
  for (; seenCounts.started < counts.started; ++seenCounts.started) {
    const bool replaces = seenCounts.restarts < counts.restarts;
    seenCounts.restarts += replaces;
    record({.t = now, .kind = EventKind::workerStart, .a = replaces});
  }
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Engine::~Engine() {
  if (impl->made.forked())
    abandon(std::move(impl));
}

Expected<std::shared_ptr<Engine>> Engine::create(EngineOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  EngineOptions &o = impl->options;
  if (getEnvFlag("PGKP_DISABLE"))
    o.policy = "off";
  if (!makePolicy(o.policy))
    return makeError(Code::invalidArgument, "no policy '{}'", o.policy);
  PGKP_ASSIGN(impl->device, makeDevice(o.device));

  StoreOptions storeOptions;
  storeOptions.directory = o.cacheDir ? *o.cacheDir : defaultStoreDirectory();
  storeOptions.announce = !o.cacheDir;
  impl->store = Store::open(storeOptions);

  impl->workerOptions = WorkerOptions::fromEnvironment(
      workerCount(makeLinuxProbe()->sample(impl->clock.now())));
  if (o.workers >= 0)
    impl->workerOptions.workers = static_cast<unsigned>(o.workers);
  if (o.worker)
    impl->workerOptions.path = *o.worker;

  impl->start = impl->clock.now();
  impl->record({.t = impl->start, .kind = EventKind::engineStart});
  return std::shared_ptr<Engine>(new Engine(std::move(impl)));
}

const EngineOptions &Engine::options() const { return impl->options; }
TimeNs Engine::now() const { return impl->clock.now(); }
unsigned Engine::workers() const { return impl->workerOptions.workers; }
std::string Engine::deviceName() const { return impl->device->name(); }

void Engine::record(Event event) { impl->record(std::move(event)); }

std::vector<Event> Engine::events() const {
  if (impl->made.forked())
    return {};
  impl->drainLog();
  std::lock_guard lock(impl->sinkMutex);
  std::vector<Event> events = impl->sink.events;
  std::stable_sort(events.begin(), events.end(),
                   [](const Event &a, const Event &b) { return a.t < b.t; });
  return events;
}

std::string Engine::metricsJson() const {
  RunInfo info;
  info.policy = impl->options.policy;
  info.fallback = impl->options.fallbackGeneric ? "generic" : "none";
  info.device = deviceName();
  info.workers = workers();
  return computeMetrics(info, events());
}

/// The stored bundle, or a new one that one process builds while the others
/// wait for it.
static Expected<std::vector<uint8_t>>
bundleOnce(Store &store, const Digest &key,
           const std::function<Expected<std::vector<uint8_t>>()> &build) {
  constexpr TimeNs patience = 60 * kNsPerSecond;
  if (auto bundle = store.getBundle(key))
    return bundle;
  const SteadyClock clock;
  const TimeNs asked = clock.now();
  Expected<Lease> lease = store.lease(key);
  while (!lease && lease.error().code == Code::unavailable &&
         clock.now() - asked < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    lease = store.lease(key);
  }
  // Who held the lease until now has put it.
  if (auto bundle = store.getBundle(key))
    return bundle;
  const TimeNs begin = clock.now();
  PGKP_ASSIGN(std::vector<uint8_t> bundle, build());
  if (Status s =
          store.putBundle(key, bundle, toSeconds(clock.now() - begin) * 1e3);
      !s)
    log(LogLevel::info, "store: {}", s.error().message);
  return bundle;
}

Expected<std::vector<uint8_t>>
Engine::bundleFor(const std::string &name, std::vector<uint8_t> source,
                  const std::vector<std::string> &targets,
                  double *buildSeconds) {
  PGKP_ASSIGN(auto parsed, parseTargets(targets, makeHostDevice()->target()));
  WorkerOptions options = impl->workerOptions;
  if (options.path.empty()) {
    PGKP_ASSIGN(options.path, findWorker());
  }

  // The worker's file stands for its build: asking the worker would mean
  // starting it.
  struct stat worker {};
  if (stat(options.path.c_str(), &worker) != 0)
    return makeErrnoError(
        errno, fmt::format("cannot find the worker '{}'", options.path));
  Hasher hasher;
  hasher.add(std::span<const uint8_t>(source)).add(std::string_view(name));
  for (const schema::TargetT &target : parsed)
    hasher.add(static_cast<int64_t>(target.device))
        .add(target.chip)
        .add(target.features);
  hasher.add(static_cast<int64_t>(worker.st_size))
      .add(static_cast<int64_t>(worker.st_mtim.tv_sec))
      .add(static_cast<int64_t>(worker.st_mtim.tv_nsec));
  const Digest key = hasher.finish();

  const TimeNs begin = impl->clock.now();
  PGKP_ASSIGN(std::vector<uint8_t> bundle, bundleOnce(*impl->store, key, [&] {
                return buildBundle(
                    options,
                    {.name = name, .module = source, .targets = parsed});
              }));
  if (buildSeconds)
    *buildSeconds = toSeconds(impl->clock.now() - begin);
  return bundle;
}

Expected<std::shared_ptr<LoadedModule>>
Engine::load(std::vector<uint8_t> bundle) {
  return LoadedModule::create(shared_from_this(), std::move(bundle));
}

} // namespace pgkp::rt
