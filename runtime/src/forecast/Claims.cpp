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

const Claims::Announcement *Claims::find(uint64_t id) const {
  return id >= firstId && id - firstId < announcements.size()
             ? &announcements[id - firstId]
             : nullptr;
}

bool Claims::stands(const Claim &claim, TimeNs now) const {
  if (claim.expires < now)
    return false;
  if (claim.announcement == 0)
    return true;
  const Announcement *announcement = find(claim.announcement);
  return announcement && announcement->pending;
}

void Claims::add(KeyId key, const Claim &claim, TimeNs now) {
  auto &list = claims[key];
  auto stale = std::find_if(list.begin(), list.end(),
                            [&](const Claim &c) { return stands(c, now); });
  list.erase(list.begin(), stale);
  list.insert(std::upper_bound(list.begin(), list.end(), claim,
                               [](const Claim &a, const Claim &b) {
                                 return a.when < b.when;
                               }),
              claim);
}

void Claims::expire(TimeNs now) {
  bool changed = false;
  for (Announcement &announcement : announcements)
    if (announcement.pending && announcement.expires < now) {
      announcement.pending = false;
      broken += 1;
      changed = true;
    }
  while (!announcements.empty() && !announcements.front().pending) {
    announcements.pop_front();
    ++firstId;
  }
  if (changed) {
    const double a = kTrust + kept, b = kDistrust + broken;
    reliability = a / (a + b);
    reliabilityLower = betaLower(a, b);
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
    add(key, {when, expires, 1, id, schema::Provenance::announcement}, now);
}

void Claims::begin(uint64_t request, std::span<const KeyId> keys, TimeNs now) {
  Announcement *match = nullptr;
  for (Announcement &announcement : announcements)
    if (announcement.pending && announcement.request == request &&
        (!match || announcement.when < match->when))
      match = &announcement;
  if (match) {
    match->pending = false;
    kept += 1;
    error += 0.1 * (std::abs(toSeconds(now - match->when)) - error);
    const double a = kTrust + kept, b = kDistrust + broken;
    reliability = a / (a + b);
    reliabilityLower = betaLower(a, b);
  }
  expire(now);
  for (KeyId key : keys)
    add(key, {now, now + kRunning, 1, 0, schema::Provenance::announcement},
        now);
}

void Claims::hint(KeyId key, double probability, double slackSeconds,
                  TimeNs now) {
  const double slack = slackSeconds >= 0 ? std::min(slackSeconds, 1e6) : 0;
  const TimeNs when = now + fromSeconds(slack);
  add(key,
      {when, when + std::max(kRunning, fromSeconds(slack)),
       std::clamp(probability, 0.0, 1.0), 0, schema::Provenance::structure},
      now);
}

void Claims::onUse(KeyId key, TimeNs now) {
  // What was claimed for this request has come true; other announced requests
  // are to come.
  std::erase_if(claims[key], [&](const Claim &claim) {
    return !stands(claim, now) || claim.announcement == 0;
  });
}

std::optional<FirstUse> Claims::forecast(KeyId key, TimeNs now) const {
  const auto &list = claims[key];
  for (auto it = list.begin(); it != list.end(); ++it) {
    if (!stands(*it, now))
      continue;
    const bool announced = it->announcement != 0;
    const double date = std::max(0.0, toSeconds(it->when - now));
    FirstUse use = FirstUse::dated(
        announced ? reliability : it->mass, date,
        std::max({kMinSigma, kSigmaShare * date, announced ? error : 0.0}));
    use.provenance = it->provenance;
    if (announced)
      use.lowerShare = std::min(1.0, reliabilityLower / reliability);
    use.useRate =
        use.dateMass * static_cast<double>(list.end() - it) / kUseHorizon;
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
