// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The loop that decides: events in, actions out. The engine runs it on
/// the real clock with worker processes and a device, replay on a virtual clock
/// with simulated ones. It knows neither, which is what makes the two
/// comparable.
#pragma once

#include "base/Clock.h"
#include "forecast/Forecaster.h"
#include "governor/Governor.h"
#include "metrics/Event.h"
#include "planner/LazyShadow.h"
#include "planner/Planner.h"
#include "prepare/Compiler.h"
#include "schema/Module.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pgkp::rt {

/// What the brain wants done. Called from plan() only. Nothing may call back
/// into the brain.
class BrainActions {
public:
  virtual ~BrainActions() = default;
  /// Starts compiling the key's variant; false: no slot after all.
  virtual bool startJob(KeyId key, JobId job) = 0;
  /// Fetches the artifact from the store, loads, measures and publishes it;
  /// answered by onLoaded, onNotWorth or onLoadFailed.
  virtual void startLoad(KeyId key) = 0;
  /// Stops a job that was started; answered by onJobResult, cancelled, unless
  /// it ended first.
  virtual void cancelJob(KeyId key, JobId job) = 0;
  virtual void setJobLimit(unsigned jobs) = 0;
  virtual void record(Event event) = 0;
};

/// What is known before the first measurement, in seconds. Medians of the first
/// results replace them (an exponential average, 1/4 weight).
struct StageCosts {
  double compile = 0.15, compileCpu = 0.15, load = 0.002;
};

struct BrainOptions {
  bool fallbackGeneric = true;
  double horizon = 600;
  /// Assumed time ratio generic/variant until it was measured (design section
  /// 6).
  double matmulSlowdown = 2.0, otherSlowdown = 1.1;
  /// First guess of a generic kernel's time in seconds until one was seen.
  double kernelGuess = 20e-6;
  TimeNs planPeriodStart = 100 * kNsPerMs; ///< for the first ten seconds
  TimeNs planPeriod = 2 * kNsPerSecond;
  bool recordForecasts = true;
};

/// Thread-compatible; the planning thread owns it.
class Brain {
public:
  Brain(std::shared_ptr<const Module> module,
        std::unique_ptr<Forecaster> forecaster, std::unique_ptr<Policy> policy,
        std::unique_ptr<Governor> governor, StageCosts costs,
        BrainOptions options, BrainActions &actions, TimeNs start);
  ~Brain();

  // What happened. `now` never decreases from call to call.
  void onRequest(uint32_t entry, std::span<const int64_t> roots, TimeNs now);
  void onRequestDone(TimeNs now);
  void onAnnounce(uint32_t entry, std::span<const int64_t> roots, TimeNs when,
                  TimeNs now);
  void onHint(KeyId key, double probability, double slack, TimeNs now);
  /// A dispatch of the key took `kernelSeconds` on the device (0: unknown).
  /// \p ran: the key whose variant ran; \p number: of the dispatch on its
  /// stream.
  void onUse(KeyId key, KeyId ran, double kernelSeconds, uint32_t stream,
             uint32_t number, TimeNs now);
  /// A caller is blocked until the key is settled.
  void onDemand(KeyId key, TimeNs now);
  /// The store has the key's artifact already.
  void onStored(KeyId key);
  /// Measured in an earlier run, or by the tuner. Seconds per use.
  void onMeasured(KeyId key, double generic, double variant);
  /// What the stages took in an earlier run; 0: unknown. Seconds.
  void onKnownCosts(KeyId key, double compile, double load);
  /// An earlier measurement says that the variant is no better: it is not
  /// prepared.
  void onKnownNotWorth(KeyId key, TimeNs now);
  void onJobResult(KeyId key, const CompileResult &result, TimeNs now);
  void onLoaded(KeyId key, double seconds, TimeNs now);
  void onNotWorth(KeyId key, TimeNs now);
  /// \p next: absent (compile it again), stored (load it again), both after a
  /// back-off, or failed.
  void onLoadFailed(KeyId key, const std::string &reason, KeyStage next,
                    TimeNs now);
  void setPaused(bool paused) { isPaused = paused; }

  /// Decides and acts. \returns when it wants to be called next at the latest.
  TimeNs plan(TimeNs now);

  KeyStage stage(KeyId key) const { return keys[key].stage; }
  /// Nothing more will happen to the key without another event.
  bool settled(KeyId key) const;
  const Policy &activePolicy() const { return *policy; }
  /// One line: why the key was or was not prepared, with the planner's last
  /// terms.
  std::string explain(KeyId key) const;
  /// Speculation is off, since it has lost more than lazy would have.
  bool restrained() const { return isRestrained; }
  /// Jobs that were started and have no result yet.
  unsigned jobsInFlight() const { return inFlight; }
  bool idle() const { return inFlight == 0 && loadsInFlight == 0; }

private:
  struct KeyState {
    KeyStage stage = KeyStage::absent;
    bool everUsed = false, demanded = false, known = false;
    uint64_t misses = 0, uses = 0;
    TimeNs firstMiss = 0, notBefore = 0;
    TimeNs demandedAt = 0;
    JobId job = 0; ///< in flight
    TimeNs jobStart = 0;
    bool speculated = false; ///< the job was started before the key was used
    double regret = 0;       ///< s lost on generic
    double compile = 0, load = 0; ///< s, measured; 0: never
    unsigned failures = 0;
    double charge = 0;      ///< s, outstanding speculative credit
    double compiledCpu = 0; ///< s, spent on it
    double genericTime = 0, variantTime = 0; ///< s per use, 0: unknown
    bool measured = false; ///< generic and variant times come from a comparison
    Decision last;
    Candidate lastTerms; ///< what `last` went by
    std::string reason;  ///< of the last failure
  };

  Candidate candidate(KeyId key, TimeNs now) const;
  void know(KeyId key);
  void fail(KeyId key, std::string reason, KeyStage next, TimeNs now);
  void refund(KeyState &state);
  double deltaPerUse(KeyId key) const;
  double missingSeconds(KeyId key) const;
  double compileSeconds(KeyId key) const;
  double loadSeconds(KeyId key) const;
  void noteLoss(KeyState &state, TimeNs now);
  void reviewSpeculation(TimeNs now);

  std::shared_ptr<const Module> module;
  std::unique_ptr<Forecaster> forecaster;
  std::unique_ptr<Policy> policy;
  std::unique_ptr<Governor> governor;
  StageCosts costs;
  BrainOptions options;
  BrainActions &actions;
  TimeNs start;

  std::vector<KeyState> keys;
  std::vector<KeyId> knownKeys; ///< in the order in which they became known
  std::vector<KeyId> scratchKeys;
  std::vector<Candidate> candidates;
  std::vector<Decision> decisions;
  KeyId predicted = kNoKey;
  unsigned inFlight = 0, loadsInFlight = 0;
  JobId nextJob = 1;
  double usedCpu = 0, outstandingCpu = 0;
  /// By kernel: mean time of a use on generic, over the classes seen; 0: none.
  std::vector<double> kernelTimes;
  double anyTime = 0; ///< over all kernels

  // Self-restraint: lost so far, and what lazy would have lost.
  LazyShadow shadow;
  double lostSeconds = 0;
  unsigned allowedJobs = 1;
  bool isRestrained = false;
  double startupCpu = 0; ///< B0: processor s that were free before the serving
  TimeNs lastPlan = 0;
  bool served = false;
  TimeNs lastRequest = 0;
  unsigned requestsRunning = 0;
  bool isPaused = false;
};

} // namespace pgkp::rt
