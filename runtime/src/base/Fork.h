// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What of an object is still there after fork: its memory, but neither
/// its threads nor the certainty that none of them held a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace pgkp::rt {

namespace detail {
/// Forks between the first ForkMark of an ancestor and this process.
extern std::atomic<uint32_t> forkCount;
void watchForks();
/// Kept reachable, and never destroyed.
void keepForever(const void *object);
} // namespace detail

/// Remembers the process that made it. Thread-safe; the question costs a
/// relaxed load. Sees fork() and whatever else runs pthread_atfork handlers.
class ForkMark {
public:
  ForkMark() {
    detail::watchForks();
    count = detail::forkCount.load(std::memory_order_relaxed);
  }
  /// This process is a forked child of the one that made the mark.
  bool forked() const {
    return detail::forkCount.load(std::memory_order_relaxed) != count;
  }

private:
  uint32_t count;
};

/// What a forked child does in place of destroying it.
template <typename T> void abandon(std::unique_ptr<T> object) {
  detail::keepForever(object.release());
}

/// A mutex that is free in a forked child: fork waits for it. For what the
/// child goes on using; hold it for short.
class ForkSafeMutex {
public:
  ForkSafeMutex();
  ~ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex &) = delete;
  ForkSafeMutex &operator=(const ForkSafeMutex &) = delete;

  void lock() { mutex.lock(); }
  bool try_lock() { return mutex.try_lock(); }
  void unlock() { mutex.unlock(); }

private:
  std::mutex mutex;
};

} // namespace pgkp::rt
