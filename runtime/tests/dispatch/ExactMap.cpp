// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dispatch/ExactMap.h"
#include "base/Random.h"

#include <gtest/gtest.h>
#include <set>

using namespace pgkp::rt;

namespace {

/// Each key's workspace is its number; the variant pointer is not looked at.
const Variant *someVariant() {
  static int anything;
  return reinterpret_cast<const Variant *>(&anything);
}

ExactMap build(const std::vector<std::vector<int64_t>> &keys, uint32_t rank) {
  std::vector<ExactMap::Item> items;
  for (size_t i = 0; i < keys.size(); ++i)
    items.push_back({keys[i], {someVariant(), nullptr, i}});
  return ExactMap(items, rank);
}

void check(const std::vector<std::vector<int64_t>> &keys, uint32_t rank) {
  const ExactMap map = build(keys, rank);
  for (size_t i = 0; i < keys.size(); ++i) {
    const Answer *answer = map.find(keys[i].data());
    ASSERT_NE(answer, nullptr);
    ASSERT_EQ(answer->found.variant, someVariant());
    ASSERT_EQ(answer->found.workspaceBytes, i);
  }
}

TEST(ExactMap, SizesAndRanks) {
  SeededRandom random(5);
  for (uint32_t rank : {1, 2, 3, 5, 8, 9, 17})
    for (size_t size : {0, 1, 2, 3, 4, 5, 7, 64, 1000}) {
      std::set<std::vector<int64_t>> keys;
      while (keys.size() < size) {
        std::vector<int64_t> key(rank);
        for (int64_t &extent : key)
          extent = static_cast<int64_t>(random.below(2048));
        keys.insert(key);
      }
      check({keys.begin(), keys.end()}, rank);
    }
}

// Products of small sets, powers of two, runs: what extents look like, and what
// weak hashes fail on.
TEST(ExactMap, RegularKeys) {
  std::vector<std::vector<int64_t>> grid, powers, run;
  for (int64_t m = 1; m <= 64; ++m)
    for (int64_t n = 1; n <= 64; ++n)
      grid.push_back({m, 64 * n, 4096});
  for (int a = 0; a < 20; ++a)
    for (int b = 0; b < 20; ++b)
      powers.push_back({int64_t{1} << a, int64_t{1} << (2 * b)});
  for (int64_t i = 0; i < 5000; ++i)
    run.push_back({i});
  check(grid, 3);
  check(powers, 2);
  check(run, 1);
}

TEST(ExactMap, OtherKeysAreNotFound) {
  std::vector<std::vector<int64_t>> keys;
  for (int64_t i = 0; i < 300; ++i)
    keys.push_back({2 * i + 2, 5});
  const ExactMap map = build(keys, 2);
  for (int64_t i = 0; i < 300; ++i)
    for (const auto &key :
         {std::array<int64_t, 2>{2 * i + 1, 5}, {2 * i + 2, 4}})
      ASSERT_EQ(map.find(key.data()), nullptr);
  // Empty slots hold zeros.
  ASSERT_EQ(map.find(std::array<int64_t, 2>{0, 0}.data()), nullptr);
}

} // namespace
