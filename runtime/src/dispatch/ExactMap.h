// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file From extents vectors to variants, built once, without collisions.
#pragma once

#include "dispatch/Extents.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace pgkp::rt {

struct Variant;

/// A perfect hash by displacement ("CHD": Belazzougui, Botelho, Dietzfelbinger,
/// ESA 2009): keys fall into buckets of about four, and each bucket has a
/// number that sends its keys to free slots. A look-up reads that number (2
/// bytes for four keys, so nearly always cached) and one slot, with the key in
/// it: no probing, no branch that depends on the key. Tables are rebuilt when a
/// variant is published, which is rare, so the price is paid there (about 0.3
/// us a key). Thread-safe: immutable.
class ExactMap {
public:
  struct Entry {
    const Variant *variant = nullptr; ///< null: not found
    const void *handle = nullptr;
    uint64_t workspaceBytes = 0;
  };
  using Item = std::pair<std::vector<int64_t>, Entry>;

  ExactMap() = default;
  /// The keys are `rank` long, rank > 0, and differ from each other.
  ExactMap(std::span<const Item> items, uint32_t rank);

  bool empty() const { return slots.empty(); }

  /// Must not be empty.
  Entry find(const int64_t *extents) const {
    const uint64_t hash = hashOf(extents);
    const int64_t *slot =
        slots.data() +
        slotOf(hash, displacements[scale(hash, displacements.size())]) *
            (kEntryWords + rank);
    Entry entry;
    if (differ(slot + kEntryWords, extents, rank) == 0)
      std::memcpy(static_cast<void *>(&entry), slot, sizeof entry);
    return entry;
  }

private:
  static constexpr size_t kEntryWords = sizeof(Entry) / sizeof(int64_t);

  /// To [0, size), by the high bits (Lemire 2019).
  static uint64_t scale(uint64_t hash, uint64_t size) {
    return static_cast<uint64_t>(static_cast<__uint128_t>(hash) * size >> 64);
  }
  /// Multilinear hashing (Dietzfelbinger 1996): products that do not depend on
  /// each other.
  uint64_t hashOf(const int64_t *extents) const {
    const uint64_t *multiplier = multipliers.data();
    uint64_t hash = 0;
    for (uint32_t i = 0; i < rank; ++i)
      hash += static_cast<uint64_t>(extents[i]) * multiplier[i];
    return hash;
  }
  uint64_t slotOf(uint64_t hash, uint16_t displacement) const {
    return scale((hash ^ displacement * uint64_t{0xd6e8feb86659fd93}) *
                     uint64_t{0x9e3779b97f4a7c15},
                 numSlots);
  }
  bool place(std::span<const Item> items, uint64_t seed, size_t size);

  uint32_t rank = 0;
  uint64_t numSlots = 0;
  std::vector<uint64_t> multipliers;   ///< by dimension, odd
  std::vector<uint16_t> displacements; ///< by bucket
  std::vector<int64_t> slots;          ///< {Entry, extents[rank]} each
};

} // namespace pgkp::rt
