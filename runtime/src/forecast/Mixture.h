// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Several models of one event, weighted by how well they did.
#pragma once

#include "schema/FirstUse.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace pgkp::rt::forecast {

/// Fixed share (Herbster and Warmuth, Machine Learning 32, 1998) over experts
/// that may have no opinion of a key (sleeping experts: Freund et al., STOC
/// 1997), at each horizon of its own. Observations of overlapping windows are
/// far from independent, so the loss is tempered. Thread-compatible.
template <size_t Experts> class Mixture {
public:
  static constexpr size_t kHorizons = FirstUse::kHorizons;
  /// What every step gives back to all experts alike.
  static constexpr double kShare = 0.002, kShareInDrift = 0.05;
  static constexpr double kTemper = 0.1;

  /// \p prior: the weights to begin with; they sum to 1.
  explicit Mixture(const std::array<double, Experts> &prior) {
    weights.fill(prior);
  }

  /// Weights at the horizon of those awake; they sum to 1, or are all 0.
  std::array<double, Experts> at(size_t horizon,
                                 const std::array<bool, Experts> &awake) const {
    std::array<double, Experts> out{};
    double sum = 0;
    for (size_t j = 0; j < Experts; ++j)
      sum += awake[j] ? weights[horizon][j] : 0;
    for (size_t j = 0; j < Experts && sum > 0; ++j)
      out[j] = awake[j] ? weights[horizon][j] / sum : 0;
    return out;
  }

  /// The horizon has closed: expert j had said p[j]; negative: nothing.
  void learn(size_t horizon, const std::array<float, Experts> &p, bool used) {
    auto &row = weights[horizon];
    double awake = 0, after = 0;
    std::array<double, Experts> next = row;
    for (size_t j = 0; j < Experts; ++j) {
      if (p[j] < 0)
        continue;
      // No forecast is ever certain enough to be ruined by one event.
      const double hit = std::clamp<double>(used ? p[j] : 1 - p[j], 1e-3, 1);
      next[j] = row[j] * std::pow(hit, kTemper);
      awake += row[j];
      after += next[j];
    }
    if (!(after > 0))
      return;
    const double share = drifting > 0 ? kShareInDrift : kShare;
    drifting -= drifting > 0;
    size_t count = 0;
    for (float x : p)
      count += x >= 0;
    for (size_t j = 0; j < Experts; ++j)
      if (p[j] >= 0)
        row[j] = awake * ((1 - share) * next[j] / after +
                          share / static_cast<double>(count));
  }

  /// For the next `steps` observations the weights move fast.
  void drift(unsigned steps) { drifting = steps; }

private:
  std::array<std::array<double, Experts>, kHorizons> weights;
  unsigned drifting = 0;
};

} // namespace pgkp::rt::forecast
