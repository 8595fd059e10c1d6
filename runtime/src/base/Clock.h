// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Time through an interface: the same code runs on a real and a virtual
/// clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace pgkp::rt {

/// Nanoseconds since an arbitrary start of the clock.
using TimeNs = int64_t;

constexpr TimeNs kNsPerUs = 1'000;
constexpr TimeNs kNsPerMs = 1'000'000;
constexpr TimeNs kNsPerSecond = 1'000'000'000;
constexpr TimeNs kForever = std::numeric_limits<TimeNs>::max();

constexpr double toSeconds(TimeNs ns) { return static_cast<double>(ns) * 1e-9; }
constexpr TimeNs fromSeconds(double s) {
  return static_cast<TimeNs>(s * 1e9 + (s < 0 ? -0.5 : 0.5));
}

/// Never runs backwards. Thread-safe.
class Clock {
public:
  virtual ~Clock() = default;
  virtual TimeNs now() const = 0;
};

/// CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
public:
  TimeNs now() const override;
};

/// Moves only when told. Thread-safe.
class ManualClock final : public Clock {
public:
  explicit ManualClock(TimeNs start = 0) : time(start) {}
  TimeNs now() const override { return time.load(std::memory_order_acquire); }
  void advanceTo(TimeNs t) {
    TimeNs current = time.load(std::memory_order_relaxed);
    while (current < t && !time.compare_exchange_weak(current, t))
      ;
  }
  void advance(TimeNs delta) { advanceTo(now() + delta); }

private:
  std::atomic<TimeNs> time;
};

} // namespace pgkp::rt
