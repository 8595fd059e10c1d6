// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast/Claims.h"
#include "forecast/Beta.h"

#include <algorithm>
#include <cmath>

namespace pgkp::rt::forecast {

/// Announcements are kept unless experience says otherwise: Beta(49, 1), mean
/// 0.98.
static constexpr double kTrust = 49, kDistrust = 1;
/// A claim that is this overdue, or as late as it was early, is void.
static constexpr TimeNs kGrace = 30 * kNsPerSecond;
/// How long after its begin a request may still use a key for the first time.
static constexpr TimeNs kRunning = 10 * kNsPerSecond;
/// Uncertainty of a date: a tenth of the time until it (algorithms.md section
/// 2b), or what the errors so far say.
static constexpr double kSigmaShare = 0.1, kMinSigma = 1e-2;
static constexpr double kUseHorizon =
    600; ///< s over which announced uses make a rate
/// A use keeps a claim of a date up to this far ahead, or 3 mean errors.
static constexpr double kMinSlack = 0.5;
static constexpr double kMinLate = 0.05;
static constexpr double kErrorWeight = 0.02;
/// Claims after which older ones count half.
static constexpr double kWindow = 4096;
static constexpr size_t kMaxClaims = 256; ///< of a key

const Claims::Announcement *Claims::find(uint64_t id) const {
  return id >= firstId && id - firstId < announcements.size()
             ? &announcements[id - firstId]
             : nullptr;
}

bool Claims::stands(const Claim &claim, TimeNs now) const {
  return claim.expires >= now;
}

void Claims::add(KeyId key, const Claim &claim) {
  auto &list = claims[key];
  if (list.empty())
    claimed.push_back(key);
  // More than this says nothing new.
  if (list.size() >= kMaxClaims)
    return;
  list.insert(std::upper_bound(list.begin(), list.end(), claim,
                               [](const Claim &a, const Claim &b) {
                                 return a.when < b.when;
                               }),
              claim);
}

void Claims::expire(TimeNs now) {
  for (Announcement &announcement : announcements)
    if (announcement.expires < now)
      announcement.pending = false;
  while (!announcements.empty() && !announcements.front().pending) {
    announcements.pop_front();
    ++firstId;
  }
}

void Claims::keep(bool inUse, double lateness) {
  trust[inUse].kept += 1;
  trust[inUse].changed = true;
  error += kErrorWeight * (std::abs(lateness) - error);
  if (lateness > 0)
    late += kErrorWeight * (lateness - late);
}

void Claims::sweep(TimeNs now) {
  expire(now);
  std::erase_if(claimed, [&](KeyId key) {
    std::erase_if(claims[key], [&](const Claim &claim) {
      if (stands(claim, now))
        return false;
      if (claim.announcement != 0) {
        trust[used[key]].broken += 1;
        trust[used[key]].changed = true;
      }
      return true;
    });
    return claims[key].empty();
  });
  for (Trust &t : trust) {
    if (!t.changed)
      continue;
    t.changed = false;
    if (t.kept + t.broken > kWindow) { // old times weigh less
      t.kept /= 2;
      t.broken /= 2;
    }
    const double a = kTrust + t.kept, b = kDistrust + t.broken;
    t.mean = a / (a + b);
    t.lower = betaLower(a, b);
  }
}

void Claims::announce(uint64_t request, std::span<const KeyId> keys,
                      TimeNs when, TimeNs now) {
  expire(now);
  const TimeNs lead = std::max<TimeNs>(0, when - now);
  const TimeNs grace = std::max(kGrace, lead);
  const TimeNs expires =
      when > kForever - grace ? kForever : std::max(when, now) + grace;
  announcements.push_back({request, when, expires, true});
  const uint64_t id = firstId + announcements.size() - 1;
  for (KeyId key : keys)
    add(key, {when, expires, 1, id, schema::Provenance::announcement});
}

void Claims::begin(uint64_t request, std::span<const KeyId> keys, TimeNs now) {
  Announcement *match = nullptr;
  for (Announcement &announcement : announcements)
    if (announcement.pending && announcement.request == request &&
        (!match || announcement.when < match->when))
      match = &announcement;
  if (match) {
    // Its keys are about to be used; that will keep the claims.
    match->pending = false;
    match->when = now;
  }
  expire(now);
  for (KeyId key : keys)
    add(key, {now, now + kRunning, 1, 0, schema::Provenance::announcement});
}

void Claims::hint(KeyId key, double probability, double slackSeconds,
                  TimeNs now) {
  const double slack = slackSeconds >= 0 ? std::min(slackSeconds, 1e6) : 0;
  const TimeNs when = now + fromSeconds(slack);
  add(key,
      {when, when + std::max(kRunning, fromSeconds(slack)),
       std::clamp(probability, 0.0, 1.0), 0, schema::Provenance::structure});
}

void Claims::onUse(KeyId key, TimeNs now) {
  const TimeNs slack = fromSeconds(std::max(kMinSlack, 3 * error));
  std::erase_if(claims[key], [&](const Claim &claim) {
    // A use long before the date leaves the claim for the request it is of.
    if (claim.announcement == 0)
      return true;
    if (claim.when > now + slack)
      return false;
    keep(used[key], toSeconds(now - claim.when));
    return true;
  });
  used[key] = true;
}

std::optional<FirstUse> Claims::forecast(KeyId key, TimeNs now) const {
  const auto &list = claims[key];
  for (auto it = list.begin(); it != list.end(); ++it) {
    if (!stands(*it, now))
      continue;
    const Trust &t = trust[used[key]];
    const bool announced = it->announcement != 0;
    const double date = std::max(0.0, toSeconds(it->when - now));
    // Bayes on "not used so far".
    const double unused = std::exp(-std::max(0.0, toSeconds(now - it->when)) /
                                   std::max(late, kMinLate));
    const auto posterior = [unused](double p) {
      return p < 1 ? p * unused / (1 - p + p * unused) : 1;
    };
    const double mass = posterior(announced ? t.mean : it->mass);
    const double sigma =
        std::max({kMinSigma, kSigmaShare * date, announced ? error : 0.0});
    FirstUse use = FirstUse::dated(mass, date, sigma);
    use.provenance = it->provenance;
    if (announced && mass > 0)
      use.lowerShare = std::min(1.0, posterior(t.lower) / mass);
    use.useRate = mass * static_cast<double>(list.end() - it) / kUseHorizon;
    return use;
  }
  return std::nullopt;
}

std::optional<TimeNs> Claims::nextAnnounced() const {
  std::optional<TimeNs> next;
  for (const Announcement &announcement : announcements)
    if (announcement.pending)
      next = std::min(next.value_or(kForever), announcement.when);
  return next;
}

} // namespace pgkp::rt::forecast
