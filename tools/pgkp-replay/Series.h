// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What the page draws of a run, condensed while the log is written.
#pragma once

#include "metrics/EventLog.h"

#include <string>
#include <vector>

namespace pgkp::rt {

struct Series {
  /// A key's way: when its job ran, when it was ready, when it was first used.
  struct Key {
    std::string name;
    double jobStart = -1, ready = -1, firstUse = -1; ///< s, -1: never
    bool speculative = false;
    double cpu = 0; ///< s
    uint64_t uses = 0;
  };
  std::vector<Key> keys; ///< those that were used or compiled, by first event
  /// Lost seconds up to the end of each bin.
  std::vector<double> lost;
  double binSeconds = 1, end = 0;
  /// Forecasts of F(10 s) in 20 bins: their number, sum, and how many came
  /// true.
  struct Bin {
    double forecast = 0;
    uint64_t total = 0, used = 0;
  };
  std::vector<Bin> calibration;
};

Series makeSeries(const std::vector<Event> &events);

} // namespace pgkp::rt
