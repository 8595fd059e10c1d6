// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file From extents vectors to variants, built once, without collisions.
#pragma once

#include "dispatch/Resolved.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace pgkp::rt {

/// A perfect hash by displacement (Pagh, "Hash and displace", WADS 1999; sizes
/// of buckets as in "CHD": Belazzougui, Botelho, Dietzfelbinger, ESA 2009):
/// keys fall into buckets of two to four, and each bucket has a displacement
/// that sends its keys to free slots. A look-up reads the displacement (4
/// bytes, so nearly always cached) and one slot, which is one cache line for up
/// to four extents: no probing, no branch that depends on the key. Tables are
/// rebuilt when a variant is published, which is rare, so the price is paid
/// there. Thread-safe: immutable.
class ExactMap {
public:
  using Item = std::pair<std::vector<int64_t>, Resolved>;

  /// Finds nothing.
  ExactMap() = default;
  /// The keys are `rank` long, rank > 0, and differ from each other.
  ExactMap(std::span<const Item> items, uint32_t rank);

  /// Null: not there, or the keys are longer than kInlineExtents. The answer
  /// lives as long as the map and holds the key.
  const Answer *findShort(const int64_t *extents) const {
    switch (rank) {
    case 1:
      return findFixed<1>(extents);
    case 2:
      return findFixed<2>(extents);
    case 3:
      return findFixed<3>(extents);
    case 4:
      return findFixed<4>(extents);
    default:
      return nullptr;
    }
  }
  /// For keys of any length. The answer holds no more of a long one.
  const Answer *find(const int64_t *extents) const;

private:
  // Of a hash, the upper bits name the slot (as the offset of a cache line),
  // the middle ones the bucket; the lowest are weak and stay unused.
  static constexpr unsigned kSlotShift = 38, kBucketShift = 24;
  static_assert(sizeof(Answer) == 64);

  uint64_t bucketOf(uint64_t hash) const {
    return hash >> kBucketShift & bucketMask;
  }
  uint64_t offsetOf(uint64_t hash, uint32_t displacement) const {
    return ((hash >> kSlotShift) + displacement) & offsetMask;
  }
  const Answer *slotAt(uint64_t hash) const {
    return reinterpret_cast<const Answer *>(
        reinterpret_cast<const char *>(slots.get()) +
        offsetOf(hash, displacements[bucketOf(hash)]));
  }

  /// Multilinear hashing (Dietzfelbinger 1996): products that do not depend on
  /// each other.
  template <unsigned Rank> const Answer *findFixed(const int64_t *key) const {
    uint64_t hash = 0;
    for (unsigned i = 0; i < Rank; ++i)
      hash += static_cast<uint64_t>(key[i]) * factors[i];
    const Answer *slot = slotAt(hash);
    return allEqual(slot->extents, key, Rank) && slot->found.variant ? slot
                                                                     : nullptr;
  }
  uint64_t hashOf(const int64_t *key) const;
  bool place(std::span<const Item> items, uint64_t seed, size_t size);

  uint32_t rank = 0; ///< 0: empty
  uint64_t offsetMask = 0, bucketMask = 0;
  uint64_t factors[kInlineExtents] = {};     ///< by dimension, odd
  std::unique_ptr<uint32_t[]> displacements; ///< by bucket
  std::unique_ptr<Answer[]> slots;
  // For longer keys only.
  std::vector<uint64_t> longFactors;
  std::vector<int64_t> longKeys; ///< by slot
};

} // namespace pgkp::rt
