// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Forecasts corrected by what came true.
#pragma once

#include "base/Clock.h"
#include "forecast/Drift.h"
#include "schema/FirstUse.h"

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

namespace pgkp::rt::forecast {

/// Makes F(horizons[i]) p[i], keeping the date: `dateMass` is what of it counts
/// as dated.
FirstUse fit(FirstUse use, const std::array<double, FirstUse::kHorizons> &p);

/// Histograms of forecasts of F at each horizon, one per kind of forecast, with
/// the share that came true, made monotone by pooling adjacent violators (Ayer
/// et al., 1955; algorithms.md section 1e). Forecasts are sampled evenly in
/// time, whatever comes of them: a sample that ended at the use would make
/// busy times count more. Thread-compatible.
class Calibrator {
public:
  static constexpr size_t kBins = 20, kHorizons = FirstUse::kHorizons;
  static constexpr size_t kKinds = 8;
  /// Samples of a key within one horizon's length, each weighing that much
  /// less: they overlap.
  static constexpr unsigned kOverlap = 4;

  explicit Calibrator(size_t numKeys)
      : lastUse(numKeys, kNever), due(numKeys) {}

  /// What the experts behind a forecast said; negative: nothing.
  using Opinions = std::array<float, 3>;
  /// What becomes known of a sample when its horizon closes.
  struct Closed {
    size_t horizon;
    Opinions opinions; ///< of `sample`
    bool used;
  };

  bool dueAt(KeyId key, size_t horizon, TimeNs now) const {
    return due[key][horizon] <= now && open[horizon].size() < kMaxOpen;
  }
  /// A forecast of this kind, before and after correction.
  void sample(KeyId key, size_t horizon, size_t kind, double raw,
              double corrected, const Opinions &opinions, TimeNs now);
  /// Closes horizons; `closed` is called for each. Call it before `onUse`.
  template <typename F> void advance(TimeNs now, F &&closed) {
    for (size_t h = 0; h < kHorizons; ++h)
      while (!open[h].empty() && open[h].front().from < now - kLength[h])
        closed(close(h));
  }
  void onUse(KeyId key, TimeNs now) { lastUse[key] = now; }
  /// Renews the correction. Costs some 10 us per histogram that changed.
  void refit();

  /// F(horizons[i]) as experience has it.
  std::array<double, kHorizons>
  correct(size_t kind, const std::array<double, kHorizons> &raw) const;
  /// Lower confidence bound over mean at the longest horizon: from `assumed`
  /// where nothing was counted to what the counts say.
  double lowerShare(size_t kind, double raw, double assumed) const;

  /// Alarms of the drift test so far. Each has halved all counts.
  unsigned alarms() const { return alarmed; }

private:
  static constexpr TimeNs kNever = std::numeric_limits<TimeNs>::min();
  static constexpr size_t kMaxOpen = size_t{1} << 15; ///< per horizon
  static constexpr std::array<TimeNs, kHorizons> kLength = {
      kNsPerSecond, 10 * kNsPerSecond, 60 * kNsPerSecond, 600 * kNsPerSecond};
  /// Independent samples that the raw forecast weighs.
  static constexpr double kPrior = 4;
  /// Samples of a bin beyond which older ones fade.
  static constexpr double kWindow = 512;
  static constexpr size_t kTenSeconds = 1;

  struct Sample {
    TimeNs from;
    KeyId key;
    Opinions opinions;
    float raw, corrected;
    uint8_t kind;
  };
  struct Bin {
    double used = 0, total = 0, forecast = 0;
    double value = 0;      ///< calibrated
    double center = 0;     ///< mean raw forecast
    double lowerShare = 1; ///< of the counts alone
  };
  struct Histogram {
    std::array<Bin, kBins> bins{};
    bool changed = false, fitted = false;
  };

  static size_t binOf(double p);
  static double centerOf(size_t bin);
  Closed close(size_t horizon);

  std::vector<TimeNs> lastUse;
  std::vector<std::array<TimeNs, kHorizons>> due;
  std::array<std::deque<Sample>, kHorizons> open; ///< by time
  std::array<std::array<Histogram, kKinds>, kHorizons> histograms{};
  Drift drift;
  unsigned alarmed = 0;
};

} // namespace pgkp::rt::forecast
