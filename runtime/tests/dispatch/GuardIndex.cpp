// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dispatch/GuardIndex.h"
#include "base/Random.h"
#include "dispatch/Support.h"

#include <gtest/gtest.h>
#include <limits>

using namespace pgkp::rt;
using namespace pgkp::rt::testing;
namespace schema = pgkp::schema;

namespace {

using Guards = std::vector<std::vector<schema::Fact>>;

GuardIndex index(const Guards &guards, unsigned rank) {
  std::vector<std::span<const schema::Fact>> spans(guards.begin(),
                                                   guards.end());
  return GuardIndex(spans, rank);
}

size_t firstByHand(const Guards &guards, std::span<const int64_t> extents) {
  for (size_t i = 0; i < guards.size(); ++i)
    if (holds(guards[i], extents))
      return i;
  return GuardIndex::kNone;
}

TEST(GuardIndex, EmptyListsAndGuards) {
  const int64_t extents[] = {5};
  EXPECT_EQ(GuardIndex().first(extents), GuardIndex::kNone);
  EXPECT_EQ(index({{}}, 1).first(extents), 0u);
  EXPECT_EQ(index({{eq(0, 4)}, {}}, 1).first(extents), 1u);
}

TEST(GuardIndex, ContradictionsNeverHold) {
  const auto guards = index({{eq(0, 4), eq(0, 5)},
                             {in(0, 9, 3)},
                             {divisible(0, 0)},
                             {divisible(0, -4)},
                             {in(0, 0, 10), in(0, 11, 20)}},
                            1);
  for (int64_t x = 0; x < 30; ++x)
    EXPECT_EQ(guards.first(&x), GuardIndex::kNone) << x;
}

TEST(GuardIndex, Borders) {
  constexpr int64_t low = std::numeric_limits<int64_t>::min();
  constexpr int64_t high = std::numeric_limits<int64_t>::max();
  const Guards guards = {{in(0, low, -1)}, {in(0, 100, high)}, {eq(0, 0)}};
  const auto built = index(guards, 1);
  for (int64_t x : {low, int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{99},
                    int64_t{100}, high})
    EXPECT_EQ(built.first(&x), firstByHand(guards, {&x, 1})) << x;
}

// Against the definition, on random lattices and on points near their borders.
TEST(GuardIndex, AgreesWithHolds) {
  SeededRandom random(7);
  size_t matches = 0;
  for (int round = 0; round < 400; ++round) {
    const unsigned rank = 1 + random.below(4);
    Guards guards(random.below(round % 10 == 0 ? 200 : 20));
    std::vector<int64_t> interesting = {0, 1, 63, 64, 65, 4096};
    for (auto &guard : guards)
      for (uint64_t facts = random.below(4); facts > 0; --facts) {
        const unsigned dim = random.below(rank);
        const int64_t a = random.below(200), b = a + random.below(100);
        static constexpr int64_t divisors[] = {1, 2, 3, 4, 8, 12, 16, 64, 100};
        switch (random.below(3)) {
        case 0:
          guard.push_back(eq(dim, a));
          break;
        case 1:
          guard.push_back(in(dim, a, b));
          break;
        default:
          guard.push_back(divisible(dim, divisors[random.below(9)]));
        }
        for (int64_t value : {a - 1, a, a + 1, b, b + 1})
          interesting.push_back(value);
      }
    const auto built = index(guards, rank);
    for (int point = 0; point < 100; ++point) {
      int64_t extents[4];
      for (int64_t &extent : extents)
        extent = random.below(2) ? interesting[random.below(interesting.size())]
                                 : static_cast<int64_t>(random.below(400));
      const size_t expected = firstByHand(guards, {extents, rank});
      matches += expected != GuardIndex::kNone;
      ASSERT_EQ(built.first(extents), expected) << "round " << round;
    }
  }
  EXPECT_GT(matches, 10000u) << "the test looked at nothing but misses";
}

} // namespace
