// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast/ProfileModel.h"
#include "forecast/Beta.h"
#include "schema/ContentKey.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cmath>

namespace pgkp::rt::forecast {

/// The time of first use varies from run to run by this share of it.
static constexpr double kSpread = 0.3, kMinSigma = 0.05;
/// How far ahead the first request is when nobody knows, s.
static constexpr double kUnknownStart = 10;
/// A key that did not come when it should have: the longest mean wait assumed
/// from then on, s.
static constexpr double kOverdueWait = 60;
/// Sigmas after its date from which on a key is overdue.
static constexpr double kOverdue = 2;

static double finiteOr0(double x) {
  return std::isfinite(x) ? std::max(x, 0.0) : 0;
}

ProfileModel::ProfileModel(const Module &module,
                           const schema::ProfileT *profile)
    : rows(module.keys().size()) {
  if (!profile || !profile->module_hash ||
      toDigest(*profile->module_hash) != module.hash())
    return;
  matches = true;
  boost::unordered_flat_map<Digest, KeyId, DigestHash> byDigest;
  for (KeyId key = 0; key < module.keys().size(); ++key)
    byDigest.emplace(module.keys()[key].digest, key);
  runs = finiteOr0(profile->runs);
  for (const auto &entry : profile->keys) {
    if (!entry || !entry->kernel_hash)
      continue;
    auto it =
        byDigest.find(keyDigest(toDigest(*entry->kernel_hash), entry->facts));
    if (it == byDigest.end() || rows[it->second].known)
      continue;
    const double used = std::min(finiteOr0(entry->runs_used), runs);
    const double a = used + 1, b = runs - used + 1;
    rows[it->second] = {true, a / (a + b), betaLower(a, b),
                        finiteOr0(entry->first_use_s), finiteOr0(entry->rate)};
    order.push_back(it->second);
  }
}

std::optional<FirstUse> ProfileModel::forecast(KeyId key,
                                               std::optional<TimeNs> begun,
                                               TimeNs now) const {
  const Row &row = rows[key];
  if (!row.known)
    return std::nullopt;
  const auto finish = [&](FirstUse use, double mass, double lower) {
    use.provenance = schema::Provenance::profile;
    use.useRate = row.rate;
    use.lowerShare = mass > 0 ? std::min(1.0, lower / mass) : 0;
    return use;
  };
  if (!begun)
    return finish(
        FirstUse::dated(row.mass, row.firstUse + kUnknownStart,
                        std::max(kSpread * row.firstUse, kUnknownStart / 2)),
        row.mass, row.lower);
  const double elapsed =
      toSeconds(now - *begun); // negative before an announced begin
  const double sigma = std::max(kSpread * row.firstUse, kMinSigma);
  const double z = (elapsed - row.firstUse) / sigma;
  // Bayes on "not used so far".
  const double past = z > 8 ? 1.0 : 0.5 * std::erfc(-z / std::sqrt(2.0));
  const double overdue =
      std::max(0.0, elapsed - row.firstUse - kOverdue * sigma);
  double unused = 1 - past;
  const double wait = std::min(kOverdueWait, std::max(row.firstUse, 1.0));
  if (z > kOverdue)
    // The date has passed for good; what is left waits exponentially.
    unused =
        0.5 * std::erfc(kOverdue / std::sqrt(2.0)) * std::exp(-overdue / wait);
  const auto posterior = [unused](double p) {
    return p * unused / (1 - p + p * unused);
  };
  const double mass = posterior(row.mass);
  return finish(
      z > kOverdue
          ? FirstUse::exponential(mass, 1 / wait)
          : FirstUse::dated(mass, std::max(0.0, row.firstUse - elapsed), sigma),
      mass, posterior(row.lower));
}

} // namespace pgkp::rt::forecast
