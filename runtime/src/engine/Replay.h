// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The brain on a virtual clock, with a simulated compiler and device.
#pragma once

#include "base/Status.h"
#include "engine/Brain.h"
#include "metrics/Event.h"
#include "metrics/EventLog.h"
#include "schema/Module.h"

#include <memory>
#include <string>
#include <vector>

namespace pgkp::rt {

/// A forward: one call of an entry.
struct ReplayRequest {
  double arrival = 0; ///< s; it begins then, or when the one before has ended
  uint32_t entry = 0;
  std::vector<int64_t> roots;
  /// What all its kernels take together on the best variants, s; 0: what the
  /// roofline says.
  double seconds = 0;
  /// When everything that it consists of had been announced, s; negative: when
  /// it arrives. For the oracle that knows no more than that.
  double known = -1;
};

/// What the application tells the runtime: at `at`, that the entry will run
/// with these roots at about `when`, all in the time of arrivals.
struct ReplayAnnouncement {
  double at = 0, when = 0;
  uint32_t entry = 0;
  std::vector<int64_t> roots;
};

/// A launch of a kernel trace, which has no forwards.
struct ReplayLaunch {
  double start = 0;   ///< s after the first one
  double seconds = 0; ///< on the best variant
  KeyId key = kNoKey;
  uint32_t stream = 0;
};

/// What is played: forwards, or launches. Immutable while it is.
struct ReplayWorkload {
  std::shared_ptr<const Module> module;
  std::vector<ReplayRequest> requests; ///< by arrival
  /// By `at`. Without any, each request is announced when it arrives.
  std::vector<ReplayAnnouncement> announcements;
  std::vector<ReplayLaunch> launches; ///< by start; the requests are not played
};

struct ReplayOptions {
  std::string policy = "predictive";
  bool fallbackGeneric = true;
  bool announce = true; ///< the runtime hears of requests before they run
  unsigned workers = 1;
  double lead = 0; ///< s of preparation before the first arrival
  uint64_t seed = 1;
  /// A variant's compile time is lognormal, drawn from seed and key alone, so
  /// that all policies pay the same for the same variant. `load` likewise.
  double compileMedian = 0.15, compileSigma = 0.6;
  double loadMedian = 0.001, loadSigma = 0;
  /// By key, s; 0 or not there: drawn as above.
  std::vector<double> compileSeconds;
  /// Kernel time on the best variant: max(flops / rate, bytes / bandwidth) +
  /// overhead.
  double flopsPerSecond = 20e9, bytesPerSecond = 10e9, overhead = 1e-6;
  /// Time on the generic variant over that, where the profile has not measured
  /// it (design section 6).
  double matmulSlowdown = 2.0, otherSlowdown = 1.1;
  std::shared_ptr<const schema::ProfileT> profile;
  ForecasterOptions forecaster;
  bool recordForecasts = true, recordNextKeys = true, recordProfile = false;
};

struct ReplayOutcome {
  RunInfo info;
  schema::ProfileT profile; ///< with `recordProfile`: earlier runs and this one
};

/// Plays the workload as one server would, and writes the event log; its times
/// are virtual nanoseconds. A forward that took longer, or waited, delays those
/// that follow. Same input, same log. invalidArgument: nothing to play, or a
/// policy that does not exist.
Expected<ReplayOutcome> replay(const ReplayWorkload &workload,
                               const ReplayOptions &options, EventSink &log);

} // namespace pgkp::rt
