// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Streams, and whether work on them is in flight.
#pragma once

#include "devices/cuda/CudaMemory.h"
#include "devices/device/Device.h"

#include <atomic>
#include <mutex>

namespace pgkp::rt::cuda {

/// Whether a stream has work in flight, told by events so that the stream
/// itself is never queried (a capture that has just begun would not survive
/// it). Whoever launches pays two plain counter steps. `idle` and `capturing`
/// are thread-safe.
class StreamWatch {
public:
  /// `counted`: everything on the stream is announced by begin and end.
  /// Otherwise others launch there, too, and each question is put to the
  /// device.
  static Expected<std::unique_ptr<StreamWatch>> create(const Driver &driver,
                                                       ContextHandle context,
                                                       StreamHandle stream,
                                                       bool counted);
  ~StreamWatch();
  StreamWatch(const StreamWatch &) = delete;
  StreamWatch &operator=(const StreamWatch &) = delete;

  /// Around every call that issues work; one thread at a time.
  void begin() {
    begun.store(begun.load(std::memory_order_relaxed) + 1,
                std::memory_order_relaxed);
  }
  void end() {
    issued.store(begun.load(std::memory_order_relaxed),
                 std::memory_order_release);
  }

  /// False while something runs, is being issued or is being captured.
  bool idle();
  bool capturing() const;

  const StreamHandle stream;

private:
  StreamWatch(const Driver &driver, ContextHandle context, StreamHandle stream,
              bool counted)
      : stream(stream), driver(driver), context(context), counted(counted) {}

  const Driver &driver;
  const ContextHandle context;
  const bool counted;
  std::atomic<uint64_t> begun{0}, issued{0};
  std::mutex mutex; ///< all below
  EventHandle event = nullptr;
  uint64_t marked = 0; ///< `issued` when the event was recorded last
  uint64_t done = 0;   ///< `issued` that is known to be complete
};

/// A stream of ours or of the caller's. Thread-compatible.
class CudaStream : public Stream {
public:
  static constexpr uint64_t kCounterBytes = 64 << 10;

  CudaStream(const Driver &driver, ContextHandle context, Memory &memory,
             std::unique_ptr<StreamWatch> watch, bool owned)
      : watch(std::move(watch)), cache(memory), driver(driver),
        context(context), owned(owned) {}
  ~CudaStream() override;

  Status synchronize() override;
  bool idle() override { return watch->idle(); }
  /// Ours has no handle outside, so nobody can capture it.
  bool capturing() override { return !owned && watch->capturing(); }

  StreamHandle handle() const { return watch->stream; }

  /// Scratch memory of at least `bytes`, for one launch after the other.
  Expected<void *> workspace(uint64_t bytes);
  /// kCounterBytes of zeros, which kernels leave as zeros.
  Expected<void *> counters();

  std::unique_ptr<StreamWatch> watch;
  Memory::Cache cache;

private:
  const Driver &driver;
  const ContextHandle context;
  const bool owned;
  void *scratch = nullptr;
  uint64_t scratchBytes = 0;
  void *counterMemory = nullptr;
};

} // namespace pgkp::rt::cuda
