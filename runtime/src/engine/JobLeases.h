// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Which of the processes on one store compiles a key.
#pragma once

#include "base/Clock.h"
#include "store/Store.h"

#include <unordered_map>

namespace pgkp::rt {

/// No call blocks. A process whose turn it is not asks again later; `poll`
/// tells when that is worth it. Thread-compatible.
class JobLeases {
public:
  enum class Turn : uint8_t {
    ours,   ///< compile it, then call `done`
    stored, ///< it is in the store by now
    theirs  ///< somebody else compiles it
  };

  /// After `patience` of waiting for the same key it is compiled privately.
  explicit JobLeases(Store &store, const Clock &clock,
                     TimeNs patience = 60 * kNsPerSecond)
      : store(store), clock(clock), patience(patience) {}

  Turn take(const Digest &key);
  /// The artifact was put, or there will be none.
  void done(const Digest &key) { held.erase(key); }
  /// True if a key that was theirs may be had now.
  bool poll();

  /// Keys compiled although somebody else was at it.
  uint64_t privately() const { return impatient; }

private:
  struct Wait {
    TimeNs since = 0, asked = 0;
  };

  Store &store;
  const Clock &clock;
  const TimeNs patience;
  std::unordered_map<Digest, Lease, DigestHash> held;
  std::unordered_map<Digest, Wait, DigestHash> waits;
  TimeNs nextPoll = 0;
  uint64_t impatient = 0;
};

} // namespace pgkp::rt
