// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Device memory in stream order: size classes in front of the driver's
/// pool.
#pragma once

#include "devices/cuda/Driver.h"

#include <mutex>
#include <unordered_map>
#include <vector>

namespace pgkp::rt::cuda {

/// Owns every block that its caches hand out, until it is destroyed. A block
/// comes from the driver once and then moves between free lists: no call into
/// the driver, so nothing that a capture forbids. Thread-safe.
class Memory {
public:
  static Expected<std::unique_ptr<Memory>>
  create(const Driver &driver, ContextHandle context, DeviceId device);
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  /// The free blocks of one stream, which is the order that makes them
  /// reusable. Thread-compatible; its stream must be idle when it dies.
  class Cache {
  public:
    explicit Cache(Memory &memory) : memory(memory) {}
    ~Cache();
    Cache(const Cache &) = delete;
    Cache &operator=(const Cache &) = delete;

    /// `captured`: for use in a graph. Such a block serves captures of this
    /// stream alone from then on, as the graph may run at any time. exhausted.
    Expected<void *> allocate(uint64_t bytes, bool captured);
    /// Of any cache of the same memory; null and strangers are ignored.
    void release(void *pointer);

  private:
    friend class Memory;
    using FreeList = std::vector<std::vector<DevicePtr>>; ///< by size class
    Memory &memory;
    FreeList free, freeCaptured;
  };

  /// Bytes obtained from the driver.
  uint64_t reserved() const;

private:
  struct Block {
    unsigned sizeClass;
    bool captured;
  };

  Memory(const Driver &driver, ContextHandle context)
      : driver(driver), context(context) {}
  Expected<DevicePtr> take(unsigned sizeClass, bool captured);
  Result obtain(uint64_t bytes, DevicePtr &block);
  void giveBack(DevicePtr block);
  void trim();

  const Driver &driver;
  const ContextHandle context;
  StreamHandle stream = nullptr; ///< of pool operations alone
  PoolHandle pool = nullptr;     ///< null: the device has no pools
  mutable std::mutex mutex;      ///< all below
  std::unordered_map<DevicePtr, Block> blocks;
  Cache::FreeList free; ///< from destroyed caches
  uint64_t reservedBytes = 0;
};

} // namespace pgkp::rt::cuda
