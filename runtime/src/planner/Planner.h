// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Which job runs next, and which is not worth it. Deterministic: same input, same output.
#pragma once

#include "base/Clock.h"
#include "schema/FirstUse.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace pgkp::rt {

/// How far a key's variant has come.
enum class KeyStage : uint8_t {
  absent,    ///< nothing on this machine
  stored,    ///< in the store: only loading and tuning are missing
  queued,    ///< a job was submitted and waits
  compiling,
  loading,   ///< artifact at hand, waits for a load window or for measurement
  ready,     ///< dispatchable
  notWorth,  ///< measured no better than generic
  failed     ///< backed off
};

/// Everything the planner may know of one key at one moment. Times in seconds.
struct Candidate {
  KeyId key = kNoKey;
  KeyStage stage = KeyStage::absent;
  FirstUse use;             ///< the forecast; mass 0: none
  uint64_t misses = 0;      ///< dispatches that ran generic since the key became known
  TimeNs firstMiss = 0;     ///< 0: never missed
  bool demanded = false;    ///< a caller is blocked on it
  double remaining = 0;     ///< expected time to finish the missing stages
  double cpu = 0;           ///< expected processor seconds of these
  double stall = 0;         ///< s lost if it is used before it is ready (no fallback)
  double delta = 0;         ///< s lost per use on generic
  bool mayStart = true;     ///< false: back-off has not expired
};

struct PlanInput {
  TimeNs now = 0;
  TimeNs start = 0;         ///< engine creation
  unsigned slots = 0;       ///< jobs that may be started now
  double horizon = 600;     ///< s
  double cpuPrice = 0.02;   ///< s of lost time that one processor second is worth now
  double usedCpu = 0;       ///< compile s of keys that were really used
  double outstandingCpu = 0;///< compile s charged to speculation and not refunded
  std::span<const Candidate> candidates;
};

/// Why a key is where it is in the order: the terms, for `explain`.
struct Decision {
  KeyId key = kNoKey;
  bool start = false;
  bool speculative = false;
  double index = 0, value = 0, price = 0;
  const char *reason = "";  ///< a word or two from a fixed set
};

/// A policy: one file each. Thread-compatible.
class Policy {
public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;
  /// The caller blocks at a miss until the key's variant is ready.
  virtual bool blocksOnMiss() const = 0;
  /// Looks at forecasts; the others only at misses.
  virtual bool speculates() const = 0;
  /// Appends decisions, those to start first, best first.
  virtual void plan(const PlanInput &input, std::vector<Decision> &out) = 0;
};

/// "off", "eager", "lazy", "predictive", "oracle"; null for another name.
std::unique_ptr<Policy> makePolicy(std::string_view name);
/// The names makePolicy knows.
std::span<const std::string_view> policyNames();

} // namespace pgkp::rt
