// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dispatch/ExactMap.h"

#include "base/Random.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace pgkp::rt {

ExactMap::ExactMap(std::span<const Item> items, uint32_t rank)
    : rank(items.empty() ? 0 : rank) {
  if (items.empty())
    return;
  // At most three keys to four slots: a seed fails where two keys of one bucket
  // agree in the slot's bits, too, which at that load four of five do.
  size_t size = std::bit_ceil(items.size() + (items.size() + 2) / 3);
  for (uint64_t seed = 1; !place(items, seed, size); ++seed)
    if (seed % 16 == 0)
      size *= 2;
}

uint64_t ExactMap::hashOf(const int64_t *key) const {
  const uint64_t *factor = longFactors.empty() ? factors : longFactors.data();
  uint64_t hash = 0;
  for (uint32_t i = 0; i < rank; ++i)
    hash += static_cast<uint64_t>(key[i]) * factor[i];
  return hash;
}

const Answer *ExactMap::find(const int64_t *key) const {
  if (rank <= kInlineExtents)
    return findShort(key);
  const Answer *slot = slotAt(hashOf(key));
  return allEqual(&longKeys[static_cast<size_t>(slot - slots.get()) * rank],
                  key, rank) &&
                 slot->found.variant
             ? slot
             : nullptr;
}

bool ExactMap::place(std::span<const Item> items, uint64_t seed, size_t size) {
  SeededRandom random(seed);
  const bool isLong = rank > kInlineExtents;
  longFactors.resize(isLong ? rank : 0);
  for (uint64_t &factor : longFactors)
    factor = random.next() | 1;
  for (uint64_t &factor : factors)
    factor = random.next() | 1;
  const size_t numBuckets = std::bit_ceil((items.size() + 3) / 4);
  bucketMask = numBuckets - 1;
  offsetMask = (size - 1) * sizeof(Answer);
  displacements = std::make_unique<uint32_t[]>(numBuckets);
  slots = std::make_unique<Answer[]>(size);
  longKeys.assign(isLong ? size * rank : 0, 0);

  std::vector<std::vector<std::pair<uint64_t, const Item *>>> buckets(
      numBuckets);
  for (const Item &item : items) {
    const uint64_t hash = hashOf(item.first.data());
    buckets[bucketOf(hash)].emplace_back(hash, &item);
  }
  // Full buckets first, while most slots are free.
  std::vector<size_t> order(buckets.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return buckets[a].size() > buckets[b].size();
  });

  std::vector<bool> taken(size, false);
  std::vector<uint64_t> wanted;
  for (size_t index : order) {
    const auto &bucket = buckets[index];
    if (bucket.empty())
      break;
    // Neighbours try different places first.
    const size_t first = random.below(size);
    size_t tries = 0;
    uint32_t displacement = 0;
    do {
      if (tries == size)
        return false;
      displacement =
          static_cast<uint32_t>((first + tries++) % size * sizeof(Answer));
      wanted.clear();
      for (const auto &[hash, item] : bucket) {
        const uint64_t slot = offsetOf(hash, displacement) / sizeof(Answer);
        if (taken[slot])
          break;
        taken[slot] = true; // so that two keys of one bucket differ
        wanted.push_back(slot);
      }
      if (wanted.size() < bucket.size())
        for (uint64_t slot : wanted)
          taken[slot] = false;
    } while (wanted.size() < bucket.size());
    displacements[index] = displacement;
    for (size_t i = 0; i < bucket.size(); ++i) {
      const auto &[key, found] = *bucket[i].second;
      slots[wanted[i]].found = found;
      std::copy(key.begin(), key.end(),
                isLong ? &longKeys[wanted[i] * rank]
                       : slots[wanted[i]].extents);
    }
  }
  return true;
}

} // namespace pgkp::rt
