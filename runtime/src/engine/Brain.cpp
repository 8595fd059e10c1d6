// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/Brain.h"

#include <algorithm>
#include <cmath>

namespace pgkp::rt {

namespace {

/// Back-off after a worker was lost: 1 s, doubling to 60 s.
TimeNs backOff(unsigned failures) {
  return std::min<TimeNs>(60, TimeNs{1} << std::min(failures - 1, 6u)) *
         kNsPerSecond;
}

constexpr double kCostAverageWeight = 0.25;

/// Speculation is turned down to lazy when the run has lost more than lazy
/// would have by this share and these seconds, and resumes when it has not lost
/// more any longer.
constexpr double kRestraintShare = 0.01, kRestraintSeconds = 0.2;
/// Least B0 of the waste bound, processor s.
constexpr double kLeastCredit = 20;

void average(double &mean, double sample) {
  mean += kCostAverageWeight * (sample - mean);
}

const char *stageName(KeyStage stage) {
  switch (stage) {
  case KeyStage::absent:
    return "absent";
  case KeyStage::stored:
    return "in the store";
  case KeyStage::queued:
    return "queued";
  case KeyStage::compiling:
    return "compiling";
  case KeyStage::loading:
    return "loading";
  case KeyStage::ready:
    return "ready";
  case KeyStage::notWorth:
    return "measured no better than generic";
  case KeyStage::failed:
    return "failed";
  }
  return "unknown";
}

} // namespace

Brain::Brain(std::shared_ptr<const Module> module,
             std::unique_ptr<Forecaster> forecaster,
             std::unique_ptr<Policy> policy, std::unique_ptr<Governor> governor,
             StageCosts costs, BrainOptions options, BrainActions &actions,
             TimeNs start)
    : module(std::move(module)), forecaster(std::move(forecaster)),
      policy(std::move(policy)), governor(std::move(governor)), costs(costs),
      options(options), actions(actions), start(start),
      keys(this->module->keys().size()),
      kernelTimes(this->module->kernels().size()),
      shadow(this->module->keys().size(), options.fallbackGeneric),
      lastPlan(start) {}

Brain::~Brain() = default;

void Brain::know(KeyId key) {
  KeyState &state = keys[key];
  if (state.known)
    return;
  state.known = true;
  knownKeys.push_back(key);
  actions.record({.kind = EventKind::keyInfo,
                  .key = key,
                  .a = module->isGeneric(key),
                  .text = module->describe(key)});
}

void Brain::onRequest(uint32_t entry, std::span<const int64_t> roots,
                      TimeNs now) {
  ++requestsRunning;
  served = true;
  lastRequest = now;
  forecaster->onRequest(entry, roots, now);
}

void Brain::onRequestDone(TimeNs now) {
  if (requestsRunning > 0)
    --requestsRunning;
  lastRequest = now;
}

void Brain::onAnnounce(uint32_t entry, std::span<const int64_t> roots,
                       TimeNs when, TimeNs now) {
  forecaster->onAnnounce(entry, roots, when, now);
}

void Brain::onHint(KeyId key, double probability, double slack, TimeNs now) {
  forecaster->onPrepareHint(key, probability, slack, now);
}

void Brain::onUse(KeyId key, KeyId ran, double kernelSeconds, uint32_t stream,
                  uint32_t number, TimeNs now) {
  know(key);
  KeyState &state = keys[key];
  if (!state.everUsed) {
    state.everUsed = true;
    usedCpu += state.compiledCpu;
  }
  ++state.uses;
  refund(state);
  // A less specific class's variant counts as a miss too: the key's own may be
  // better.
  if (ran != key && !module->isGeneric(key)) {
    if (state.misses++ == 0)
      state.firstMiss = now;
    if (kernelSeconds > 0 && !state.measured) {
      if (state.genericTime == 0)
        state.genericTime = kernelSeconds;
      else
        average(state.genericTime, kernelSeconds);
      for (double *mean :
           {&kernelTimes[module->keys()[key].kernel], &anyTime}) {
        if (*mean == 0)
          *mean = kernelSeconds;
        else
          average(*mean, kernelSeconds);
      }
    }
    // Nothing is lost where nobody will ever do better.
    if (state.stage != KeyStage::notWorth && state.stage != KeyStage::failed) {
      const double lost = deltaPerUse(key);
      state.regret += lost;
      lostSeconds += lost;
    }
  }
  if (policy->speculates() && !module->isGeneric(key) &&
      state.stage != KeyStage::notWorth && state.stage != KeyStage::failed)
    shadow.onUse(key, deltaPerUse(key), compileSeconds(key), loadSeconds(key),
                 std::max(1u, allowedJobs), now);
  policy->onUse(key, now);
  forecaster->onUse(key, now, stream);
  predicted = forecaster->nextKey(nullptr, stream);
  actions.record({.t = now,
                  .kind = EventKind::nextKey,
                  .key = predicted,
                  .stream = stream,
                  .id = number + 1});
}

void Brain::onDemand(KeyId key, TimeNs now) {
  know(key);
  KeyState &state = keys[key];
  if (!settled(key) && !state.demanded) {
    state.demanded = true;
    state.demandedAt = now;
  }
  refund(state);
}

void Brain::onStored(KeyId key) {
  if (keys[key].stage == KeyStage::absent)
    keys[key].stage = KeyStage::stored;
}

void Brain::onMeasured(KeyId key, double generic, double variant) {
  KeyState &state = keys[key];
  state.genericTime = generic;
  state.variantTime = variant;
  state.measured = true;
}

void Brain::onKnownCosts(KeyId key, double compile, double load) {
  if (compile > 0)
    keys[key].compile = compile;
  if (load > 0)
    keys[key].load = load;
}

/// A caller that waited for the key waits no longer.
void Brain::noteLoss(KeyState &state, TimeNs now) {
  if (state.demanded)
    lostSeconds += toSeconds(now - state.demandedAt);
  state.demanded = false;
}

void Brain::reviewSpeculation(TimeNs) {
  const double over = lostSeconds - shadow.lost();
  if (isRestrained)
    isRestrained = over > 0;
  else
    isRestrained = over > kRestraintShare * shadow.lost() + kRestraintSeconds;
}

void Brain::refund(KeyState &state) {
  outstandingCpu -= state.charge;
  state.charge = 0;
}

void Brain::fail(KeyId key, std::string reason, KeyStage next, TimeNs now) {
  KeyState &state = keys[key];
  ++state.failures;
  state.reason = std::move(reason);
  noteLoss(state, now);
  actions.record(
      {.t = now, .kind = EventKind::failed, .key = key, .text = state.reason});
  state.stage = next;
  // A blocked caller is let go with the generic variant until the back-off is
  // over.
  if (next != KeyStage::failed)
    state.notBefore = now + backOff(state.failures);
}

void Brain::onJobResult(KeyId key, const CompileResult &result, TimeNs now) {
  KeyState &state = keys[key];
  if (inFlight > 0)
    --inFlight;
  const double wall = toSeconds(result.finished - result.started);
  actions.record({.t = now,
                  .kind = EventKind::jobEnd,
                  .key = key,
                  .id = result.id,
                  .a = static_cast<int64_t>(result.outcome),
                  .value = result.cpuSeconds,
                  .value2 = wall});
  state.job = 0;
  if (result.outcome != JobOutcome::cancelled) {
    state.compiledCpu += result.cpuSeconds;
    if (state.everUsed)
      usedCpu += result.cpuSeconds;
  }
  switch (result.outcome) {
  case JobOutcome::done:
    average(costs.compile, wall);
    average(costs.compileCpu, result.cpuSeconds);
    state.compile = wall;
    state.stage = KeyStage::loading;
    ++loadsInFlight;
    actions.startLoad(key);
    break;
  case JobOutcome::rejected:
    fail(key, result.message, KeyStage::failed, now);
    break;
  case JobOutcome::cancelled:
    state.stage = KeyStage::absent;
    // What it has cost stays charged: no use of the key can refund it.
    outstandingCpu += result.cpuSeconds - state.charge;
    state.charge = 0;
    break;
  case JobOutcome::killed:
  case JobOutcome::hung:
  case JobOutcome::unavailable:
    fail(key, result.message, KeyStage::absent, now);
    break;
  }
}

void Brain::onLoaded(KeyId key, double seconds, TimeNs now) {
  KeyState &state = keys[key];
  if (loadsInFlight > 0)
    --loadsInFlight;
  average(costs.load, seconds);
  state.load = seconds;
  state.stage = KeyStage::ready;
  noteLoss(state, now);
  actions.record({.t = now, .kind = EventKind::ready, .key = key});
}

void Brain::onNotWorth(KeyId key, TimeNs now) {
  if (loadsInFlight > 0)
    --loadsInFlight;
  onKnownNotWorth(key, now);
}

void Brain::onKnownNotWorth(KeyId key, TimeNs now) {
  know(key);
  KeyState &state = keys[key];
  state.stage = KeyStage::notWorth;
  noteLoss(state, now);
  actions.record({.t = now, .kind = EventKind::notWorth, .key = key});
}

void Brain::onLoadFailed(KeyId key, const std::string &reason, KeyStage next,
                         TimeNs now) {
  if (loadsInFlight > 0)
    --loadsInFlight;
  fail(key, reason, next, now);
}

bool Brain::settled(KeyId key) const {
  const KeyState &state = keys[key];
  return module->isGeneric(key) || state.stage == KeyStage::ready ||
         state.stage == KeyStage::notWorth || state.stage == KeyStage::failed ||
         state.notBefore > 0;
}

double Brain::deltaPerUse(KeyId key) const {
  const KeyState &state = keys[key];
  const std::string &family =
      module->kernels()[module->keys()[key].kernel].family;
  const double slowdown = family.find("matmul") != std::string::npos
                              ? options.matmulSlowdown
                              : options.otherSlowdown;
  // Until the key was seen: its kernel's other classes, else other kernels.
  const double kernelTime = kernelTimes[module->keys()[key].kernel];
  const double generic = state.genericTime > 0 ? state.genericTime
                         : kernelTime > 0      ? kernelTime
                         : anyTime > 0         ? anyTime
                                               : options.kernelGuess;
  if (state.measured)
    return std::max(0.0, generic - state.variantTime);
  return generic * (1 - 1 / slowdown);
}

double Brain::compileSeconds(KeyId key) const {
  return keys[key].compile > 0 ? keys[key].compile : costs.compile;
}
double Brain::loadSeconds(KeyId key) const {
  return keys[key].load > 0 ? keys[key].load : costs.load;
}

double Brain::missingSeconds(KeyId key) const {
  switch (keys[key].stage) {
  case KeyStage::absent:
  case KeyStage::queued:
  case KeyStage::compiling:
    return loadSeconds(key) + compileSeconds(key);
  case KeyStage::stored:
  case KeyStage::loading:
    return loadSeconds(key);
  default:
    return 0;
  }
}

Candidate Brain::candidate(KeyId key, TimeNs now) const {
  const KeyState &state = keys[key];
  const bool compiled = state.stage == KeyStage::stored;
  Candidate c;
  c.key = key;
  c.stage = state.stage;
  if (policy->speculates())
    c.use = forecaster->forecast(key, now);
  c.misses = state.misses;
  c.firstMiss = state.firstMiss;
  c.demanded = state.demanded;
  c.remaining = missingSeconds(key);
  // Processor s of a compilation, scaled as its wall time is.
  c.cpu = compiled ? 0
                   : costs.compileCpu * compileSeconds(key) /
                         std::max(costs.compile, 1e-9);
  c.delta = deltaPerUse(key);
  c.stall = options.fallbackGeneric ? 0 : c.remaining;
  c.mayStart = now >= state.notBefore;
  c.regret = state.regret;
  if (state.job != 0) {
    c.elapsed = toSeconds(now - state.jobStart);
    c.speculated = state.speculated && !state.everUsed;
  }
  return c;
}

TimeNs Brain::plan(TimeNs now) {
  const bool serving = requestsRunning > 0 || now - lastRequest < kNsPerSecond;
  const Capacity capacity = governor->capacity(now, serving, inFlight);
  allowedJobs = capacity.workers;
  if (!served)
    startupCpu += toSeconds(now - lastPlan) * capacity.workers;
  lastPlan = now;
  reviewSpeculation(now);
  actions.setJobLimit(isPaused ? 0 : capacity.workers);

  forecaster->onTick(now);
  if (policy->speculates()) {
    scratchKeys.clear();
    forecaster->keys(scratchKeys);
    for (KeyId key : scratchKeys)
      if (!module->isGeneric(key))
        know(key);
  }

  scratchKeys.clear();
  policy->keys(scratchKeys);
  for (KeyId key : scratchKeys)
    know(key);

  candidates.clear();
  TimeNs wake = now + (now - start < 10 * kNsPerSecond ? options.planPeriodStart
                                                       : options.planPeriod);
  for (KeyId key : knownKeys) {
    const KeyState &state = keys[key];
    if (module->isGeneric(key))
      continue;
    if (options.recordForecasts && policy->speculates()) {
      const FirstUse use = forecaster->forecast(key, now);
      actions.record({.t = now,
                      .kind = EventKind::forecast,
                      .key = key,
                      .value = use.cdf(FirstUse::horizons[3]),
                      .value2 = use.cdf(FirstUse::horizons[1]),
                      .value3 = missingSeconds(key),
                      .value4 = use.cdf(FirstUse::horizons[0]),
                      .value5 = use.cdf(FirstUse::horizons[2])});
    }
    const bool victim = state.stage == KeyStage::compiling &&
                        state.speculated && state.job != 0 && !state.everUsed;
    if (state.stage != KeyStage::absent && state.stage != KeyStage::stored &&
        !victim)
      continue;
    if (state.notBefore > now)
      wake = std::min(wake, state.notBefore);
    candidates.push_back(candidate(key, now));
  }

  PlanInput input;
  input.now = now;
  input.start = start;
  // What is stored needs no worker: it competes for nothing that a compile
  // needs.
  const auto stored =
      std::count_if(candidates.begin(), candidates.end(),
                    [](const auto &c) { return c.stage == KeyStage::stored; });
  const unsigned idle =
      capacity.workers <= inFlight ? 0 : capacity.workers - inFlight;
  input.slots = isPaused ? 0 : idle + static_cast<unsigned>(stored);
  input.horizon = options.horizon;
  input.cpuPrice = capacity.cpuPrice;
  input.usedCpu = usedCpu;
  input.outstandingCpu = outstandingCpu;
  input.freeCpu = std::max(kLeastCredit, startupCpu);
  input.restrained = isRestrained;
  input.candidates = candidates;
  decisions.clear();
  policy->plan(input, decisions);

  for (const Decision &decision : decisions) {
    KeyState &state = keys[decision.key];
    state.last = decision;
    state.lastTerms = candidates[decision.candidate];
    if (decision.cancel && state.job != 0)
      actions.cancelJob(decision.key, state.job);
    if (!decision.start || isPaused)
      continue;
    if (state.stage == KeyStage::stored) {
      state.stage = KeyStage::loading;
      state.notBefore = 0;
      ++loadsInFlight;
      actions.record(
          {.t = now, .kind = EventKind::storeHit, .key = decision.key});
      actions.startLoad(decision.key);
      continue;
    }
    if (state.stage != KeyStage::absent || inFlight >= capacity.workers)
      continue;
    const JobId job = nextJob++;
    if (!actions.startJob(decision.key, job))
      continue;
    ++inFlight;
    state.stage = KeyStage::compiling;
    state.notBefore = 0;
    state.job = job;
    state.jobStart = now;
    state.speculated = decision.speculative;
    if (decision.speculative && !state.everUsed) {
      state.charge = candidates[decision.candidate].cpu;
      outstandingCpu += state.charge;
    }
    actions.record({.t = now,
                    .kind = EventKind::jobStart,
                    .key = decision.key,
                    .id = job,
                    .a = decision.speculative});
  }
  return wake;
}

std::string Brain::explain(KeyId key) const {
  const KeyState &state = keys[key];
  std::string line =
      fmt::format("{}: {}", module->describe(key),
                  module->isGeneric(key) ? "generic" : stageName(state.stage));
  if (!state.reason.empty())
    line += fmt::format(" ({})", state.reason);
  line += fmt::format("; {} uses, {} on generic", state.uses, state.misses);
  if (state.measured)
    line += fmt::format("; generic {:.1f} us, variant {:.1f} us",
                        state.genericTime * 1e6, state.variantTime * 1e6);
  if (isRestrained)
    line += fmt::format("; speculation is off: {:.3g} s lost, lazy would have "
                        "lost {:.3g} s",
                        lostSeconds, shadow.lost());
  if (state.last.key == key)
    line += "; last plan: " + rt::explain(state.last, state.lastTerms);
  return line;
}

} // namespace pgkp::rt
