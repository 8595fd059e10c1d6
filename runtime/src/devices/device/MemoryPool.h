// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Device memory that the processor can reach: size classes, free lists.
#pragma once

#include "base/Fork.h"
#include "base/Status.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace pgkp::rt {

/// Owns every block that its caches hand out, until it is destroyed.
/// Thread-safe.
class MemoryPool {
public:
  static constexpr size_t kAlignment = 64;

  /// `isolated`: blocks are inaccessible except while a Window is open, as
  /// memory on the far side of a bus would be. A debugging aid: it costs two
  /// system calls per window and block.
  explicit MemoryPool(bool isolated = false) : isolated(isolated) {}
  ~MemoryPool();
  MemoryPool(const MemoryPool &) = delete;
  MemoryPool &operator=(const MemoryPool &) = delete;

  /// Free blocks of one stream. Thread-compatible; must not outlive its pool.
  class Cache {
  public:
    explicit Cache(MemoryPool &pool) : pool(pool) {}
    ~Cache();
    Cache(const Cache &) = delete;
    Cache &operator=(const Cache &) = delete;

    /// exhausted: the system has no memory, or more than 2^39 bytes.
    Expected<void *> allocate(uint64_t bytes);
    /// The memory may come from another cache of the same pool.
    void release(void *memory);

  private:
    MemoryPool &pool;
    std::vector<std::vector<std::byte *>> free; ///< by size class
  };

  /// Makes isolated blocks accessible while it lives; nests, across threads
  /// too.
  class Window {
  public:
    explicit Window(MemoryPool &pool) : pool(pool) {
      if (pool.isolated) [[unlikely]]
        pool.open();
    }
    ~Window() {
      if (pool.isolated) [[unlikely]]
        pool.close();
    }
    Window(const Window &) = delete;
    Window &operator=(const Window &) = delete;

  private:
    MemoryPool &pool;
  };

  bool isIsolated() const { return isolated; }
  /// Bytes obtained from the system, headers included.
  uint64_t reserved() const;

private:
  struct Block {
    std::byte *base;
    uint64_t bytes;
  };

  Expected<std::byte *> take(unsigned sizeClass);
  void open();
  void close();

  const bool isolated;
  mutable ForkSafeMutex mutex; ///< all below
  std::vector<Block> blocks;
  std::vector<std::vector<std::byte *>> free; ///< from destroyed caches
  uint64_t reservedBytes = 0;
  unsigned windows = 0;
};

} // namespace pgkp::rt
