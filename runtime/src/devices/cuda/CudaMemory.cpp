// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/cuda/CudaMemory.h"

#include <bit>

namespace pgkp::rt::cuda {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 46;
/// The driver aligns to 256 at least and hands out no less than 512.
constexpr unsigned kLeastLog2 = 9;

// Four classes to each power of two: at most a quarter of a block is waste.
unsigned classOf(uint64_t bytes) {
  if (bytes <= uint64_t{1} << kLeastLog2)
    return 0;
  const unsigned e = std::bit_width(bytes - 1) - 1; // 2^e < bytes <= 2^(e+1)
  const uint64_t quarter = uint64_t{1} << (e - 2);
  const uint64_t q = (bytes - (uint64_t{1} << e) + quarter - 1) / quarter;
  return 4 * (e - kLeastLog2) + static_cast<unsigned>(q);
}

uint64_t classBytes(unsigned sizeClass) {
  return ((uint64_t{4} + sizeClass % 4) << (sizeClass / 4 + kLeastLog2)) / 4;
}

DevicePtr popFrom(std::vector<std::vector<DevicePtr>> &free,
                  unsigned sizeClass) {
  if (sizeClass >= free.size() || free[sizeClass].empty())
    return 0;
  const DevicePtr block = free[sizeClass].back();
  free[sizeClass].pop_back();
  return block;
}

void pushTo(std::vector<std::vector<DevicePtr>> &free, unsigned sizeClass,
            DevicePtr block) {
  if (sizeClass >= free.size())
    free.resize(sizeClass + 1);
  free[sizeClass].push_back(block);
}

} // namespace

Expected<std::unique_ptr<Memory>>
Memory::create(const Driver &driver, ContextHandle context, DeviceId device) {
  std::unique_ptr<Memory> memory(new Memory(driver, context));
  int pools = 0;
  PGKP_TRY(
      driver.check(driver.deviceAttribute(&pools, attributeMemoryPools, device),
                   "cuDeviceGetAttribute"));
  if (!pools)
    return memory;
  const CurrentContext current(driver, context);
  PGKP_TRY(driver.check(driver.streamCreate(&memory->stream, streamNonBlocking),
                        "cuStreamCreate"));
  PoolProperties properties{};
  properties.allocationType = 1;
  properties.location = {1, device};
  PGKP_TRY(driver.check(driver.poolCreate(&memory->pool, &properties),
                        "cuMemPoolCreate"));
  // What was trimmed stays with the process: it will be wanted again.
  uint64_t threshold = ~uint64_t{0};
  driver.poolSetAttribute(memory->pool, kPoolReleaseThreshold, &threshold);
  return memory;
}

Memory::~Memory() {
  const CurrentContext current(driver, context);
  for (const auto &[block, info] : blocks)
    giveBack(block);
  if (pool)
    driver.poolDestroy(pool);
  if (stream)
    driver.streamDestroy(stream);
}

Result Memory::obtain(uint64_t bytes, DevicePtr &block) {
  if (!pool)
    return driver.allocate(&block, bytes);
  const Result result = driver.poolAllocate(&block, bytes, pool, stream);
  // The block is for other streams, which are not ordered behind this one.
  // Nothing else runs on it, so this does not wait for kernels.
  return result == kSuccess ? driver.streamSynchronize(stream) : result;
}

void Memory::giveBack(DevicePtr block) {
  if (pool)
    driver.freeAsync(block, stream);
  else
    driver.free(block);
}

void Memory::trim() {
  for (unsigned sizeClass = 0; sizeClass < free.size(); ++sizeClass) {
    for (const DevicePtr block : free[sizeClass]) {
      giveBack(block);
      blocks.erase(block);
      reservedBytes -= classBytes(sizeClass);
    }
    free[sizeClass].clear();
  }
}

Expected<DevicePtr> Memory::take(unsigned sizeClass, bool captured) {
  std::lock_guard lock(mutex);
  if (const DevicePtr block = popFrom(free, sizeClass)) {
    blocks[block].captured = captured;
    return block;
  }
  const CurrentContext current(driver, context);
  const OutsideCapture outside(driver);
  const uint64_t bytes = classBytes(sizeClass);
  DevicePtr block = 0;
  Result result = obtain(bytes, block);
  if (result == kOutOfMemory) {
    trim();
    result = obtain(bytes, block);
  }
  if (Status status = driver.check(result, "cuMemAllocFromPoolAsync"); !status)
    return makeError(status.error().code, "device memory of {} bytes: {}",
                     bytes, status.error().message);
  blocks.emplace(block, Block{sizeClass, captured});
  reservedBytes += bytes;
  return block;
}

uint64_t Memory::reserved() const {
  std::lock_guard lock(mutex);
  return reservedBytes;
}

Memory::Cache::~Cache() {
  // Captured blocks wait for the end of the device: a graph may use them.
  std::lock_guard lock(memory.mutex);
  for (unsigned sizeClass = 0; sizeClass < free.size(); ++sizeClass)
    for (const DevicePtr block : free[sizeClass])
      pushTo(memory.free, sizeClass, block);
}

Expected<void *> Memory::Cache::allocate(uint64_t bytes, bool captured) {
  if (bytes > kMaxBytes)
    return makeError(Code::exhausted,
                     "device memory: {} bytes asked for, at most {} possible",
                     bytes, kMaxBytes);
  const unsigned sizeClass = classOf(bytes);
  DevicePtr block = popFrom(captured ? freeCaptured : free, sizeClass);
  if (!block) {
    PGKP_ASSIGN(block, memory.take(sizeClass, captured));
  }
  return reinterpret_cast<void *>(block);
}

void Memory::Cache::release(void *pointer) {
  const auto block = reinterpret_cast<DevicePtr>(pointer);
  if (!block)
    return;
  Block info;
  {
    std::lock_guard lock(memory.mutex);
    const auto known = memory.blocks.find(block);
    if (known == memory.blocks.end())
      return;
    info = known->second;
  }
  pushTo(info.captured ? freeCaptured : free, info.sizeClass, block);
}

} // namespace pgkp::rt::cuda
