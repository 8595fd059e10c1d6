// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What leaves first: GreedyDual-Size with frequency and cost
/// (Cherkasova, "Improving WWW proxies performance with
/// Greedy-Dual-Size-Frequency caching policy", HP Labs 1998), on either tier.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace pgkp::rt {

/// What is assumed of a record whose making nobody timed.
constexpr double kAssumedCostMs = 100;
/// Uses count half after a week.
constexpr double kUseHalfLifeS = 7 * 24 * 3600.0;

/// Priority H = L + uses * cost / size. The lowest H leaves first, and L rises
/// to it: what is not used again is overtaken by what came later.
class GreedyDual {
public:
  explicit GreedyDual(double inflation = 0) : level(inflation) {}
  double priority(double uses, double costMs, uint64_t bytes) const {
    return level + std::max(uses, 0.0) *
                       (costMs > 0 ? costMs : kAssumedCostMs) /
                       static_cast<double>(std::max<uint64_t>(bytes, 1));
  }
  void evicted(double priority) { level = std::max(level, priority); }
  double inflation() const { return level; }

private:
  double level;
};

/// `uses` counted at time `lastS`, one more at `nowS`. A clock that was set
/// back ages nothing.
inline double agedUses(double uses, int64_t lastS, int64_t nowS) {
  const double passed = static_cast<double>(std::max<int64_t>(nowS - lastS, 0));
  return uses * std::exp2(-passed / kUseHalfLifeS) + 1;
}

} // namespace pgkp::rt
