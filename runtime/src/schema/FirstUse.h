// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What a forecast says about one key; produced by forecast, read by
/// planner and metrics.
#pragma once

#include "schema/common_generated.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace pgkp::rt {

/// A (kernel, class) pair of the loaded module: small and dense.
using KeyId = uint32_t;
constexpr KeyId kNoKey = ~KeyId{0};

/// Distribution of the time x until a key's next (for an unused key: first)
/// use, in seconds from the moment of the forecast. Two independent sources,
/// of which the earlier one counts:
///   F(x) = 1 - (1 - U(x)) (1 - D(x))
///   U(x) = 1 - exp(-Lambda(x))          undated: nobody has named a time
///   D(x) = dateMass Phi((x - date) / sigma)   announced or extrapolated
/// Lambda is the cumulative hazard: given at `horizons`, linear between them (a
/// piecewise exponential distribution) and constant from the last one on.
/// algorithms.md sections 1 and 2b.
struct FirstUse {
  static constexpr size_t kHorizons = 4;
  static constexpr std::array<double, kHorizons> horizons = {1, 10, 60,
                                                             600}; ///< s
  /// The cumulative hazard of a probability of 1: F stays below 1 by 1e-12.
  static constexpr double kCertain = 27.6;

  std::array<double, kHorizons> hazard{}; ///< Lambda(horizons[i]), ascending
  double dateMass = 0;
  double date = -1;      ///< s; negative: undated
  double sigma = 0;      ///< s; 0: exact
  double useRate = 0;    ///< expected uses per second once it is in use
  double lowerShare = 1; ///< lower confidence bound of F(x) over F(x), any x
  schema::Provenance provenance = schema::Provenance::structure;

  /// Undated, with P(first use within horizons[i]) = p[i], made ascending.
  static FirstUse within(const std::array<double, kHorizons> &p) {
    FirstUse use;
    double least = 0;
    for (size_t i = 0; i < kHorizons; ++i)
      use.hazard[i] = least =
          std::clamp(-std::log1p(-std::clamp(p[i], 0.0, 1.0)), least, kCertain);
    return use;
  }
  /// Undated: used at all with probability `mass`, then exponential with this
  /// rate (1/s).
  static FirstUse exponential(double mass, double rate) {
    std::array<double, kHorizons> p;
    for (size_t i = 0; i < kHorizons; ++i)
      p[i] = mass * -std::expm1(-rate * horizons[i]);
    return within(p);
  }
  /// At about `date`, with probability `mass`.
  static FirstUse dated(double mass, double date, double sigma) {
    FirstUse use;
    use.dateMass = mass;
    use.date = date;
    use.sigma = sigma;
    return use;
  }

  bool dated() const { return date >= 0; }
  /// False: some number is infinite or none at all, or no probability.
  bool valid() const {
    double sum = date + sigma + useRate, last = 0;
    for (double h : hazard) {
      if (!(h >= last))
        return false;
      sum += last = h;
    }
    return std::isfinite(sum) && useRate >= 0 && dateMass >= 0 &&
           dateMass <= 1 && lowerShare >= 0 && lowerShare <= 1;
  }

  /// Lambda(x).
  double cumulative(double x) const {
    double from = 0, before = 0;
    for (size_t i = 0; i < kHorizons; ++i) {
      if (x < horizons[i])
        return before +
               (hazard[i] - before) * ((x - from) / (horizons[i] - from));
      from = horizons[i];
      before = hazard[i];
    }
    return before;
  }
  double datedCdf(double x) const {
    if (!dated() || x <= 0)
      return 0;
    if (sigma <= 0)
      return x >= date ? dateMass : 0;
    return dateMass * 0.5 * std::erfc((date - x) / (sigma * std::sqrt(2.0)));
  }
  /// F(x) = P(first use within x seconds).
  double cdf(double x) const {
    if (!(x > 0))
      return 0;
    const double survives = std::exp(-cumulative(x));
    return 1 - survives * (1 - datedCdf(x));
  }
  /// The lower confidence bound of F(x).
  double lowerCdf(double x) const { return lowerShare * cdf(x); }
  /// P(used at all within the planning horizon, the longest of `horizons`, or
  /// at the date, which may be later).
  double mass() const {
    return 1 - std::exp(-hazard[kHorizons - 1]) * (dated() ? 1 - dateMass : 1);
  }
  double lower() const { return lowerShare * mass(); }

  /// F's derivative, per second. An exact date has none: it counts as 1 ns
  /// wide.
  double density(double x) const {
    if (!(x >= 0))
      return 0;
    double from = 0, before = 0, rate = 0;
    for (size_t i = 0; i < kHorizons; ++i) {
      if (x < horizons[i]) {
        rate = (hazard[i] - before) / (horizons[i] - from);
        break;
      }
      from = horizons[i];
      before = hazard[i];
    }
    const double survives = std::exp(-cumulative(x));
    double d = 0;
    if (dated()) {
      const double s = std::max(sigma, 1e-9), z = (x - date) / s;
      d = dateMass * std::exp(-0.5 * z * z) / (s * std::sqrt(2 * M_PI));
    }
    return survives * (rate * (1 - datedCdf(x)) + d);
  }

  /// The integral of F over (from, to], s: the time for which the key is
  /// expected to be in use. The date counts as exact.
  double timeInUse(double from, double to) const {
    from = std::max(from, 0.0);
    if (!(to > from))
      return 0;
    double survival = 0; // integral of 1 - F
    const auto add = [&](double a, double b) {
      // Over one piece of Lambda, on one side of the date.
      const double alive = dated() && a >= date ? 1 - dateMass : 1;
      const double la = cumulative(a), lb = cumulative(b), rise = lb - la;
      survival += alive * std::exp(-la) * (b - a) *
                  (rise > 1e-9 ? -std::expm1(-rise) / rise : 1 - rise / 2);
    };
    const auto split = [&](double a, double b) {
      if (dated() && date > a && date < b) {
        add(a, date);
        add(date, b);
      } else {
        add(a, b);
      }
    };
    double at = from;
    for (double horizon : horizons)
      if (horizon > at && horizon < to) {
        split(at, horizon);
        at = horizon;
      }
    split(at, to);
    return std::max(0.0, (to - from) - survival);
  }
  /// E[N(from, to)]: the first uses in (from, to] and, from the first use on,
  /// the others at `useRate`.
  double expectedUses(double from, double to) const {
    return to > from ? cdf(to) - cdf(from) + useRate * timeInUse(from, to) : 0;
  }
};

} // namespace pgkp::rt
