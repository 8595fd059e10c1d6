// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Whether the device may be drained now.
#pragma once

#include <atomic>
#include <cstdint>

namespace pgkp::rt {

/// Counts requests in flight. A request ends when its stream was synchronized,
/// so none in flight means an idle device, as far as we launch on it.
/// Thread-safe; begin and end cost one atomic operation each.
class Activity {
public:
  void begin() {
    running.fetch_add(1, std::memory_order_relaxed);
    declared.store(false, std::memory_order_relaxed);
  }
  void end() { running.fetch_sub(1, std::memory_order_release); }
  /// The application says that a pause does not hurt until the next request
  /// begins, whatever it launched outside of our sight.
  void safePoint() { declared.store(true, std::memory_order_relaxed); }

  bool idle() const {
    return running.load(std::memory_order_acquire) == 0 ||
           declared.load(std::memory_order_relaxed);
  }

private:
  std::atomic<int64_t> running{0};
  std::atomic<bool> declared{false};
};

} // namespace pgkp::rt
