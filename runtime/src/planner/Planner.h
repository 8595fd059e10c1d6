// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Which job runs next, and which is not worth it. Deterministic: same
/// input, same output.
#pragma once

#include "base/Clock.h"
#include "schema/FirstUse.h"
#include "schema/Module.h"
#include "schema/profile_generated.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pgkp::rt {

/// How far a key's variant has come.
enum class KeyStage : uint8_t {
  absent, ///< nothing on this machine
  stored, ///< in the store: only loading and tuning are missing
  queued, ///< a job was submitted and waits
  compiling,
  loading,  ///< artifact at hand, waits for a load window or for measurement
  ready,    ///< dispatchable
  notWorth, ///< measured no better than generic
  failed    ///< backed off
};

/// Everything the planner may know of one key at one moment. Times in seconds.
struct Candidate {
  KeyId key = kNoKey;
  KeyStage stage = KeyStage::absent;
  FirstUse use; ///< the forecast; mass 0: none
  uint64_t misses =
      0; ///< dispatches that ran generic since the key became known
  TimeNs firstMiss = 0;  ///< 0: never missed
  bool demanded = false; ///< a caller is blocked on it
  double remaining = 0;  ///< expected time to finish the missing stages
  double cpu = 0;        ///< expected processor seconds of these
  double stall = 0;   ///< s lost if it is used before it is ready (no fallback)
  double delta = 0;   ///< s lost per use on generic
  double regret = 0;  ///< s lost so far on generic
  double elapsed = 0; ///< s that its job has run, where one does
  bool speculated = false; ///< its job was started before it was used
  bool mayStart = true;    ///< false: back-off has not expired
};

struct PlanInput {
  TimeNs now = 0;
  TimeNs start = 0;     ///< engine creation
  unsigned slots = 0;   ///< jobs that may be started now
  double horizon = 600; ///< s
  double cpuPrice =
      0.02;           ///< s of lost time that one processor second is worth now
  double usedCpu = 0; ///< D: compile s of keys that were really used
  double outstandingCpu =
      0; ///< compile s charged to speculation and not refunded
  double freeCpu =
      20; ///< B0: idle processor seconds of the start-up window, >= 20
  double trust = 1; ///< theta: how much waste each used compile second allows
  /// Speculation has lost more than lazy would have: nothing speculative
  /// starts, and misses go in lazy's order.
  bool restrained = false;
  std::span<const Candidate> candidates;
};

/// Why a key is where it is in the order: the terms, for `explain`.
struct Decision {
  KeyId key = kNoKey;
  uint32_t candidate = 0; ///< its position in PlanInput::candidates
  bool start = false;
  bool cancel = false; ///< its speculative job gives way; `start` is false
  bool speculative = false;
  bool demanded = false;
  double index = 0; ///< lost s per s of delay, per s of work: larger goes first
  double value =
      0; ///< lost s it is expected to save, at the lower confidence bound
  double price = 0;        ///< lost s that its resources are worth
  const char *reason = ""; ///< a word or two from a fixed set
};

/// "start, likely; index 0.2, value 1.5 s, price 0.016 s; mass 0.9 ...": one
/// line of terms for people.
std::string explain(const Decision &decision, const Candidate &candidate);

/// A policy: one file each. Thread-compatible.
class Policy {
public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;
  /// The caller blocks at a miss until the key's variant is ready.
  virtual bool blocksOnMiss() const = 0;
  /// Looks at forecasts; the others only at misses.
  virtual bool speculates() const = 0;
  /// Appends one decision for each candidate: first those to start, best first,
  /// at most `slots` of them, then the others in no useful order. No other
  /// allocation than `out`'s.
  virtual void plan(const PlanInput &input, std::vector<Decision> &out) = 0;

  // For policies with a model of their own; forecasts need none of these.

  /// Before everything else. `profile`: of earlier runs, or null.
  virtual void begin(const Module &, const schema::ProfileT *) {}
  /// A dispatch of the key.
  virtual void onUse(KeyId, TimeNs) {}
  /// Appends keys that it wants to decide about although nothing was forecast
  /// for them and no one has used them.
  virtual void keys(std::vector<KeyId> &) const {}
};

struct PolicyInfo {
  std::string_view name, summary;
  /// It needs to know the future, or costs nothing: only a replay can have it.
  bool replayOnly;
};
/// Every policy there is.
std::span<const PolicyInfo> policies();
/// Null for a name that no policy has.
std::unique_ptr<Policy> makePolicy(std::string_view name);
/// Names of those that a real process may have, or all.
std::vector<std::string> policyNames(bool replay);

} // namespace pgkp::rt
