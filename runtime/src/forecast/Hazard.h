// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Time to the next use of a key that has been used: pooled age x
/// frequency table.
#pragma once

#include "base/Clock.h"
#include "schema/FirstUse.h"

#include <array>
#include <cstddef>
#include <vector>

namespace pgkp::rt::forecast {

/// algorithms.md section 1b. A cell is (time since the last use, decayed count
/// of uses); it counts, over all keys, in how much of the time spent in it a
/// use followed within 1, 10, 60 and 600 s. Time is counted whole, not sampled
/// at ticks: a gap between two uses crosses each age once, and which part of it
/// lies within a horizon of the gap's end is known exactly. Cells with little
/// behind them lean on the decayed Gamma-Poisson forecast of the key itself; a
/// key with gaps of its own at an age weighs them against the pooled cell.
/// Thread-compatible.
class Hazard {
public:
  static constexpr size_t kAges = 11, kCounts = 9,
                          kHorizons = FirstUse::kHorizons;
  static constexpr auto horizons = FirstUse::horizons;

  explicit Hazard(size_t numKeys) : keys(numKeys), cells(kAges * kCounts) {}

  void onUse(KeyId key, TimeNs now);
  /// Counts the part of open gaps whose horizon has closed without a use.
  void advance(TimeNs now);

  bool seen(KeyId key) const { return keys[key].sightings > 0; }
  /// P(next use within horizons[i]), ascending.
  std::array<double, kHorizons> probabilities(KeyId key, TimeNs now) const;
  /// The geometric mean of seen keys' uses per second since their first; 0:
  /// none was seen.
  double typicalRate() const { return typical; }

  /// Seen keys only.
  FirstUse forecast(KeyId key, TimeNs now) const;

private:
  /// The key's own gaps at one age.
  struct Own {
    std::array<float, kHorizons> used{}, seen{}; ///< s
    float gaps = 0;                              ///< that reached this age
  };
  struct Key {
    TimeNs first = 0, last = 0;
    double count = 0; ///< decayed, at `last`
    double sightings = 0;
    std::array<float, kHorizons>
        counted{};   ///< ages of the open gap already counted, s
    size_t ages = 0; ///< bins that the open gap has been counted in
    std::array<Own, kAges> own{};
  };
  struct Cell {
    std::array<double, kHorizons> used{}, seen{}; ///< s
    double lowerShare =
        0.5; ///< lower bound of the longest horizon's, over its mean
    bool changed = true;
  };

  static size_t ageBin(double age);
  static double ageBinEnd(size_t bin);
  const Cell &cellAt(double age, double count) const;
  /// Counts ages [from, to) of a gap for one horizon.
  void count(Key &key, size_t horizon, double from, double to, bool used);
  /// Uses per second since the first.
  static double wholeRate(const Key &key, TimeNs now);
  double gammaPoisson(const Key &key, double age, TimeNs now,
                      double horizon) const;

  std::vector<Key> keys;
  std::vector<KeyId> seenKeys;
  double typical = 0;
  std::vector<Cell> cells;
};

} // namespace pgkp::rt::forecast
