// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What the lazy policy would have lost so far: the yardstick of
/// self-restraint.
#pragma once

#include "base/Clock.h"
#include "schema/FirstUse.h"

#include <vector>

namespace pgkp::rt {

/// Plays the lazy policy (generic now, a job at the first miss, most used
/// first, ties oldest) on the uses that really happen, with the same estimates
/// of costs that the planner has. The robust combiner of algorithms.md section
/// 5, for preparation: follow the shadow while it does better. Its time is that
/// of the real run, so without a fallback it knows of a wait only its length.
/// Thread-compatible.
class LazyShadow {
public:
  LazyShadow(size_t numKeys, bool fallbackGeneric)
      : keys(numKeys), fallback(fallbackGeneric) {}

  /// A use of a key that is not generic. \p delta: s that it loses on the
  /// generic variant; \p compile, \p load: s that the stages take; \p workers:
  /// jobs that may run now.
  void onUse(KeyId key, double delta, double compile, double load,
             unsigned workers, TimeNs now);
  /// s, so far.
  double lost() const { return lostSeconds; }

private:
  enum class Stage : uint8_t { absent, queued, running, ready };
  struct Key {
    Stage stage = Stage::absent;
    uint64_t misses = 0;
    TimeNs firstMiss = 0;
    double compile = 0, load = 0;
  };
  struct Job {
    KeyId key;
    TimeNs compiled, ready; ///< worker free; dispatchable
  };

  void advance(unsigned workers, TimeNs now);
  void fill(unsigned workers, TimeNs now);

  std::vector<Key> keys;
  std::vector<KeyId> queue;
  std::vector<Job> running, loading; ///< few
  const bool fallback;
  double lostSeconds = 0;
};

} // namespace pgkp::rt
