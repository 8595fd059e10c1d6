// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Is a variant faster than the generic one? Measured, not assumed.
#pragma once

#include "base/Clock.h"
#include "base/Status.h"
#include "devices/device/Device.h"
#include "schema/Module.h"

#include <memory>
#include <span>

namespace pgkp::rt {

struct TuneOptions {
  /// No new pair begins after this much device time; three pairs run anyway.
  TimeNs budget = 50 * kNsPerMs;
  unsigned minPairs = 3, maxPairs = 15;
  /// Short kernels are launched several times in a row, for at least this long,
  /// so that the clock's resolution and the launch do not dominate.
  TimeNs minSample = 20 * kNsPerUs;
  /// The one-shot race (algorithms.md section 4): a variant whose first timed
  /// run takes this many times the generic one's is dropped at once.
  double raceLimit = 1.3;
  /// A variant must take less than this share of the generic time.
  double worthRatio = 0.98;
  /// At least this share of the pairs must agree.
  double agreement = 0.75;
  /// Scratch for the arguments at most.
  uint64_t maxBytes = uint64_t{1} << 30;
};

struct TuneSide {
  const Image *image = nullptr;
  uint64_t workspaceBytes = 0;
};

struct TuneResult {
  double genericNs = 0, variantNs = 0; ///< medians for one launch
  unsigned pairs = 0;
  unsigned launches = 0;    ///< warm-up included
  double deviceSeconds = 0; ///< the same
  bool worth = false;       ///< faster, and most pairs say so
  /// Generic time / variant time: what dispatch orders guarded variants by.
  double gain() const { return variantNs > 0 ? genericNs / variantNs : 0; }
};

/// Measures pairs on scratch memory and a stream of its own. Floating-point
/// arguments get seeded values in [-1, 1); integer ones are 0, which is a valid
/// index wherever any is. Thread-compatible.
class Tuner {
public:
  /// Both must outlive the tuner.
  Tuner(Device &device, const Clock &clock) : device(device), clock(clock) {}

  /// invalidArgument: a shape has no value at these extents; exhausted: more
  /// than maxBytes of arguments; and what launches say.
  Expected<TuneResult> measure(const KernelInfo &kernel,
                               std::span<const int64_t> extents,
                               const TuneSide &generic, const TuneSide &variant,
                               const TuneOptions &options = {});

private:
  Device &device;
  const Clock &clock;
  std::unique_ptr<Stream> stream; ///< made at the first measurement
};

} // namespace pgkp::rt
