// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast/Structure.h"
#include "forecast/Beta.h"

#include <algorithm>
#include <cmath>

namespace pgkp::rt::forecast {

/// First uses are heavy-tailed: survival (kScale / (kScale + t))^kShape, a
/// Lomax distribution. Half come within 17 s, 95 % within 1,100 s, as in
/// replays of serving traces (algorithms.md section 0).
static constexpr double kShape = 0.6, kScale = 8;
static constexpr double kEvidence =
    2; ///< what the manifest's word counts for, in runs
static constexpr double kUseRate = 0.1; ///< uses per second once used

Structure::Structure(const Module &module) : rows(module.keys().size()) {
  for (const KernelInfo &kernel : module.kernels())
    for (size_t i = 0; i < kernel.classes.size(); ++i) {
      const double p = kernel.classes[i].probability;
      if (!(p > 0))
        continue;
      const auto key = static_cast<KeyId>(kernel.firstKey + i);
      rows[key] = {
          static_cast<float>(p),
          static_cast<float>(betaLower(kEvidence * p, kEvidence * (1 - p)))};
      order.push_back(key);
    }
}

std::optional<FirstUse> Structure::forecast(KeyId key,
                                            std::optional<TimeNs> begun,
                                            TimeNs now, double share) const {
  const Row &row = rows[key];
  if (row.mass == 0)
    return std::nullopt;
  const double waited = begun ? std::max(0.0, toSeconds(now - *begun)) : 0;
  const auto unusedAt = [](double t) {
    return std::pow(kScale / (kScale + t), kShape);
  };
  const double unused = unusedAt(waited);
  auto posterior = [unused](double p) {
    return p * unused / (1 - p + p * unused);
  };
  // A class that is certain is certain only to come, not to have come yet.
  const double mass = row.mass < 1 ? posterior(row.mass) : 1;
  const double lower = row.lower < 1 ? posterior(row.lower) : 1;
  std::array<double, FirstUse::kHorizons> p;
  for (size_t i = 0; i < p.size(); ++i)
    p[i] =
        share * mass * (1 - unusedAt(waited + FirstUse::horizons[i]) / unused);
  FirstUse use = FirstUse::within(p);
  use.provenance = schema::Provenance::structure;
  use.lowerShare = mass > 0 ? std::min(1.0, lower / mass) : 0;
  use.useRate = kUseRate;
  return use;
}

} // namespace pgkp::rt::forecast
