// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Forecasts corrected by what came true.
#pragma once

#include "base/Clock.h"
#include "schema/FirstUse.h"

#include <array>
#include <deque>
#include <vector>

namespace pgkp::rt::forecast {

/// A histogram of forecasts of F(10 s) in 20 bins, one per provenance, with the
/// share that came true, made monotone by pooling adjacent violators
/// (algorithms.md section 1e). Only undated forecasts: dated ones carry their
/// own record of kept promises. Thread-compatible.
class Calibrator {
public:
  static constexpr size_t kBins = 20;
  static constexpr TimeNs kHorizon = 10 * kNsPerSecond;

  explicit Calibrator(size_t numKeys) : open(numKeys) {}

  /// Watches this forecast until the key is used or the horizon closes. One at
  /// a time per key.
  void watch(KeyId key, const FirstUse &use, TimeNs now);
  bool watching(KeyId key) const { return open[key].active; }
  void onUse(KeyId key, TimeNs now);
  /// Closes horizons and renews the correction.
  void advance(TimeNs now);

  /// The forecast with F(10 s) as experience has it.
  FirstUse correct(FirstUse use) const;

private:
  static constexpr size_t kSources =
      static_cast<size_t>(schema::Provenance::MAX) + 1;
  /// Forecasts that the raw one weighs against what was counted.
  static constexpr double kPrior = 4;
  struct Watch {
    bool active = false;
    uint8_t source = 0, bin = 0;
    double forecast = 0;
    TimeNs until = 0;
  };
  struct Bin {
    double used = 0, total = 0, forecast = 0;
    double shift = 0; ///< calibrated minus mean forecast
  };

  void close(Watch &watch, bool used);

  std::vector<Watch> open;
  std::deque<std::pair<TimeNs, KeyId>> closing; ///< by time
  std::array<std::array<Bin, kBins>, kSources> bins{};
  bool changed = false;
};

} // namespace pgkp::rt::forecast
