// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Dated forecasts that somebody made: announced and running requests,
/// prepare hints.
#pragma once

#include "base/Clock.h"
#include "schema/FirstUse.h"

#include <array>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace pgkp::rt::forecast {

/// Claims wait, in order of date, at the key they name. An announcement is an
/// estimate: a request may run with others in a batch, later, and so with other
/// roots. What counts is whether the key is used about then; how many claims
/// were kept, of keys in use and of keys never used apart, is the trust in the
/// next, and a claim that is overdue loses its own. Thread-compatible.
class Claims {
public:
  explicit Claims(size_t numKeys) : claims(numKeys), used(numKeys) {}

  /// `request`: a hash of entry and roots, by which `begin` finds the
  /// announcement again.
  void announce(uint64_t request, std::span<const KeyId> keys, TimeNs when,
                TimeNs now);
  /// The request runs: its announcement, if there is one, is kept; its keys are
  /// due now.
  void begin(uint64_t request, std::span<const KeyId> keys, TimeNs now);
  /// Negative slack: no date, but within this request.
  void hint(KeyId key, double probability, double slackSeconds, TimeNs now);
  void onUse(KeyId key, TimeNs now);
  /// Counts claims that were not kept. Once a second or so.
  void sweep(TimeNs now);

  /// The first of the key's claims that still stands.
  std::optional<FirstUse> forecast(KeyId key, TimeNs now) const;
  /// Expected begin of the next announced request.
  std::optional<TimeNs> nextAnnounced() const;

private:
  struct Claim {
    TimeNs when, expires;
    double mass;
    uint64_t announcement; ///< 0: none
    schema::Provenance provenance;
  };
  struct Announcement {
    uint64_t request;
    TimeNs when, expires;
    bool pending;
  };

  const Announcement *find(uint64_t id) const;
  bool stands(const Claim &claim, TimeNs now) const;
  void add(KeyId key, const Claim &claim);
  void expire(TimeNs now);
  void keep(bool inUse, double lateness);

  std::vector<std::vector<Claim>> claims; ///< by key; each by date
  std::vector<bool> used;                 ///< by key
  std::vector<KeyId> claimed;             ///< keys that may have claims
  std::deque<Announcement> announcements; ///< in order of arrival
  uint64_t firstId = 1;                   ///< of announcements.front()
  /// Claims of keys never used [0], in use [1].
  struct Trust {
    double kept = 0, broken = 0;
    double mean = 0.98, lower = 0.954;
    bool changed = false;
  };
  std::array<Trust, 2> trust;
  double error = 0;  ///< s, mean distance between claimed and actual use
  double late = 0.1; ///< s, mean delay of those that came late
};

} // namespace pgkp::rt::forecast
