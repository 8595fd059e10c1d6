// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Served requests from stated distributions.
#pragma once

#include "Trace.h"

namespace pgkp::rt {

/// Arrivals: a Poisson process whose rate is `rate`, times `burst` in a share
/// of `burstShare` of the minutes (a two-state modulated Poisson process).
/// Lengths: lognormal with these medians and sigmas, independent of each other
/// and of time, cut at `maxTokens`; with probability `repeat` a request has the
/// prompt length of an earlier one, uniformly chosen (templates).
struct SyntheticOptions {
  uint64_t seed = 1;
  size_t requests = 10000;
  double rate = 5; ///< per second
  double burst = 1, burstShare = 0;
  double promptMedian = 900, promptSigma = 1.1;
  double outputMedian = 130, outputSigma = 0.9;
  double repeat = 0;
  int64_t maxTokens = 16384;
};

ServingTrace makeSynthetic(const SyntheticOptions &options);

/// "requests=1000,rate=5,...", with the names above; invalidArgument: one that
/// is not, or a value out of range.
Expected<SyntheticOptions> parseSynthetic(std::string_view text);

} // namespace pgkp::rt
