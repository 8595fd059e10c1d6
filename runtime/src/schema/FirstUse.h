// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What a forecast says about one key; produced by forecast, read by
/// planner and metrics.
#pragma once

#include "schema/common_generated.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace pgkp::rt {

/// A (kernel, class) pair of the loaded module: small and dense.
using KeyId = uint32_t;
constexpr KeyId kNoKey = ~KeyId{0};

/// Distribution of the time until a key's next (for an unused key: first) use.
///   F(x) = mass * (1 - exp(-rate x))           hazard: no date known
///   F(x) = mass * Phi((x - date) / sigma)      dated: announced or
///   extrapolated
/// algorithms.md section 1 and 2b. Times in seconds from the moment of the
/// forecast.
struct FirstUse {
  double mass = 0;    ///< P(used at all within the planning horizon)
  double hazard = 0;  ///< 1/s, for undated forecasts
  double date = -1;   ///< s; negative: undated
  double sigma = 0;   ///< s, for dated forecasts
  double useRate = 0; ///< expected uses per second once it is in use
  double lower = 0;   ///< lower confidence bound of `mass`
  schema::Provenance provenance = schema::Provenance::structure;

  bool dated() const { return date >= 0; }

  /// P(first use within x seconds).
  double cdf(double x) const {
    if (x <= 0)
      return 0;
    if (!dated())
      return mass * -std::expm1(-hazard * x);
    if (sigma <= 0)
      return x >= date ? mass : 0;
    return mass * 0.5 * std::erfc((date - x) / (sigma * std::sqrt(2.0)));
  }

  /// Its derivative, per second.
  double density(double x) const {
    if (!dated())
      return x < 0 ? 0 : mass * hazard * std::exp(-hazard * x);
    const double s = std::max(sigma, 1e-9), z = (x - date) / s;
    return mass * std::exp(-0.5 * z * z) / (s * std::sqrt(2 * M_PI));
  }
};

} // namespace pgkp::rt
