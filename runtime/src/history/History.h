// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file From the dispatching threads to the planning thread.
#pragma once

#include "base/BoundedRing.h"
#include "base/Clock.h"
#include "schema/FirstUse.h"

#include <atomic>
#include <cstdint>

namespace pgkp::rt {

/// One dispatch.
struct Use {
  KeyId key = kNoKey;
  uint32_t stream = 0;
  uint32_t entry = ~0u; ///< of the request it belongs to; ~0: none
  uint32_t number =
      0; ///< of the dispatch on its stream, counted where it is made
  TimeNs at = 0;
  KeyId ran = kNoKey;  ///< the key whose variant ran
  TimeNs kernelNs = 0; ///< time on the device; 0: unknown
};

/// A bounded queue of uses. What does not fit is dropped and counted: the
/// request path never waits for the planner. Thread-safe: any number of pushing
/// threads, one that drains.
class History {
public:
  explicit History(size_t capacity = size_t{1} << 14) : ring(capacity) {}

  /// No lock, no allocation, no system call. False: dropped.
  bool push(const Use &use) noexcept {
    if (ring.push(use))
      return true;
    drops.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  /// Calls `visit(const Use &)` for what is there, each thread's uses in order,
  /// at most one capacity's worth: producers may go on for ever. \returns how
  /// many.
  template <typename Visit> size_t drain(Visit &&visit) {
    Use use;
    size_t count = 0;
    for (; count < ring.capacity() && ring.pop(use); ++count)
      visit(static_cast<const Use &>(use));
    return count;
  }

  uint64_t dropped() const { return drops.load(std::memory_order_relaxed); }
  size_t capacity() const { return ring.capacity(); }

private:
  BoundedRing<Use> ring;
  std::atomic<uint64_t> drops{0};
};

} // namespace pgkp::rt
