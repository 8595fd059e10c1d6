// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Percentiles by nearest rank.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace pgkp::rt {

/// The smallest value that at least `percent` % of the values do not exceed:
/// always one of them. `sorted` ascending and not empty; `percent` in (0, 100].
inline double nearestRank(std::span<const double> sorted, double percent) {
  const double rank =
      std::ceil(percent / 100 * static_cast<double>(sorted.size()));
  const auto index = static_cast<size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

} // namespace pgkp::rt
