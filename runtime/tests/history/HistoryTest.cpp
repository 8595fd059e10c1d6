// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "history/History.h"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

using namespace pgkp::rt;

namespace {

TEST(History, FirstInFirstOut) {
  History history(4);
  for (KeyId key = 0; key < 3; ++key)
    EXPECT_TRUE(history.push(
        {.key = key, .stream = 7, .entry = 2, .number = key, .at = 100}));
  std::vector<Use> seen;
  EXPECT_EQ(history.drain([&](const Use &use) { seen.push_back(use); }), 3u);
  ASSERT_EQ(seen.size(), 3u);
  for (KeyId key = 0; key < 3; ++key)
    EXPECT_EQ(seen[key].key, key);
  EXPECT_EQ(seen[0].stream, 7u);
  EXPECT_EQ(seen[0].entry, 2u);
  EXPECT_EQ(seen[2].number, 2u);
  EXPECT_EQ(seen[0].at, 100);
  EXPECT_EQ(history.drain([](const Use &) {}), 0u);
}

TEST(History, DropsAndCountsWhenFullAndGoesOnAfterwards) {
  History history(3); // rounded up to 4
  EXPECT_EQ(history.capacity(), 4u);
  for (KeyId key = 0; key < 10; ++key)
    EXPECT_EQ(history.push({.key = key}), key < 4);
  EXPECT_EQ(history.dropped(), 6u);
  KeyId expected = 0;
  history.drain([&](const Use &use) { EXPECT_EQ(use.key, expected++); });
  EXPECT_EQ(expected, 4u);
  EXPECT_TRUE(history.push({.key = 77}));
}

TEST(History, ThreadsKeepTheirOrderAndNothingIsCountedTwice) {
  constexpr unsigned kThreads = 3, kEach = 20000;
  History history(256);
  std::atomic<unsigned> alive{kThreads};
  std::vector<std::thread> threads;
  for (unsigned stream = 0; stream < kThreads; ++stream)
    threads.emplace_back([&, stream] {
      for (uint32_t number = 0; number < kEach; ++number)
        history.push({.stream = stream, .number = number});
      --alive;
    });
  std::vector<int64_t> last(kThreads, -1);
  size_t received = 0;
  auto visit = [&](const Use &use) {
    ++received;
    EXPECT_GT(int64_t{use.number}, last[use.stream]);
    last[use.stream] = use.number;
  };
  while (alive > 0)
    history.drain(visit);
  for (auto &thread : threads)
    thread.join();
  while (history.drain(visit) > 0)
    ;
  EXPECT_EQ(received + history.dropped(), size_t{kThreads} * kEach);
}

} // namespace
