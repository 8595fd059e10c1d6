// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/JobLeases.h"

#include "base/Log.h"

#include <algorithm>

namespace pgkp::rt {

static constexpr TimeNs kPollPeriod = 20 * kNsPerMs;
// Who did not ask for so long has not been waiting.
static constexpr TimeNs kForgotten = 10 * kNsPerSecond;

JobLeases::Turn JobLeases::take(const Digest &key) {
  if (held.contains(key))
    return Turn::ours;
  Expected<Lease> lease = store.lease(key);
  // Only now: who held the lease a moment ago has put the artifact.
  if (store.contains(key)) {
    waits.erase(key);
    return Turn::stored;
  }
  if (lease) {
    held.emplace(key, std::move(*lease));
    waits.erase(key);
    return Turn::ours;
  }
  if (lease.error().code != Code::unavailable)
    return Turn::ours; // nothing can be locked: everybody for himself
  const TimeNs now = clock.now();
  Wait &wait = waits[key];
  if (wait.since == 0 || now - wait.asked > std::max(kForgotten, patience / 2))
    wait.since = now;
  wait.asked = now;
  if (now - wait.since < patience)
    return Turn::theirs;
  log(LogLevel::info, "{} for {:.0f} s; it is compiled here, too",
      lease.error().message, toSeconds(patience));
  waits.erase(key);
  ++impatient;
  return Turn::ours;
}

bool JobLeases::poll() {
  const TimeNs now = clock.now();
  if (waits.empty() || now < nextPoll)
    return false;
  nextPoll = now + kPollPeriod;
  return std::any_of(waits.begin(), waits.end(), [&](const auto &wait) {
    if (now - wait.second.since >= patience || store.contains(wait.first))
      return true;
    const Expected<Lease> lease = store.lease(wait.first);
    return lease || lease.error().code != Code::unavailable;
  });
}

} // namespace pgkp::rt
