// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The brain on a virtual clock, with a simulated compiler and device.
#pragma once

#include "base/Status.h"
#include "engine/Brain.h"
#include "metrics/Event.h"
#include "schema/Module.h"

#include <memory>
#include <string>
#include <vector>

namespace pgkp::rt {

struct ReplayRequest {
  double arrival = 0; ///< s
  uint32_t entry = 0;
  std::vector<int64_t> roots;
};

struct ReplayOptions {
  std::string policy = "predictive";
  bool fallbackGeneric = true;
  bool announce = true; ///< the runtime hears of a request when it arrives
  unsigned workers = 1;
  double lead = 0; ///< s of preparation before the first arrival
  uint64_t seed = 1;
  /// A variant's compile time is lognormal, drawn from seed and key alone, so
  /// that all policies pay the same for the same variant.
  double compileMedian = 0.15, compileSigma = 0.6;
  double load = 0.001; ///< s
  /// Kernel time: max(flops / rate, bytes / bandwidth) + overhead, times the
  /// slowdown if generic.
  double flopsPerSecond = 20e9, bytesPerSecond = 10e9, overhead = 1e-6;
  double matmulSlowdown = 2.0, otherSlowdown = 1.1; ///< design section 6
  std::shared_ptr<const schema::ProfileT> profile;
};

struct ReplayResult {
  RunInfo info;
  std::vector<Event> events;
};

/// Plays the requests one after the other, as one server would. Times in the
/// log are virtual nanoseconds. Same input, same log. invalidArgument: a policy
/// that does not exist.
Expected<ReplayResult> replay(std::shared_ptr<const Module> module,
                              const std::vector<ReplayRequest> &requests,
                              const ReplayOptions &options);

} // namespace pgkp::rt
