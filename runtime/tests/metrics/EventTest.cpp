// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "metrics/Event.h"
#include "metrics/EventGenerator.h"
#include "metrics/EventLog.h"

#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>
#include <limits>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <thread>

using namespace pgkp::rt;

namespace {

TEST(Event, WritesOnlyWhatIsSet) {
  Event event{.t = 5, .kind = EventKind::ready, .key = 7};
  EXPECT_EQ(toJsonLine(event), R"({"t":5,"event":"ready","key":7})");
  event.text = "a\"b\n";
  event.value2 = 0.1;
  EXPECT_EQ(toJsonLine(event),
            R"({"t":5,"event":"ready","key":7,"value2":0.1,"text":"a\"b\n"})");
}

TEST(Event, EveryKindHasItsName) {
  for (size_t i = 0; i < kNumEventKinds; ++i) {
    Event event{.kind = static_cast<EventKind>(i)};
    auto back = parseEvent(toJsonLine(event));
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_EQ(back->kind, event.kind);
  }
  EXPECT_EQ(eventKindName(EventKind::engineEnd), "engineEnd");
}

TEST(Event, RoundTripOfValuesJsonCannotSpell) {
  Event event{.kind = EventKind::tune,
              .value = std::numeric_limits<double>::infinity(),
              .value2 = -std::numeric_limits<double>::infinity(),
              .value3 = -0.0};
  auto back = parseEvent(toJsonLine(event));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(*back, event);
  EXPECT_TRUE(std::signbit(back->value3));
  event.value = std::numeric_limits<double>::quiet_NaN();
  back = parseEvent(toJsonLine(event));
  ASSERT_TRUE(back.has_value());
  EXPECT_TRUE(std::isnan(back->value));
}

TEST(Event, RejectsWhatIsNotAnEvent) {
  auto message = [](const char *line) {
    auto event = parseEvent(line);
    return event ? std::string("accepted") : event.error().message;
  };
  EXPECT_EQ(message("[1]"), "event is not a JSON object");
  EXPECT_EQ(message("{"), "event is not a JSON object");
  EXPECT_EQ(message("{\"t\":1}"), "event has no 't' or no 'event'");
  EXPECT_EQ(message(R"({"t":1,"event":"nap"})"), "event kind 'nap' is unknown");
  EXPECT_EQ(message(R"({"t":1,"event":"ready","key":-1})"),
            "event member 'key' is not a non-negative integer");
  EXPECT_EQ(message(R"({"t":1,"event":"ready","key":4294967296})"),
            "event member 'key' is not a non-negative integer");
  EXPECT_EQ(message(R"({"t":1,"event":"ready","more":1})"),
            "event has an unknown member");
}

RC_GTEST_PROP(EventProperty, RoundTripIsExact, ()) {
  const Event event = *genEvent();
  const auto back = parseEvent(toJsonLine(event));
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == event);
}

TEST(EventLog, KeepsOrderAndWritesJsonLines) {
  const std::string path = testing::TempDir() + "pgkp-events.jsonl";
  auto sink = openJsonLines(path);
  ASSERT_TRUE(sink.has_value()) << sink.error().message;
  EventLog log(4);
  std::vector<Event> expected;
  for (int i = 0; i < 10; ++i) {
    expected.push_back(
        {.t = i, .kind = EventKind::ready, .key = static_cast<uint32_t>(i)});
    EXPECT_TRUE(log.append(expected.back())); // more than the ring holds
  }
  ASSERT_TRUE(log.drain(**sink).has_value());
  ASSERT_TRUE((*sink)->flush().has_value());
  auto back = readEvents(path);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(*back, expected);
  EXPECT_EQ(log.dropped(), 0u);
  std::remove(path.c_str());
}

TEST(EventLog, RecordDropsAndCountsWhenFull) {
  EventLog log(4);
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(log.record({.t = i}), i < 4);
  EXPECT_EQ(log.dropped(), 2u);
  MemorySink sink;
  ASSERT_TRUE(log.drain(sink).has_value());
  EXPECT_EQ(sink.events.size(), 4u);
}

TEST(EventLog, AppendIsBoundedToo) {
  EventLog log(2, /*maxPending=*/4);
  unsigned kept = 0;
  for (int i = 0; i < 20; ++i)
    kept += log.append({.t = i});
  EXPECT_EQ(kept, 6u);
  EXPECT_EQ(log.dropped(), 14u);
}

TEST(EventLog, UnreadableLogsNameFileAndLine) {
  EXPECT_FALSE(readEvents("/nonexistent/log").has_value());
  EXPECT_FALSE(openJsonLines("/nonexistent/log").has_value());
  const std::string path = testing::TempDir() + "pgkp-bad.jsonl";
  std::FILE *file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("{\"t\":1,\"event\":\"ready\"}\nnonsense\n", file);
  std::fclose(file);
  auto events = readEvents(path);
  ASSERT_FALSE(events.has_value());
  EXPECT_EQ(events.error().message, path + ":2: event is not a JSON object");
  std::remove(path.c_str());
}

TEST(EventLog, ThreadsLoseNothingWhileItIsDrained) {
  constexpr int kThreads = 3, kEach = 5000;
  EventLog log(64);
  MemorySink sink;
  std::atomic<int> alive{kThreads};
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kEach; ++i)
        log.append({.t = i, .stream = thread});
      --alive;
    });
  while (alive > 0)
    ASSERT_TRUE(log.drain(sink).has_value());
  for (auto &thread : threads)
    thread.join();
  for (size_t before = ~size_t{0}; before != sink.events.size();) {
    before = sink.events.size();
    ASSERT_TRUE(log.drain(sink).has_value());
  }
  ASSERT_EQ(sink.events.size(), size_t{kThreads} * kEach);
  std::vector<TimeNs> next(kThreads, 0);
  for (const Event &event : sink.events)
    EXPECT_EQ(event.t, next[event.stream]++);
}

} // namespace
