// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// A bundle in an engine: the planning thread around the brain.

#include "engine/ModuleState.h"

#include "base/Log.h"
#include "base/Random.h"
#include "schema/ContentKey.h"

#include <algorithm>

namespace pgkp::rt {

LoadedModule::LoadedModule(std::unique_ptr<Impl> impl)
    : impl(std::move(impl)) {}
LoadedModule::~LoadedModule() {
  if (impl->engine && impl->engine->get().made.forked())
    abandon(std::move(impl));
}
LoadedModule::Impl::~Impl() { stop(); }

const Module &LoadedModule::module() const { return *impl->module; }
const std::shared_ptr<Engine> &LoadedModule::engine() const {
  return impl->engine;
}

Status LoadedModule::announce(uint32_t entry, std::span<const int64_t> roots,
                              double delay) {
  if (impl->forked())
    return makeError(Code::unavailable,
                     "announce: this process was forked; make an engine in it");
  const auto entries = impl->module->entries();
  if (entry >= entries.size() || roots.size() != entries[entry].roots.size())
    return makeError(Code::invalidArgument,
                     "announce: '{}' has no entry {} with {} roots",
                     impl->module->name(), entry, roots.size());
  const TimeNs when = impl->engine->now() + fromSeconds(std::max(delay, 0.0));
  impl->engine->record({.t = impl->engine->now(),
                        .kind = EventKind::announce,
                        .a = entry,
                        .value = toSeconds(when)});
  if (impl->prepares)
    impl->push(AnnounceInput{entry, {roots.begin(), roots.end()}, when},
               /*wake=*/impl->speculates);
  return {};
}

std::string LoadedModule::explain(uint32_t kernel,
                                  std::span<const int64_t> extents) {
  const KeyId key = impl->module->classify(kernel, extents);
  if (impl->forked())
    return fmt::format("{}: generic; this process was forked",
                       impl->module->describe(key));
  std::lock_guard lock(impl->brainMutex);
  return impl->brain
             ? impl->brain->explain(key)
             : fmt::format("{}: generic; nothing is prepared under this policy",
                           impl->module->describe(key));
}

void LoadedModule::pausePreparation(bool paused) {
  if (impl->forked())
    return;
  std::lock_guard lock(impl->brainMutex);
  if (impl->brain)
    impl->brain->setPaused(paused);
}

void LoadedModule::cancelPreparation() {
  if (impl->forked())
    return;
  std::lock_guard lock(impl->brainMutex);
  if (!impl->brain)
    return;
  impl->brain->setPaused(true);
  for (const auto &[job, key] : impl->jobKeys)
    impl->jobs->cancel(job);
}

void LoadedModule::exercisePreparation(bool on) {
  if (!impl->prepares || impl->forked())
    return;
  {
    std::lock_guard lock(impl->brainMutex);
    impl->exercising = on;
  }
  impl->engine->get().planning.wake();
}

bool LoadedModule::quiesce(TimeNs limit) {
  if (!impl->prepares || impl->forked())
    return true;
  const TimeNs end = impl->engine->now() + limit;
  while (true) {
    bool idle;
    {
      std::scoped_lock lock(impl->brainMutex, impl->inputMutex,
                            impl->loadMutex);
      idle = impl->inputs.empty() && impl->loadTasks.empty() &&
             !impl->loadBusy && impl->brain->idle() &&
             impl->exerciseJobs.empty();
    }
    if (idle)
      return true;
    if (impl->engine->now() >= end)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

schema::ProfileT LoadedModule::profile() const {
  if (impl->forked())
    return {};
  std::lock_guard lock(impl->brainMutex);
  schema::ProfileT profile =
      impl->recorder->merge(nullptr, impl->engine->now());
  profile.device = impl->engine->deviceName();
  return profile;
}

std::vector<FutureUse> LoadedModule::recordedUses() const {
  std::vector<FutureUse> uses;
  TimeNs first = -1;
  for (const Event &event : impl->engine->events()) {
    if (event.kind == EventKind::requestBegin && first < 0)
      first = event.t;
    const KeyId key = event.key - impl->keyBase;
    if (event.kind == EventKind::dispatch && first >= 0 &&
        key < impl->module->keys().size())
      uses.push_back({event.t - first, key});
  }
  return uses;
}

namespace {
/// Dispatch never goes to a variant that measured no faster than generic.
bool worth(double genericNs, double variantNs) {
  return variantNs < genericNs * TuneOptions{}.worthRatio;
}
} // namespace

//===-- Loading
//------------------------------------------------------------===//

Status LoadedModule::Impl::loadProgram() {
  entryFunctions.assign(module->entries().size(), nullptr);
  if (module->program().empty())
    return {};
  PGKP_ASSIGN(program, SharedObject::load(module->program(), module->name()));
  const auto *abi =
      static_cast<const uint32_t *>(program->find(PGKP_PROGRAM_ABI_SYMBOL));
  if (!abi || *abi != PGKP_PROGRAM_ABI)
    return makeError(
        Code::unsupported,
        "the program of '{}' has ABI {}; this runtime has {}: build it again",
        module->name(), abi ? *abi : 0, PGKP_PROGRAM_ABI);
  for (size_t i = 0; i < entryFunctions.size(); ++i) {
    const std::string &symbol = module->entries()[i].symbol;
    entryFunctions[i] =
        reinterpret_cast<pgkp_entry_fn>(program->find(symbol.c_str()));
    if (!entryFunctions[i])
      return makeError(Code::corrupt,
                       "the program of '{}' lacks the symbol '{}'",
                       module->name(), symbol);
  }
  return {};
}

Status LoadedModule::Impl::publishGenerics() {
  Device &device = *engine->get().device;
  // The simulated device takes the host's artifacts, and computes nothing.
  const schema::DeviceKind kind = device.kind() == schema::DeviceKind::sim
                                      ? schema::DeviceKind::host
                                      : device.kind();
  for (uint32_t i = 0; i < module->kernels().size(); ++i) {
    const KernelInfo &kernel = module->kernels()[i];
    const schema::Artifact *artifact = module->generic(i, kind);
    if (!artifact)
      return makeError(
          Code::unsupported,
          "'{}' has no generic artifact of kernel '{}' for device '{}'",
          module->name(), kernel.name, device.name());
    PGKP_ASSIGN(std::shared_ptr<const Image> image, device.load(*artifact));
    PGKP_ASSIGN(Expr workspace,
                Expr::parse(artifact->workspace(), kernel.dims.size()));
    generics.push_back({image, workspace});
    Variant variant;
    variant.key = kernel.firstKey + static_cast<KeyId>(kernel.classes.size());
    variant.image = std::move(image);
    variant.workspace = std::move(workspace);
    PGKP_TRY(table->publish(i, std::move(variant)));
  }
  return {};
}

Expected<std::shared_ptr<LoadedModule>>
LoadedModule::create(std::shared_ptr<Engine> engine,
                     std::vector<uint8_t> bundle) {
  Engine::Impl &e = engine->get();
  auto impl = std::make_unique<Impl>();
  PGKP_ASSIGN(impl->module, Module::load(std::move(bundle)));
  const Module &m = *impl->module;
  impl->engine = engine;
  PGKP_TRY(impl->loadProgram());
  std::vector<uint32_t> ranks;
  for (const KernelInfo &kernel : m.kernels())
    ranks.push_back(static_cast<uint32_t>(kernel.dims.size()));
  impl->table = std::make_unique<DispatchTable>(ranks);
  impl->loader = std::make_unique<Loader>(*e.device, *impl->table, e.clock,
                                          impl->activity);
  impl->tuner = std::make_unique<Tuner>(*e.device, e.clock);
  PGKP_TRY(impl->publishGenerics());

  const size_t numKeys = m.keys().size();
  impl->keyBase = e.nextKey.fetch_add(static_cast<KeyId>(numKeys));
  impl->moduleNumber = e.nextModule++;
  impl->flags = std::make_unique<Impl::KeyFlags[]>(numKeys);
  impl->recorder = std::make_unique<ProfileRecorder>(impl->module);
  impl->sampleExtents.resize(numKeys);
  auto policy = makePolicy(e.options.policy);
  for (KeyId key = 0; key < numKeys; ++key)
    impl->flags[key].settled = m.isGeneric(key);

  // Nothing dynamic, or nothing wanted: no thread, no worker.
  if (m.dynamic() && e.options.policy != "off")
    impl->startPreparation(std::move(policy));
  return std::shared_ptr<LoadedModule>(new LoadedModule(std::move(impl)));
}

void LoadedModule::Impl::startPreparation(std::unique_ptr<Policy> policy) {
  Engine::Impl &e = engine->get();
  const EngineOptions &o = e.options;
  prepares = true;
  policy->begin(*module, o.profile.get());
  blocksOnMiss = policy->blocksOnMiss() || !o.fallbackGeneric;
  speculates = policy->speculates();

  compileTarget = e.device->target();
  compileFormat = e.device->codeFormat();
  if (e.device->kind() == schema::DeviceKind::sim) {
    compileTarget = makeHostDevice()->target();
    compileFormat = schema::CodeFormat::elf;
  }
  for (KeyId key = 0; key < module->keys().size(); ++key)
    contentKeys.push_back(contentKey(compileSpec(key), module->producer()));
  leases = std::make_unique<JobLeases>(*e.store, e.clock);

  const TimeNs now = engine->now();
  auto forecaster =
      policy->name() == "oracle"
          ? makeOracle(module, o.future, now)
          : makeForecaster(module, o.profile.get(), ForecasterOptions{}, now);
  // Where the caller is blocked there is nothing to stay out of the way of.
  jobs = &e.startPool(/*background=*/!blocksOnMiss);
  demanded.resize(module->keys().size());
  BrainOptions brainOptions;
  brainOptions.fallbackGeneric = o.fallbackGeneric;
  brainOptions.recordForecasts = o.recordEvents;
  brain = std::make_unique<Brain>(
      module, std::move(forecaster), std::move(policy),
      makeGovernor(makeLinuxProbe(), e.workerOptions.workers), StageCosts{},
      brainOptions, *this, now);
  if (o.profile)
    applyProfile(*o.profile);
  findExamples();
  findStored();
  publishFlags();
  {
    std::lock_guard lock(e.poolMutex);
    e.preparing.emplace(moduleNumber, this);
  }
  if (e.planning.add(this, [this](TimeNs t) { return planningRound(t); }) &&
      e.loading.add(this, [this](TimeNs t) { return loadingRound(t); }))
    return;
  log(LogLevel::warning,
      "no thread can be started for '{}': its generic kernels run",
      module->name());
  prepares = blocksOnMiss = speculates = false;
}

/// Measurements of earlier runs, for keys whose class is still one.
void LoadedModule::Impl::applyProfile(const schema::ProfileT &profile) {
  for (const auto &seen : profile.roots)
    if (const auto entry = module->findEntry(seen->entry))
      noteRoots(*entry, seen->roots);
  const bool sameDevice = profile.device == engine->deviceName();
  std::map<Digest, const schema::KeyProfileT *> known;
  for (const auto &entry : profile.keys)
    if (entry->kernel_hash)
      known.emplace(keyDigest(toDigest(*entry->kernel_hash), entry->facts),
                    entry.get());
  for (KeyId key = 0; key < module->keys().size(); ++key) {
    const auto entry = known.find(module->keys()[key].digest);
    if (entry == known.end())
      continue;
    brain->onKnownCosts(key, entry->second->compile_ms * 1e-3,
                        sameDevice ? entry->second->load_ms * 1e-3 : 0);
    if (sameDevice && entry->second->generic_ns > 0 &&
        entry->second->variant_ns > 0)
      applyMeasurement(key, entry->second->generic_ns,
                       entry->second->variant_ns);
  }
}

void LoadedModule::Impl::applyMeasurement(KeyId key, double genericNs,
                                          double variantNs) {
  brain->onMeasured(key, genericNs * 1e-9, variantNs * 1e-9);
  recorder->onKernelTimes(key, genericNs, variantNs);
  if (!worth(genericNs, variantNs))
    brain->onKnownNotWorth(key, engine->now());
}

void LoadedModule::Impl::findStored() {
  Engine::Impl &e = engine->get();
  for (KeyId key = 0; key < module->keys().size(); ++key) {
    if (module->isGeneric(key))
      continue;
    if (!e.store->contains(contentKeys[key])) {
      rememberBuilt(key);
      continue;
    }
    brain->onStored(key);
    if (auto tuning = e.store->getTuning(contentKeys[key], e.device->name()))
      applyMeasurement(key, tuning->genericNs, tuning->variantNs);
  }
}

/// A variant that another compiler built in earlier runs is built again, unless
/// it was measured to be no better or a profile says more.
void LoadedModule::Impl::rememberBuilt(KeyId key) {
  constexpr double probability = 0.5, slackS = 10;
  Engine::Impl &e = engine->get();
  if (e.options.profile)
    return;
  const auto known = e.store->getRecipe(recipeKey(compileSpec(key)));
  if (!known || known->built_s == 0 || !known->built_key)
    return;
  if (auto tuning =
          e.store->getTuning(toDigest(*known->built_key), e.device->name());
      tuning && !worth(tuning->genericNs, tuning->variantNs))
    return;
  brain->onHint(key, probability, slackS, engine->now());
}

//===-- Planning thread
//----------------------------------------------------===//

void LoadedModule::Impl::push(Input input, bool wake) {
  {
    std::lock_guard lock(inputMutex);
    if (stopping)
      return;
    inputs.push_back(std::move(input));
  }
  if (wake)
    engine->get().planning.wake();
}

TimeNs LoadedModule::Impl::waitFor(KeyId key, TimeNs limit) {
  if (!prepares || flags[key].settled.load(std::memory_order_acquire))
    return 0;
  const TimeNs begin = engine->now();
  push(DemandInput{key}, /*wake=*/true);
  std::unique_lock lock(settleMutex);
  settledChanged.wait_for(lock, std::chrono::nanoseconds(limit), [&] {
    return flags[key].settled.load(std::memory_order_acquire);
  });
  return engine->now() - begin;
}

void LoadedModule::Impl::noteExtents(KeyId key,
                                     std::span<const int64_t> extents) {
  if (sampleExtents[key].empty())
    sampleExtents[key].assign(extents.begin(), extents.end());
}

/// A root vector gives consistent extents of every kernel that the entry
/// dispatches: examples to measure with. (Extents chosen one by one may
/// contradict each other: the parts of a concatenation must add up, or the
/// kernel writes past its destination.)
void LoadedModule::Impl::noteRoots(uint32_t entry,
                                   std::span<const int64_t> roots) {
  constexpr int64_t reasonable = 1 << 16;
  const EntryInfo &info = module->entries()[entry];
  if (roots.size() != info.roots.size() || info.brokenLimit(roots) ||
      std::any_of(roots.begin(), roots.end(),
                  [](int64_t root) { return root < 0 || root > reasonable; }))
    return;
  for (const SiteInfo &site : info.sites) {
    if (!site.derivable)
      continue;
    std::vector<int64_t> extents;
    bool valid = true;
    for (const Expr &expr : site.extents) {
      const auto value = expr.evaluate(roots);
      valid &= value && *value >= 0;
      extents.push_back(value.value_or(0));
    }
    if (valid)
      noteExtents(module->classify(site.kernel, extents), extents);
  }
}

/// Examples for keys that nothing has told of yet: root vectors of typical
/// values are tried, middle sizes first. What none of them reaches is measured
/// once it was used.
void LoadedModule::Impl::findExamples() {
  static constexpr int64_t typical[] = {48, 32,  17,  64, 16,  7, 4,
                                        1,  100, 128, 2,  256, 3, 0};
  constexpr size_t numTypical = std::size(typical), maxTries = 4096;
  for (uint32_t entry = 0; entry < module->entries().size(); ++entry) {
    const size_t numRoots = module->entries()[entry].roots.size();
    size_t combinations = 1;
    for (size_t i = 0; i < numRoots && combinations <= maxTries; ++i)
      combinations *= numTypical;
    SeededRandom random(entry);
    std::vector<int64_t> roots(numRoots);
    for (size_t i = 0; i < std::min(combinations, maxTries); ++i) {
      // All combinations in order where they are few, else a sample of them.
      size_t rest = combinations <= maxTries ? i : random.below(SIZE_MAX);
      for (int64_t &root : roots) {
        root = typical[rest % numTypical];
        rest /= numTypical;
      }
      noteRoots(entry, roots);
    }
  }
}

void LoadedModule::Impl::drainHistory(TimeNs) {
  history.drain([&](const Use &use) {
    recorder->onUse(use.key, use.at, sampleExtents[use.key]);
    brain->onUse(use.key, use.ran, toSeconds(use.kernelNs), use.stream,
                 use.number, use.at);
  });
}

void LoadedModule::Impl::apply(Input &input, TimeNs now) {
  std::visit(
      [&](auto &in) {
        using T = std::decay_t<decltype(in)>;
        if constexpr (std::is_same_v<T, RequestInput>) {
          recorder->onRequest(in.entry, in.roots, now);
          brain->onRequest(in.entry, in.roots, now);
        } else if constexpr (std::is_same_v<T, RequestDoneInput>) {
          brain->onRequestDone(now);
        } else if constexpr (std::is_same_v<T, AnnounceInput>) {
          brain->onAnnounce(in.entry, in.roots, in.when, now);
        } else if constexpr (std::is_same_v<T, HintInput>) {
          noteExtents(in.key, in.extents);
          brain->onHint(in.key, in.probability, in.slack, now);
        } else if constexpr (std::is_same_v<T, MissInput>) {
          // What is really used replaces what was only typical.
          sampleExtents[in.key] = std::move(in.extents);
        } else if constexpr (std::is_same_v<T, DemandInput>) {
          brain->onDemand(in.key, now);
          raise(in.key);
        } else if constexpr (std::is_same_v<T, ResultInput>) {
          onResult(in.result, now);
        } else if constexpr (std::is_same_v<T, StoredInput>) {
          brain->onStored(in.key);
        } else if constexpr (std::is_same_v<T, LoadedInput>) {
          recorder->onStageTimes(in.key, 0, in.seconds * 1e3);
          brain->onLoaded(in.key, in.seconds, now);
        } else if constexpr (std::is_same_v<T, MeasuredInput>) {
          recorder->onKernelTimes(in.key, in.generic * 1e9, in.variant * 1e9);
          brain->onMeasured(in.key, in.generic, in.variant);
          if (!in.worth)
            brain->onNotWorth(in.key, now);
        } else {
          static_assert(std::is_same_v<T, LoadFailedInput>);
          brain->onLoadFailed(in.key, in.reason, in.next, now);
        }
      },
      input);
}

void LoadedModule::Impl::onResult(CompileResult &result, TimeNs now) {
  if (exerciseJobs.erase(result.id))
    return;
  const auto job = jobKeys.find(result.id);
  if (job == jobKeys.end())
    return;
  const KeyId key = job->second;
  jobKeys.erase(job);
  result.id = localJob(result.id);
  if (result.outcome == JobOutcome::done) {
    recorder->onStageTimes(
        key, toSeconds(result.finished - result.started) * 1e3, 0);
    // A full or broken disk costs the next process a compile, not this one its
    // variant.
    if (auto s = engine->get().store->put(contentKeys[key],
                                          std::move(result.payload));
        !s)
      log(LogLevel::info, "store: {}", s.error().message);
  } else if (result.outcome != JobOutcome::cancelled) {
    log(LogLevel::info, "preparing {}: {}", module->describe(key),
        result.message);
    if (result.outcome == JobOutcome::rejected)
      engine->get().store->noteRefused(recipe(key), result.message);
  }
  leases->done(contentKeys[key]);
  brain->onJobResult(key, result, now);
}

void LoadedModule::Impl::publishFlags() {
  bool changed = false;
  for (KeyId key = 0; key < module->keys().size(); ++key)
    if (!flags[key].settled.load(std::memory_order_relaxed) &&
        brain->settled(key)) {
      flags[key].settled.store(true, std::memory_order_release);
      changed = true;
    }
  if (changed) {
    // Taken so that no caller can be between its check and its wait.
    std::lock_guard lock(settleMutex);
    settledChanged.notify_all();
  }
}

TimeNs LoadedModule::Impl::planningRound(TimeNs now) {
  std::deque<Input> batch;
  {
    std::lock_guard lock(inputMutex);
    batch.swap(inputs);
  }
  {
    std::lock_guard lock(brainMutex);
    drainHistory(now);
    for (Input &input : batch)
      apply(input, engine->now());
    if (leases->poll() || !batch.empty() || engine->now() >= planDue)
      planDue = brain->plan(engine->now());
    if (exercising)
      exercise();
    publishFlags();
  }
  table->collect();
  engine->get().noteWorkers();
  engine->get().drainLog();
  // Uses do not wake the thread: it looks for them often enough to keep the
  // history from overflowing.
  return std::min(planDue, engine->now() + 20 * kNsPerMs);
}

void LoadedModule::Impl::record(Event event) {
  if (event.t == 0)
    event.t = engine->now();
  for (uint32_t *key : {&event.key, &event.ran})
    if (*key != kNoKey)
      *key += keyBase;
  switch (event.kind) {
  case EventKind::jobQueued:
  case EventKind::jobStart:
  case EventKind::jobEnd:
  case EventKind::ready:
  case EventKind::loadBegin:
  case EventKind::loadEnd:
    if (event.id != 0)
      event.id = jobOf(moduleNumber, event.id);
    break;
  default:
    break;
  }
  engine->record(std::move(event));
}

bool LoadedModule::Impl::startJob(KeyId key, JobId job) {
  switch (leases->take(contentKeys[key])) {
  case JobLeases::Turn::ours:
    break;
  case JobLeases::Turn::stored:
    push(StoredInput{key}, /*wake=*/true);
    return false;
  case JobLeases::Turn::theirs:
    return false;
  }
  const JobId id = jobOf(moduleNumber, job);
  if (!jobs->submit(compileJob(key, id))) {
    leases->done(contentKeys[key]);
    return false;
  }
  jobKeys.emplace(id, key);
  if (demanded[key])
    jobs->raise(id);
  engine->get().store->noteAsked(recipe(key));
  return true;
}

/// Somebody waits for the key: its job, now or later, runs at normal priority.
void LoadedModule::Impl::raise(KeyId key) {
  demanded[key] = !brain->settled(key);
  if (demanded[key])
    for (const auto &[job, wanted] : jobKeys)
      if (wanted == key)
        jobs->raise(job);
}

void LoadedModule::Impl::cancelJob(KeyId, JobId job) {
  jobs->cancel(jobOf(moduleNumber, job));
}

void LoadedModule::Impl::setJobLimit(unsigned limit) { jobs->setLimit(limit); }

void LoadedModule::Impl::startLoad(KeyId key) {
  {
    std::lock_guard lock(loadMutex);
    loadTasks.push_back({key, sampleExtents[key]});
  }
  engine->get().loading.wake();
}

CompileSpec LoadedModule::Impl::compileSpec(KeyId key) const {
  const KernelInfo &kernel = module->kernels()[module->keys()[key].kernel];
  CompileSpec spec;
  spec.kernelHash = kernel.hash;
  spec.kernel = kernel.name;
  spec.bytecode = kernel.bytecode;
  spec.facts = module->facts(key);
  spec.target = compileTarget;
  spec.format = compileFormat;
  spec.producer = module->producer();
  spec.numDims = kernel.dims.size();
  spec.numArgs = kernel.args.size();
  return spec;
}

CompileJob LoadedModule::Impl::compileJob(KeyId key, JobId job) const {
  return makeCompileJob(job, contentKeys[key], compileSpec(key),
                        module->describe(key));
}

schema::RecipeT LoadedModule::Impl::recipe(KeyId key) const {
  return makeRecipe(compileSpec(key), contentKeys[key],
                    std::string(module->producer()));
}

/// Keeps every worker busy with variants that are known already.
void LoadedModule::Impl::exercise() {
  const auto keys = module->keys();
  for (size_t tries = 0;
       tries < keys.size() && jobs->running() < jobs->capacity(); ++tries) {
    const KeyId key = static_cast<KeyId>(nextExerciseJob % keys.size());
    const JobId job = jobOf(moduleNumber, kExerciseJob + nextExerciseJob++);
    if (module->isGeneric(key))
      continue;
    jobs->setLimit(jobs->capacity());
    CompileJob again = compileJob(key, job);
    again.contentKey = {}; // work for its own sake: joined to nothing
    if (!jobs->submit(std::move(again)))
      break;
    exerciseJobs.emplace(job, key);
  }
}

void LoadedModule::Impl::stop() {
  if (!engine)
    return; // the bundle was refused
  Engine::Impl &e = engine->get();
  {
    std::lock_guard lock(inputMutex);
    stopping = true;
  }
  e.planning.remove(this);
  e.loading.remove(this);
  if (jobs) {
    { // Results that still arrive find nobody.
      std::lock_guard lock(e.poolMutex);
      e.preparing.erase(moduleNumber);
    }
    for (const auto *running : {&jobKeys, &exerciseJobs})
      for (const auto &[job, key] : *running)
        jobs->cancel(job);
  }
  // Callers that wait are let go.
  if (flags)
    for (KeyId key = 0; key < module->keys().size(); ++key)
      flags[key].settled.store(true, std::memory_order_release);
  std::lock_guard lock(settleMutex);
  settledChanged.notify_all();
}

//===-- Loading thread
//-----------------------------------------------------===//

TimeNs LoadedModule::Impl::loadingRound(TimeNs) {
  std::deque<LoadTask> tasks;
  {
    std::lock_guard lock(loadMutex);
    if (loadTasks.empty() && loader->waiting() == 0)
      return kForever;
    tasks.swap(loadTasks);
    loadBusy = true;
  }
  for (const LoadTask &task : tasks)
    submitLoad(task);
  PumpResult pumped = loader->pump();
  for (KeyId key : pumped.deferred)
    record({.kind = EventKind::loadDeferred, .key = key});
  for (LoadResult &result : pumped.loads)
    finishLoad(result);
  std::lock_guard lock(loadMutex);
  loadBusy = false;
  // Loads may wait for an idle moment of the device.
  return loader->waiting() == 0 ? kForever : engine->now() + 2 * kNsPerMs;
}

void LoadedModule::Impl::submitLoad(const LoadTask &task) {
  auto stored = engine->get().store->get(contentKeys[task.key]);
  if (!stored) {
    push(LoadFailedInput{task.key, stored.error().message, KeyStage::absent},
         /*wake=*/true);
    return;
  }
  const uint32_t kernel = module->keys()[task.key].kernel;
  const KernelInfo &info = module->kernels()[kernel];
  // The store does not know the kernel, and so not its numbers.
  if (Status s = checkArtifact((*stored)->artifact(), info.dims.size(),
                               info.args.size());
      !s) {
    push(LoadFailedInput{task.key, s.error().message, KeyStage::failed},
         /*wake=*/true);
    return;
  }
  const auto facts = module->facts(task.key);
  LoadRequest request;
  request.kernel = kernel;
  request.key = task.key;
  request.kernelHash = info.hash;
  request.facts.assign(facts.begin(), facts.end());
  request.numExtents = info.dims.size();
  const auto payload = (*stored)->payload();
  request.artifact.assign(payload.begin(), payload.end());
  request.demanded = blocksOnMiss;
  request.publish = false;
  examples[task.key] = task.extents;
  loader->submit(std::move(request));
}

void LoadedModule::Impl::finishLoad(LoadResult &result) {
  const KeyId key = result.key;
  const auto example = examples.extract(key);
  record({.t = result.begin,
          .kind = EventKind::loadBegin,
          .key = key,
          .id = result.window});
  record({.t = result.end,
          .kind = EventKind::loadEnd,
          .key = key,
          .id = result.window,
          .a = !result.variant});
  if (!result.variant) {
    // The record verified when it was read, so another compile would give the
    // same.
    push(LoadFailedInput{key, result.variant.error().message, KeyStage::failed},
         /*wake=*/true);
    return;
  }
  Variant variant = std::move(*result.variant);
  if (engine->get().device->kind() != schema::DeviceKind::sim) {
    const auto measured = measure(
        key, variant, example ? example.mapped() : std::vector<int64_t>());
    if (!measured) {
      // Without extents to measure with it waits for a use to tell some.
      push(LoadFailedInput{key, measured.error().message,
                           measured.error().code == Code::unavailable
                               ? KeyStage::stored
                               : KeyStage::failed},
           /*wake=*/true);
      return;
    }
    const bool better = worth(measured->genericNs, measured->variantNs);
    push(MeasuredInput{key, measured->genericNs * 1e-9,
                       measured->variantNs * 1e-9, better},
         /*wake=*/true);
    if (!better)
      return;
    variant.nsPerUse = measured->variantNs;
    variant.gain = measured->genericNs / measured->variantNs;
  }
  if (Status s = table->publish(result.kernel, std::move(variant)); !s) {
    push(LoadFailedInput{key, s.error().message, KeyStage::failed},
         /*wake=*/true);
    return;
  }
  // Before the planner hears of it: a dispatch that finds the variant must
  // count as ready.
  flags[key].ready.store(true, std::memory_order_release);
  push(LoadedInput{key, toSeconds(result.end - result.begin)}, /*wake=*/true);
}

Expected<TuningResult>
LoadedModule::Impl::measure(KeyId key, const Variant &variant,
                            const std::vector<int64_t> &extents) {
  Engine::Impl &e = engine->get();
  const std::string device = e.device->name();
  if (auto known = e.store->getTuning(contentKeys[key], device)) {
    record({.kind = EventKind::tune,
            .key = key,
            .value2 = known->genericNs * 1e-9,
            .value3 = known->variantNs * 1e-9});
    return known;
  }
  const uint32_t kernelIndex = module->keys()[key].kernel;
  const KernelInfo &kernel = module->kernels()[kernelIndex];
  if (extents.size() != kernel.dims.size())
    return makeError(Code::unavailable,
                     "no extents are known to measure {} with",
                     module->describe(key));
  auto workspace = [&](const Expr &expr) {
    return expr.empty()
               ? 0
               : static_cast<uint64_t>(expr.evaluate(extents).value_or(0));
  };
  const Generic &generic = generics[kernelIndex];
  PGKP_ASSIGN(
      TuneResult result,
      tuner->measure(kernel, extents,
                     {generic.image.get(), workspace(generic.workspace)},
                     {variant.image.get(), workspace(variant.workspace)}));
  record({.kind = EventKind::tune,
          .key = key,
          .a = result.launches,
          .value = result.deviceSeconds,
          .value2 = result.genericNs * 1e-9,
          .value3 = result.variantNs * 1e-9});
  TuningResult tuning;
  tuning.contentKey = contentKeys[key];
  tuning.key = module->keys()[key].digest;
  tuning.device = device;
  tuning.genericNs = result.genericNs;
  // A variant that most pairs do not prefer is no better, whatever its median
  // says.
  tuning.variantNs = result.worth
                         ? result.variantNs
                         : std::max(result.variantNs, result.genericNs);
  tuning.launches = result.launches;
  tuning.extents = extents;
  if (Status s = e.store->putTuning(tuning); !s)
    log(LogLevel::info, "store: {}", s.error().message);
  return tuning;
}

} // namespace pgkp::rt
