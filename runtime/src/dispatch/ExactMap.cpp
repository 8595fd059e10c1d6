// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dispatch/ExactMap.h"

#include "base/Random.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace pgkp::rt {

ExactMap::ExactMap(std::span<const Item> items, uint32_t rank) : rank(rank) {
  if (items.empty())
    return;
  // Four slots to three keys nearly always succeed at the first seed.
  size_t size = items.size() + (items.size() + 2) / 3;
  for (uint64_t seed = 1; !place(items, seed, size); ++seed)
    if (seed % 4 == 0)
      size += size / 4 + 1;
}

bool ExactMap::place(std::span<const Item> items, uint64_t seed, size_t size) {
  SeededRandom random(seed);
  multipliers.resize(rank);
  for (uint64_t &multiplier : multipliers)
    multiplier = random.next() | 1;
  numSlots = size;
  displacements.assign((items.size() + 3) / 4, 0);
  slots.assign(size * (kEntryWords + rank), 0);

  std::vector<std::vector<std::pair<uint64_t, const Item *>>> buckets(
      displacements.size());
  for (const Item &item : items) {
    const uint64_t hash = hashOf(item.first.data());
    buckets[scale(hash, buckets.size())].emplace_back(hash, &item);
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
    uint32_t displacement = 0;
    for (;; ++displacement) {
      if (displacement > std::numeric_limits<uint16_t>::max())
        return false;
      wanted.clear();
      for (const auto &[hash, item] : bucket) {
        const uint64_t slot = slotOf(hash, static_cast<uint16_t>(displacement));
        if (taken[slot])
          break;
        taken[slot] = true; // so that two keys of one bucket differ
        wanted.push_back(slot);
      }
      if (wanted.size() == bucket.size())
        break;
      for (uint64_t slot : wanted)
        taken[slot] = false;
    }
    displacements[index] = static_cast<uint16_t>(displacement);
    for (size_t i = 0; i < bucket.size(); ++i) {
      const Item &item = *bucket[i].second;
      int64_t *slot = &slots[wanted[i] * (kEntryWords + rank)];
      std::memcpy(slot, &item.second, sizeof item.second);
      std::copy(item.first.begin(), item.first.end(), slot + kEntryWords);
    }
  }
  return true;
}

} // namespace pgkp::rt
