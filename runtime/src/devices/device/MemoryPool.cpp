// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/device/MemoryPool.h"

#include <bit>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace pgkp::rt {
namespace {

// Far above any tensor, and below where the sanitizers' allocators abort
// instead of returning null (2^40 bytes).
constexpr uint64_t kMaxBytes = uint64_t{1} << 39;

/// Precedes each block's memory. In isolated pools it is as inaccessible as the
/// memory; allocate and release open a window.
struct Header {
  uint64_t magic;
  uint64_t sizeClass;
};
constexpr uint64_t kMagic = 0x504f4f4c504b4750;
static_assert(sizeof(Header) <= MemoryPool::kAlignment);

// Four classes to each power of two: at most a quarter of a block is waste.
// Class 4*(e-6)+q holds 2^e * (4+q)/4 bytes, q = 0..3, e >= 6.
unsigned classOf(uint64_t bytes) {
  if (bytes <= 64)
    return 0;
  const unsigned e = std::bit_width(bytes - 1) - 1; // 2^e < bytes <= 2^(e+1)
  const uint64_t quarter = uint64_t{1} << (e - 2);
  const uint64_t q = (bytes - (uint64_t{1} << e) + quarter - 1) / quarter;
  return 4 * (e - 6) + static_cast<unsigned>(q);
}

uint64_t classBytes(unsigned sizeClass) {
  const unsigned e = sizeClass / 4 + 6;
  return ((uint64_t{4} + sizeClass % 4) << e) / 4;
}

std::byte *popFrom(std::vector<std::vector<std::byte *>> &free,
                   unsigned sizeClass) {
  if (sizeClass >= free.size() || free[sizeClass].empty())
    return nullptr;
  std::byte *memory = free[sizeClass].back();
  free[sizeClass].pop_back();
  return memory;
}

void pushTo(std::vector<std::vector<std::byte *>> &free, unsigned sizeClass,
            std::byte *memory) {
  if (sizeClass >= free.size())
    free.resize(sizeClass + 1);
  free[sizeClass].push_back(memory);
}

} // namespace

MemoryPool::~MemoryPool() {
  for (const Block &block : blocks) {
    if (isolated)
      ::munmap(block.base, block.bytes);
    else
      ::operator delete (block.base, std::align_val_t{kAlignment});
  }
}

Expected<std::byte *> MemoryPool::take(unsigned sizeClass) {
  std::lock_guard lock(mutex);
  if (std::byte *memory = popFrom(free, sizeClass))
    return memory;
  uint64_t bytes = kAlignment + classBytes(sizeClass);
  std::byte *base = nullptr;
  if (isolated) {
    const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    bytes = (bytes + page - 1) / page * page;
    void *mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped != MAP_FAILED)
      base = static_cast<std::byte *>(mapped);
  } else {
    base = static_cast<std::byte *>(
        ::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow));
  }
  if (!base)
    return makeError(Code::exhausted, "device memory: no {} bytes left", bytes);
  blocks.push_back({base, bytes});
  reservedBytes += bytes;
  const Header header{kMagic, sizeClass};
  std::memcpy(base, &header, sizeof header);
  return base + kAlignment;
}

uint64_t MemoryPool::reserved() const {
  std::lock_guard lock(mutex);
  return reservedBytes;
}

void MemoryPool::open() {
  std::lock_guard lock(mutex);
  if (windows++ == 0)
    for (const Block &block : blocks)
      ::mprotect(block.base, block.bytes, PROT_READ | PROT_WRITE);
}

void MemoryPool::close() {
  std::lock_guard lock(mutex);
  if (--windows == 0)
    for (const Block &block : blocks)
      ::mprotect(block.base, block.bytes, PROT_NONE);
}

MemoryPool::Cache::~Cache() {
  std::lock_guard lock(pool.mutex);
  for (unsigned sizeClass = 0; sizeClass < free.size(); ++sizeClass)
    for (std::byte *memory : free[sizeClass])
      pushTo(pool.free, sizeClass, memory);
}

Expected<void *> MemoryPool::Cache::allocate(uint64_t bytes) {
  if (bytes > kMaxBytes)
    return makeError(Code::exhausted,
                     "device memory: {} bytes asked for, at most {} possible",
                     bytes, kMaxBytes);
  const unsigned sizeClass = classOf(bytes);
  if (std::byte *memory = popFrom(free, sizeClass))
    return memory;
  Window window(pool); // a new block is closed with this window
  PGKP_ASSIGN(std::byte * memory, pool.take(sizeClass));
  return memory;
}

void MemoryPool::Cache::release(void *memory) {
  if (!memory)
    return;
  Header header;
  {
    Window window(pool);
    std::memcpy(&header, static_cast<std::byte *>(memory) - kAlignment,
                sizeof header);
  }
  // A wild pointer here means corrupted memory: going on would spread it.
  if (header.magic != kMagic)
    std::abort();
  pushTo(free, static_cast<unsigned>(header.sizeClass),
         static_cast<std::byte *>(memory));
}

} // namespace pgkp::rt
