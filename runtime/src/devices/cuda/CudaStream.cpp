// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/cuda/CudaStream.h"

namespace pgkp::rt::cuda {

Expected<std::unique_ptr<StreamWatch>>
StreamWatch::create(const Driver &driver, ContextHandle context,
                    StreamHandle stream, bool counted) {
  const CurrentContext current(driver, context);
  std::unique_ptr<StreamWatch> watch(
      new StreamWatch(driver, context, stream, counted));
  PGKP_TRY(driver.check(driver.eventCreate(&watch->event, eventDisableTiming),
                        "cuEventCreate"));
  return watch;
}

StreamWatch::~StreamWatch() {
  const CurrentContext current(driver, context);
  if (event)
    driver.eventDestroy(event);
}

bool StreamWatch::capturing() const {
  CaptureStatus status = CaptureStatus::none;
  const CurrentContext current(driver, context);
  // A stream that cannot be asked (destroyed without being forgotten) is not
  // being captured.
  return driver.streamIsCapturing(stream, &status) == kSuccess &&
         status != CaptureStatus::none;
}

bool StreamWatch::idle() {
  // An event on an idle stream takes the device a few microseconds.
  constexpr int kPatience = 32;
  std::lock_guard lock(mutex);
  const uint64_t now = issued.load(std::memory_order_acquire);
  if (begun.load(std::memory_order_relaxed) != now)
    return false; // a launch is on its way
  if (counted && now == done)
    return true;
  if (capturing())
    return false;
  const CurrentContext current(driver, context);
  const OutsideCapture outside(driver);
  if (!counted || marked != now) {
    if (driver.eventRecord(event, stream) != kSuccess)
      return false;
    marked = now;
  }
  for (int i = 0; i < kPatience; ++i)
    if (driver.eventQuery(event) == kSuccess) {
      done = marked;
      return issued.load(std::memory_order_acquire) == done;
    }
  return false;
}

CudaStream::~CudaStream() {
  const CurrentContext current(driver, context);
  if (!capturing()) {
    // Blocks that go back may be used on other streams.
    const OutsideCapture outside(driver);
    driver.streamSynchronize(handle());
  }
  cache.release(scratch);
  cache.release(counterMemory);
  if (owned)
    driver.streamDestroy(handle());
}

Status CudaStream::synchronize() {
  const CurrentContext current(driver, context);
  const OutsideCapture outside(driver);
  return driver.check(driver.streamSynchronize(handle()),
                      "cuStreamSynchronize");
}

Expected<void *> CudaStream::workspace(uint64_t bytes) {
  // A captured launch keeps the scratch memory that it was given.
  if (capturing()) {
    PGKP_ASSIGN(void *own, cache.allocate(bytes, /*captured=*/true));
    cache.release(own); // for the next launch of the same graph
    return own;
  }
  if (bytes > scratchBytes) {
    PGKP_ASSIGN(void *larger, cache.allocate(bytes, /*captured=*/false));
    cache.release(scratch);
    scratch = larger;
    scratchBytes = bytes;
  }
  return scratch;
}

Expected<void *> CudaStream::counters() {
  // In a graph, filling them is one of its nodes.
  const bool captured = capturing();
  if (counterMemory && !captured)
    return counterMemory;
  PGKP_ASSIGN(void *memory, cache.allocate(kCounterBytes, captured));
  const CurrentContext current(driver, context);
  const Result result = driver.fillBytes(reinterpret_cast<DevicePtr>(memory), 0,
                                         kCounterBytes, handle());
  if (captured || result != kSuccess)
    cache.release(memory);
  else
    counterMemory = memory;
  PGKP_TRY(driver.check(result, "cuMemsetD8Async"));
  return memory;
}

} // namespace pgkp::rt::cuda
