// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Notices that forecasts have become worse than they were.
#pragma once

#include <algorithm>
#include <cmath>

namespace pgkp::rt::forecast {

/// The Page-Hinkley test on the log-loss (algorithms.md section 1e): an alarm
/// when the loss has exceeded its mean so far, plus a tolerance, by a threshold
/// in sum. O(1). Thread-compatible.
class Drift {
public:
  static constexpr double kTolerance = 0.05, kThreshold = 25;

  /// \p weight: how much of an independent observation it is. \returns true on
  /// an alarm, after which the test starts anew.
  bool add(double forecast, bool used, double weight) {
    const double hit = std::clamp(used ? forecast : 1 - forecast, 1e-3, 1.0);
    const double loss = -std::log(hit);
    seen += weight;
    mean += weight * (loss - mean) / seen;
    sum = std::max(0.0, sum + weight * (loss - mean - kTolerance));
    if (sum <= kThreshold)
      return false;
    *this = {};
    return true;
  }

private:
  double seen = 0, mean = 0, sum = 0;
};

} // namespace pgkp::rt::forecast
