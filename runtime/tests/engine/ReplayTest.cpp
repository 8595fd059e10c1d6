// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/Replay.h"

#include "schema/TestBundle.h"

#include <gtest/gtest.h>
#include <map>

using namespace pgkp::rt;

namespace {

std::shared_ptr<const Module> testModule() {
  auto module = Module::load(fixtures::pack(fixtures::testBundle()));
  EXPECT_TRUE(module) << (module ? "" : module.error().message);
  return module ? *module : nullptr;
}

/// Batches of one, then a growing sequence: every class of the kernel turns up.
std::vector<ReplayRequest> requests() {
  std::vector<ReplayRequest> all;
  for (int i = 0; i < 60; ++i)
    all.push_back(
        {0.25 * i, 0, {1 + i / 20, i % 3 == 0 ? 1 : 16 * (i % 5 + 1)}});
  return all;
}

struct ReplayResult {
  RunInfo info;
  std::vector<Event> events;
};

ReplayWorkload workload() {
  ReplayWorkload result;
  result.module = testModule();
  result.requests = requests();
  return result;
}

ReplayResult play(ReplayOptions options) {
  MemorySink log;
  auto result = replay(workload(), options, log);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return {result ? result->info : RunInfo{}, std::move(log.events)};
}

std::map<EventKind, size_t> counts(const std::vector<Event> &events) {
  std::map<EventKind, size_t> result;
  for (const Event &event : events)
    ++result[event.kind];
  return result;
}

double lostTo(const ReplayResult &result) {
  // Waiting plus what generic launches took above the variant's time (twice:
  // matmul).
  double lost = 0;
  for (const Event &event : result.events)
    if (event.kind == EventKind::dispatch)
      lost += event.value2 + (event.ran == ~0u ? 0 : event.value3 / 2);
  return lost;
}

TEST(Replay, OffNeverCompiles) {
  const auto result = play({.policy = "off"});
  auto n = counts(result.events);
  EXPECT_EQ(n[EventKind::jobStart], 0u);
  EXPECT_EQ(n[EventKind::requestEnd], 60u);
  EXPECT_EQ(n[EventKind::dispatch], 60u * 3);
}

TEST(Replay, EagerWaitsOnceForEachKey) {
  const auto result = play({.policy = "eager"});
  std::map<uint32_t, int> waits;
  size_t generic = 0;
  for (const Event &event : result.events)
    if (event.kind == EventKind::dispatch) {
      waits[event.key] += event.value2 > 0;
      generic += event.ran != ~0u;
    }
  for (const auto &[key, count] : waits)
    EXPECT_LE(count, 1) << "key " << key;
  EXPECT_EQ(generic, 0u);
  EXPECT_GT(counts(result.events)[EventKind::jobStart], 0u);
}

TEST(Replay, EveryStartedJobEndsAndNoKeyIsCompiledTwice) {
  for (const char *policy : {"eager", "lazy", "predictive", "oracle"}) {
    const auto result = play({.policy = policy, .workers = 2, .lead = 1});
    std::map<uint32_t, int> jobs;
    for (const Event &event : result.events)
      if (event.kind == EventKind::jobStart) {
        EXPECT_EQ(++jobs[event.key], 1) << policy << ", key " << event.key;
      }
  }
}

TEST(Replay, LazyNeverStartsBeforeTheFirstMiss) {
  const auto result = play({.policy = "lazy", .lead = 5});
  std::map<uint32_t, TimeNs> first;
  for (const Event &event : result.events) {
    if (event.kind == EventKind::dispatch)
      first.try_emplace(event.key, event.t);
    if (event.kind == EventKind::jobStart) {
      ASSERT_TRUE(first.count(event.key));
      EXPECT_GE(event.t, first[event.key]);
    }
  }
}

TEST(Replay, OracleLosesNoMoreThanLazy) {
  const double lazy = lostTo(play({.policy = "lazy", .lead = 2})),
               oracle = lostTo(play({.policy = "oracle", .lead = 2}));
  EXPECT_GT(lazy, 0);
  EXPECT_LE(oracle, lazy);
  // Two seconds of lead are enough for the three classes: nothing is lost at
  // all.
  EXPECT_EQ(oracle, 0);
}

TEST(Replay, SameSeedSameLog) {
  const ReplayOptions options{.policy = "predictive", .workers = 2, .seed = 7};
  EXPECT_EQ(play(options).events, play(options).events);
}

TEST(Replay, TimeNeverRunsBackwards) {
  const auto result = play({.policy = "predictive", .workers = 3, .lead = 1});
  TimeNs last = 0;
  for (const Event &event : result.events) {
    if (event.kind == EventKind::dispatch || event.kind == EventKind::nextKey)
      continue; // logged when issued, stamped with their beginning
    EXPECT_GE(event.t, last) << eventKindName(event.kind);
    last = event.t;
  }
}

/// Launches of two kernels' classes, as a kernel trace gives them.
ReplayWorkload launches() {
  ReplayWorkload result;
  result.module = testModule();
  for (int i = 0; i < 100; ++i)
    result.launches.push_back({0.01 * i, 0.002, static_cast<KeyId>(i % 3),
                               static_cast<uint32_t>(i % 2)});
  return result;
}

TEST(Replay, LaunchesBehindASlowOneComeLater) {
  MemorySink log;
  ReplayOptions options{.policy = "off"};
  options.matmulSlowdown = options.otherSlowdown = 3;
  ASSERT_TRUE(replay(launches(), options, log));
  TimeNs last = 0;
  for (const Event &event : log.events)
    if (event.kind == EventKind::dispatch) {
      last = event.t;
      EXPECT_DOUBLE_EQ(event.value3, 0.006);
    }
  // 99 launches in front of the last lose 4 ms each.
  EXPECT_NEAR(toSeconds(last), 0.99 + 99 * 0.004, 1e-6);
}

TEST(Replay, EveryPolicyIsMeasuredAgainstTheSameKernelTimes) {
  ReplayOptions options{.policy = "off"};
  MemorySink log;
  ASSERT_TRUE(replay(launches(), options, log));
  std::map<uint32_t, size_t> tuned;
  for (const Event &event : log.events)
    if (event.kind == EventKind::tune) {
      ++tuned[event.key];
      EXPECT_EQ(event.value2 / event.value3, 2); // the family is matmul
    }
  EXPECT_EQ(tuned.size(), 3u);
  for (const auto &[key, count] : tuned)
    EXPECT_EQ(count, 1u);
}

TEST(Replay, UnknownPolicyIsAnError) {
  MemorySink log;
  auto result = replay(workload(), {.policy = "clairvoyant"}, log);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "no policy 'clairvoyant'");
}

} // namespace
