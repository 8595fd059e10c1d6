// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file From the threads where things happen to where the events are kept.
#pragma once

#include "base/BoundedRing.h"
#include "metrics/Event.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace pgkp::rt {

/// Where drained events go. Thread-compatible.
class EventSink {
public:
  virtual ~EventSink() = default;
  virtual Status write(std::span<const Event> events) = 0;
  /// Everything written so far is with the operating system.
  virtual Status flush() { return {}; }
};

/// Keeps them.
class MemorySink final : public EventSink {
public:
  Status write(std::span<const Event> batch) override {
    events.insert(events.end(), batch.begin(), batch.end());
    return {};
  }
  std::vector<Event> events;
};

/// JSON lines; replaces an existing file.
Expected<std::unique_ptr<EventSink>> openJsonLines(const std::string &path);

/// Writes to several; all are tried, the first error is returned.
class TeeSink final : public EventSink {
public:
  explicit TeeSink(std::vector<EventSink *> sinks) : sinks(std::move(sinks)) {}
  Status write(std::span<const Event> events) override;
  Status flush() override;

private:
  std::vector<EventSink *> sinks;
};

/// A bounded buffer between the two. `record` is for the request path: no lock,
/// no system call, no allocation as long as the event has no text; it drops and
/// counts when the buffer is full. `append` is for everybody else: it makes
/// room in memory instead, up to `maxPending` events. Both keep the order of
/// each thread. Thread-safe.
class EventLog {
public:
  explicit EventLog(size_t capacity = size_t{1} << 14,
                    size_t maxPending = size_t{1} << 20)
      : ring(capacity), maxPending(maxPending) {}

  /// False: dropped.
  bool record(Event event);
  bool append(Event event);

  /// Moves everything recorded so far to the sink. One caller at a time. The
  /// events are gone even where the sink fails.
  Status drain(EventSink &sink);

  uint64_t dropped() const { return drops.load(std::memory_order_relaxed); }

private:
  void collect(); ///< ring to pending; needs `mutex`

  BoundedRing<Event> ring;
  const size_t maxPending;
  std::atomic<uint64_t> drops{0};
  std::mutex mutex;
  std::vector<Event> pending, batch;
};

} // namespace pgkp::rt
