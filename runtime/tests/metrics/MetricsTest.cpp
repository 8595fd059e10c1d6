// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small logs made by hand; every expected number was worked out on paper.
#include "metrics/Event.h"
#include "metrics/EventGenerator.h"
#include "metrics/Percentile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

using namespace pgkp::rt;
using nlohmann::json;

namespace {

constexpr TimeNs s = kNsPerSecond, ms = kNsPerMs;
constexpr int64_t kExact = 0, kClass = 1, kGeneric = 2, kWaited = 3;

json compute(const std::vector<Event> &events, RunInfo info = {}) {
  return json::parse(computeMetrics(info, events));
}

Event keyInfo(uint32_t key, bool generic = false) {
  return {.kind = EventKind::keyInfo, .key = key, .a = generic, .text = "k"};
}
Event dispatch(TimeNs t, uint32_t key, int64_t reason, bool ready,
               double issued = 0, double waited = 0, double kernel = 0,
               uint64_t request = 0) {
  return {.t = t,
          .kind = EventKind::dispatch,
          .key = key,
          .id = request,
          .a = reason,
          .b = ready,
          .value = issued,
          .value2 = waited,
          .value3 = kernel};
}
Event forecast(TimeNs t, uint32_t key, double within, double within10,
               double missing) {
  return {.t = t,
          .kind = EventKind::forecast,
          .key = key,
          .value = within,
          .value2 = within10,
          .value3 = missing};
}
Event job(EventKind kind, TimeNs t, uint32_t key, uint64_t id, int64_t a = 0,
          double cpu = 0) {
  return {.t = t, .kind = kind, .key = key, .id = id, .a = a, .value = cpu};
}
Event at(TimeNs t, EventKind kind, uint32_t key = ~0u, uint64_t id = 0,
         int64_t a = 0, double value = 0, double value2 = 0,
         double value3 = 0) {
  return {.t = t,
          .kind = kind,
          .key = key,
          .id = id,
          .a = a,
          .value = value,
          .value2 = value2,
          .value3 = value3};
}

TEST(Metrics, RootNamesTheRun) {
  const json m = compute({}, {.clock = "virtual",
                              .policy = "lazy",
                              .fallback = "none",
                              .device = "sim",
                              .workers = 3,
                              .leadSeconds = 2.5,
                              .pace = 0,
                              .seed = 9});
  EXPECT_EQ(m["schema"], 1);
  EXPECT_EQ(m["clock"], "virtual");
  EXPECT_EQ(m["policy"], "lazy");
  EXPECT_EQ(m["fallback"], "none");
  EXPECT_EQ(m["device"], "sim");
  EXPECT_EQ(m["workers"]["count"], 3);
  EXPECT_EQ(m["lead_s"], 2.5);
  EXPECT_EQ(m["pace"], 0);
  EXPECT_EQ(m["seed"], 9);
}

TEST(Metrics, NothingHappenedIsNullNotZero) {
  const json m = compute({});
  EXPECT_TRUE(m["prediction"]["next_accuracy"].is_null());
  EXPECT_TRUE(m["prediction"]["first_use_recall"].is_null());
  EXPECT_TRUE(m["prediction"]["ece"].is_null());
  EXPECT_TRUE(m["preparation"]["hit_rate"].is_null());
  EXPECT_TRUE(m["preparation"]["request_hit_rate"].is_null());
  for (const char *name : {"wait_s", "slow_s", "total_s"})
    EXPECT_TRUE(m["lost"][name].is_null()) << name;
  for (const char *name :
       {"build_s", "cold_start_ms", "kernel_s", "completion_s"})
    EXPECT_TRUE(m[name].is_null()) << name;
  for (const char *name : {"p50", "p99", "max"}) {
    EXPECT_TRUE(m["first_invocation_ms"][name].is_null()) << name;
    EXPECT_TRUE(m["invocation_us"][name].is_null()) << name;
  }
  EXPECT_TRUE(m["load"]["blocked_ms"].is_null());
  EXPECT_TRUE(m["foreground_slowdown"]["ratio"].is_null());
  EXPECT_TRUE(m["foreground_slowdown"]["p99"].is_null());
  // Counts that are known to be none are numbers.
  EXPECT_EQ(m["compile"]["jobs"], 0);
  EXPECT_EQ(m["preparation"]["late"], 0);
  EXPECT_EQ(m["workers"]["killed"], 0);
}

TEST(Metrics, NextAccuracyCountsPerStreamAndByNumber) {
  auto use = [](TimeNs t, uint32_t stream, uint32_t key) {
    Event e = dispatch(t, key, kGeneric, false);
    e.stream = stream;
    return e;
  };
  auto next = [](TimeNs t, uint32_t stream, uint64_t number, uint32_t key) {
    return Event{.t = t,
                 .kind = EventKind::nextKey,
                 .key = key,
                 .stream = stream,
                 .id = number};
  };
  // Stream 0: A B A B; stream 1: C C. Asked: 3 + 1 = 4.
  const json m =
      compute({use(1, 0, 10), use(2, 1, 12), use(3, 0, 11), use(4, 0, 10),
               use(5, 1, 12), use(6, 0, 11),
               next(9, 0, 1, 10),   // wrong: B came; logged late on purpose
               next(9, 0, 2, 10),   // right
               next(9, 0, 3, ~0u),  // no prediction: wrong
               next(9, 1, 1, 12),   // right
               next(9, 1, 2, 12)}); // of a dispatch that never came
  EXPECT_DOUBLE_EQ(m["prediction"]["next_accuracy"], 0.5);
  EXPECT_TRUE(
      compute({use(1, 0, 1), use(2, 0, 1)})["prediction"]["next_accuracy"]
          .is_null());
}

TEST(Metrics, FirstUseRecallNeedsTheMissingStagesTime) {
  const json m = compute({
      keyInfo(0), keyInfo(1), keyInfo(2), keyInfo(3), keyInfo(4, true),
      forecast(1 * s, 0, 0.5, 0, 2.0),  // 4 s before, 2 s needed: counts
      forecast(4 * s, 1, 0.9, 0, 2.0),  // 1 s before, 2 s needed: too late
      forecast(1 * s, 2, 0.49, 0, 0.1), // not likely enough
      dispatch(5 * s, 0, kGeneric, false), dispatch(5 * s, 1, kGeneric, false),
      dispatch(5 * s, 2, kGeneric, false), dispatch(5 * s, 3, kGeneric, false),
      forecast(1 * s, 4, 1, 1, 0),
      dispatch(5 * s, 4, kGeneric, false), // generic: no matter
      forecast(6 * s, 3, 1, 1, 0),
      dispatch(9 * s, 3, kGeneric, false), // after its first use
  });
  EXPECT_DOUBLE_EQ(m["prediction"]["first_use_recall"], 0.25);
}

TEST(Metrics, CalibrationErrorOverClosedHorizons) {
  const json m = compute({
      forecast(0, 0, 1, 0.9, 0), // used at 10 s: inside (0, 10]
      forecast(1, 0, 1, 0.9, 0), // used
      forecast(2, 1, 1, 0.1, 0), // key 1 never used
      forecast(3, 1, 1, 0.12,
               0), // another bin: [0.10, 0.15) holds both 0.1 and 0.12
      dispatch(10 * s, 0, kGeneric, false),
      forecast(11 * s, 0, 1, 1.0, 0), // horizon ends after the log: open
      at(20 * s, EventKind::engineEnd),
  });
  // bin 0.9: |1.8 - 2| = 0.2; bin 0.10: |0.22 - 0| = 0.22; 4 samples.
  EXPECT_NEAR(m["prediction"]["ece"].get<double>(), 0.42 / 4, 1e-12);
}

TEST(Metrics, EachHorizonHasItsScore) {
  // Within 1, 10, 60 and 600 s; used at 5 s and at 50 s.
  Event one = forecast(0, 0, 1.0, 0.8, 0);
  one.value4 = 0.1;
  one.value5 = 0.9;
  Event two = forecast(6 * s, 0, 1.0, 0.2, 0); // in use by then
  two.value4 = 0.2;
  two.value5 = 0.9;
  const json m = compute({one, dispatch(5 * s, 0, kGeneric, false), two,
                          dispatch(50 * s, 0, kGeneric, false),
                          at(100 * s, EventKind::engineEnd)});
  const json &horizons = m["prediction"]["horizons"];
  ASSERT_EQ(horizons.size(), 4u);
  EXPECT_EQ(horizons[0]["horizon_s"], 1);
  EXPECT_EQ(horizons[0]["base_rate"], 0);
  EXPECT_NEAR(horizons[0]["brier"].get<double>(), (0.01 + 0.04) / 2, 1e-12);
  EXPECT_NEAR(horizons[1]["brier"].get<double>(), (0.04 + 0.04) / 2, 1e-12);
  EXPECT_EQ(horizons[1]["base_rate"], 0.5);
  EXPECT_EQ(horizons[1]["base_brier"], 0.25);
  EXPECT_NEAR(horizons[1]["ece"].get<double>(), 0.2, 1e-12);
  EXPECT_EQ(m["prediction"]["ece"], horizons[1]["ece"]);
  EXPECT_EQ(horizons[1]["in_use"]["forecasts"], 1);
  EXPECT_EQ(horizons[1]["in_use"]["base_rate"], 0);
  EXPECT_EQ(horizons[2]["base_rate"], 1);
  EXPECT_EQ(horizons[3]["forecasts"], 0); // none has closed
  EXPECT_TRUE(horizons[3]["brier"].is_null());
  EXPECT_TRUE(
      compute({dispatch(1, 0, kGeneric, false)})["prediction"]["horizons"]
          .is_null());
}

TEST(Metrics, UseAtTheForecastsOwnTimeIsThePast) {
  const json m =
      compute({dispatch(0, 0, kGeneric, false), forecast(0, 0, 1, 1.0, 0),
               at(10 * s, EventKind::engineEnd)});
  EXPECT_DOUBLE_EQ(m["prediction"]["ece"], 1.0);
}

TEST(Metrics, HitRateLeavesOutGenericAndNotWorthKeys) {
  const json m = compute({
      keyInfo(0), keyInfo(1), keyInfo(2), keyInfo(3, true), keyInfo(4),
      at(1, EventKind::notWorth, 2), dispatch(2, 0, kExact, true),
      dispatch(3, 1, kGeneric, false),
      dispatch(4, 1, kExact, true), // not its first use
      dispatch(5, 2, kGeneric, false), dispatch(6, 3, kGeneric, false),
      dispatch(7, 4, kGeneric, false),
      at(8, EventKind::notWorth, 4), // known too late
  });
  EXPECT_DOUBLE_EQ(m["preparation"]["hit_rate"], 1.0 / 3);
  EXPECT_EQ(m["preparation"]["not_worth"], 2);
}

TEST(Metrics, RequestHitRateNeedsEveryKey) {
  const json m = compute({
      keyInfo(0),
      keyInfo(1),
      keyInfo(2, true),
      at(1, EventKind::requestBegin, ~0u, 1),
      dispatch(1, 0, kExact, true, 0, 0, 0, 1),
      dispatch(1, 2, kGeneric, false, 0, 0, 0,
               1), // generic key: always as good as it gets
      at(2, EventKind::requestBegin, ~0u, 2),
      dispatch(2, 0, kExact, true, 0, 0, 0, 2),
      dispatch(2, 1, kGeneric, false, 0, 0, 0, 2),
      at(3, EventKind::requestBegin, ~0u, 3),
      dispatch(3, 1, kWaited, false, 1, 1, 0, 3),
      at(4, EventKind::notWorth, 1),
      at(5, EventKind::requestBegin, ~0u, 4),
      dispatch(5, 1, kGeneric, false, 0, 0, 0, 4),
  });
  EXPECT_DOUBLE_EQ(m["preparation"]["request_hit_rate"], 0.5);
}

TEST(Metrics, LateNeedsASpeculativeJobUnderWay) {
  const json m = compute({
      // 0: queued. 1: running. 2: done, not loaded. 3: a demanded job. 4: it
      // failed. 5: loaded.
      job(EventKind::jobQueued, 1, 0, 10, 1),
      dispatch(9, 0, kGeneric, false),
      job(EventKind::jobStart, 1, 1, 11, 1),
      dispatch(9, 1, kGeneric, false),
      dispatch(9, 1, kGeneric, false), // not a first use
      job(EventKind::jobStart, 1, 2, 12, 1),
      job(EventKind::jobEnd, 2, 2, 12),
      dispatch(9, 2, kGeneric, false),
      job(EventKind::jobStart, 1, 3, 13, 0),
      dispatch(9, 3, kWaited, false),
      job(EventKind::jobStart, 1, 4, 14, 1),
      job(EventKind::jobEnd, 2, 4, 14, 2),
      dispatch(9, 4, kGeneric, false),
      job(EventKind::jobStart, 1, 5, 15, 1),
      job(EventKind::jobEnd, 2, 5, 15),
      at(3, EventKind::ready, 5),
      dispatch(9, 5, kExact, true),
  });
  EXPECT_EQ(m["preparation"]["late"], 3);
}

TEST(Metrics, LostTimeIsWaitingAndSlowness) {
  const json m = compute({
      keyInfo(0),
      keyInfo(1),
      keyInfo(2),
      keyInfo(3, true),
      // Key 0: variant takes 40 % of generic. Three generic dispatches of 10 ms
      // lose 6 ms each.
      dispatch(1, 0, kGeneric, false, 0, 0, 10e-3),
      dispatch(2, 0, kGeneric, false, 0, 0, 10e-3),
      dispatch(3, 0, kGeneric, false, 0, 0, 10e-3),
      at(4, EventKind::tune, 0, 0, 5, 0, 10e-3, 4e-3),
      dispatch(5, 0, kExact, true, 0, 0,
               4e-3), // the best there is: nothing lost
      // Key 1: waited 0.25 s for it; measured no better than generic: nothing
      // slow.
      dispatch(6, 1, kWaited, false, 0.25, 0.25, 1e-3),
      at(7, EventKind::tune, 1, 0, 5, 0, 1e-3, 2e-3),
      dispatch(8, 1, kGeneric, true, 0, 0, 1e-3),
      // Key 2 was never measured and ran generic; key 3 is generic.
      dispatch(9, 2, kGeneric, false, 0, 0, 1.0),
      dispatch(9, 3, kGeneric, false, 0, 0, 1.0),
  });
  EXPECT_NEAR(m["lost"]["wait_s"].get<double>(), 0.25, 1e-12);
  // The wait of key 1 ended in a variant at twice the generic time: half of 1
  // ms is lost.
  EXPECT_NEAR(m["lost"]["slow_s"].get<double>(), 18e-3 + 0.5e-3, 1e-12);
  EXPECT_NEAR(m["lost"]["total_s"].get<double>(), 0.25 + 18.5e-3, 1e-12);
  EXPECT_EQ(m["lost"]["unmeasured_keys"], 1);
}

TEST(Metrics, LostTimeOfABetterConfigurationFoundLater) {
  const json m = compute({
      at(1, EventKind::tune, 0, 0, 5, 0, 10e-3, 8e-3),
      dispatch(2, 0, kExact, true, 0, 0, 8e-3),
      at(3, EventKind::tune, 0, 0, 5, 0, 10e-3, 4e-3),
      dispatch(4, 0, kExact, true, 0, 0, 4e-3),
  });
  EXPECT_NEAR(m["lost"]["slow_s"].get<double>(), 4e-3, 1e-12);
}

TEST(Metrics, LostTimeIsUnknownWhereNothingWasMeasured) {
  const json m =
      compute({keyInfo(0), dispatch(1, 0, kGeneric, false, 0, 0, 1.0)});
  EXPECT_EQ(m["lost"]["wait_s"], 0.0);
  EXPECT_TRUE(m["lost"]["slow_s"].is_null());
  EXPECT_TRUE(m["lost"]["total_s"].is_null());
  // A record from another run tells.
  const json known =
      compute({keyInfo(0), at(0, EventKind::tune, 0, 0, 0, 0, 1.0, 0.25),
               dispatch(1, 0, kGeneric, false, 0, 0, 1.0)});
  EXPECT_NEAR(known["lost"]["slow_s"].get<double>(), 0.75, 1e-12);
  EXPECT_EQ(known["tuning"]["evaluations"], 0);
}

TEST(Metrics, ColdStartLeavesOutTheLead) {
  const std::vector<Event> events = {
      at(1 * s, EventKind::engineStart),
      at(6 * s, EventKind::requestBegin, ~0u, 1),
      at(6 * s + 20 * ms, EventKind::requestEnd, ~0u, 1, 1), // failed
      at(6 * s, EventKind::requestBegin, ~0u, 2),
      at(6 * s + 50 * ms, EventKind::requestEnd, ~0u, 2),
      at(0, EventKind::buildEnd, ~0u, 0, 0, 12.5)};
  EXPECT_NEAR(
      compute(events, {.leadSeconds = 5})["cold_start_ms"].get<double>(), 50,
      1e-9);
  // A lead that was cut short is excluded as long as it lasted.
  EXPECT_NEAR(
      compute(events, {.leadSeconds = 9})["cold_start_ms"].get<double>(), 50,
      1e-9);
  EXPECT_NEAR(compute(events)["cold_start_ms"].get<double>(), 5050, 1e-9);
  EXPECT_EQ(compute(events)["build_s"], 12.5);
}

TEST(Metrics, InvocationTimes) {
  std::vector<Event> events;
  // 100 dispatches of one key: 100 us down to 1 us; then one that was not
  // sampled.
  for (int i = 100; i >= 1; --i)
    events.push_back(dispatch(200 - i, 0, kGeneric, false, i * 1e-6, 0, 1e-3));
  events.push_back(dispatch(500, 1, kGeneric, false, -1, 0, -1));
  events.push_back(dispatch(501, 2, kWaited, false, 0.5, 0.499, 1e-3));
  const json m = compute(events, {.invocationSampleRate = 0.25});
  EXPECT_NEAR(m["invocation_us"]["p50"].get<double>(), 51,
              1e-6); // rank ceil(50.5)
  EXPECT_NEAR(m["invocation_us"]["p99"].get<double>(), 100, 1e-6);
  EXPECT_NEAR(m["invocation_us"]["max"].get<double>(), 5e5, 1e-3);
  EXPECT_EQ(m["invocation_us"]["sample_rate"], 0.25);
  EXPECT_NEAR(m["first_invocation_ms"]["p50"].get<double>(), 0.1, 1e-9);
  EXPECT_NEAR(m["first_invocation_ms"]["max"].get<double>(), 500, 1e-9);
  EXPECT_NEAR(m["kernel_s"].get<double>(), 101e-3, 1e-12);
}

TEST(Metrics, CompileWasteFollowsTheArtifact) {
  const json m = compute({
      // Job 1 made key 0's variant, which ran.
      job(EventKind::jobStart, 1 * s, 0, 1),
      job(EventKind::jobEnd, 2 * s, 0, 1, 0, 1.0),
      at(3 * s, EventKind::ready, 0, 1),
      dispatch(4 * s, 0, kExact, true),
      // Job 2 made a second one that replaced it and never ran.
      job(EventKind::jobStart, 5 * s, 0, 2),
      job(EventKind::jobEnd, 6 * s, 0, 2, 0, 2.0),
      at(7 * s, EventKind::ready, 0, 2),
      // Job 3 was killed, job 4 does not end, job 5's key only ran generic.
      job(EventKind::jobStart, 1 * s, 1, 3),
      job(EventKind::jobEnd, 2 * s, 1, 3, 2, 4.0),
      job(EventKind::jobStart, 1 * s, 1, 4),
      job(EventKind::jobStart, 1 * s, 2, 5),
      job(EventKind::jobEnd, 2 * s, 2, 5, 0, 8.0),
      at(3 * s, EventKind::ready, 2),
      dispatch(4 * s, 2, kGeneric, false),
      // Job 6: the caller waited from 1 s on; publication names no job.
      dispatch(1 * s, 3, kWaited, false, 2, 2),
      job(EventKind::jobStart, 1 * s, 3, 6),
      job(EventKind::jobEnd, 3 * s, 3, 6, 0, 16.0),
      at(3 * s, EventKind::ready, 3),
      // Job 7 made key 4's class variant, which a dispatch of key 5 ran.
      job(EventKind::jobStart, 1 * s, 4, 7),
      job(EventKind::jobEnd, 2 * s, 4, 7, 0, 32.0),
      at(3 * s, EventKind::ready, 4),
      {.t = 4 * s,
       .kind = EventKind::dispatch,
       .key = 5,
       .ran = 4,
       .a = kClass},
      // Key 6 came from the store: no job is charged or credited.
      at(1 * s, EventKind::storeHit, 6),
      at(2 * s, EventKind::ready, 6),
      dispatch(3 * s, 6, kExact, true),
  });
  EXPECT_EQ(m["compile"]["jobs"], 7);
  EXPECT_DOUBLE_EQ(m["compile"]["cpu_s"], 63.0);
  EXPECT_DOUBLE_EQ(m["compile"]["wasted_cpu_s"], 14.0);
}

TEST(Metrics, Tuning) {
  const json m = compute({at(1, EventKind::tune, 0, 0, 5, 0.25, 1, 2),
                          at(2, EventKind::tune, 1, 0, 7, 0.5, 1, 2)});
  EXPECT_EQ(m["tuning"]["evaluations"], 12);
  EXPECT_DOUBLE_EQ(m["tuning"]["device_s"], 0.75);
}

TEST(Metrics, LoadsShareWindowsAndBlockLaunches) {
  const json m = compute({
      at(10 * ms, EventKind::loadBegin, 0, 1),
      at(10 * ms, EventKind::loadBegin, 1, 1),
      at(20 * ms, EventKind::loadEnd, 0, 1),
      at(30 * ms, EventKind::loadEnd, 1, 1),
      at(90 * ms, EventKind::loadBegin, 2, 2),
      at(95 * ms, EventKind::loadEnd, 2, 2, 1),
      at(50 * ms, EventKind::loadDeferred, 3),
      dispatch(1 * ms, 0, kGeneric, false, 1e-6),
      dispatch(2 * ms, 0, kGeneric, false, 1e-6),
      dispatch(3 * ms, 0, kGeneric, false, 1e-6),  // the median: 1 us
      dispatch(25 * ms, 0, kGeneric, false, 4e-3), // inside the first window
      dispatch(40 * ms, 0, kGeneric, false, 4e-3), // between windows
      dispatch(4 * ms, 1, kWaited, false, 20e-3, 20e-3), // waited, not blocked
  });
  EXPECT_EQ(m["load"]["count"], 2);
  EXPECT_EQ(m["load"]["windows"], 2);
  EXPECT_EQ(m["load"]["deferred"], 1);
  EXPECT_NEAR(m["load"]["blocked_ms"].get<double>(), 4 - 1e-3, 1e-9);
}

TEST(Metrics, CompletionRunsFromTheFirstArrival) {
  const json m = compute(
      {at(3 * s, EventKind::requestBegin, ~0u, 1, 0, 0.5), // arrived at 2.5 s
       at(4 * s, EventKind::requestEnd, ~0u, 1),
       at(4 * s, EventKind::requestBegin, ~0u, 2, 0, 0.1),
       at(7 * s, EventKind::requestEnd, ~0u, 2)});
  EXPECT_NEAR(m["completion_s"].get<double>(), 4.5, 1e-12);
}

TEST(Metrics, ForegroundSlowdown) {
  std::vector<Event> events;
  for (double running : {1.1, 1.3, 1.2})
    events.push_back(at(1, EventKind::pair, ~0u, 0, 0, running, 1.0));
  const json m = compute(events, {.clock = "real"});
  EXPECT_DOUBLE_EQ(m["foreground_slowdown"]["ratio"], 1.2);
  EXPECT_DOUBLE_EQ(m["foreground_slowdown"]["p99"], 1.3);
  EXPECT_EQ(m["foreground_slowdown"]["modelled"], false);
  EXPECT_EQ(
      compute(events, {.clock = "virtual"})["foreground_slowdown"]["modelled"],
      true);
}

TEST(Metrics, Workers) {
  const json m = compute(
      {at(1, EventKind::workerStart), at(2, EventKind::workerLost),
       at(3, EventKind::workerStart, ~0u, 0, 1),
       at(4, EventKind::workerLost, ~0u, 0, 1),
       at(5, EventKind::workerStart, ~0u, 0, 1), at(6, EventKind::workerLost)});
  EXPECT_EQ(m["workers"]["killed"], 2);
  EXPECT_EQ(m["workers"]["hung"], 1);
  EXPECT_EQ(m["workers"]["restarts"], 2);
}

TEST(Percentile, NearestRankIsAlwaysASample) {
  const double values[] = {15, 20, 35, 40, 50};
  EXPECT_EQ(nearestRank(values, 5), 15);
  EXPECT_EQ(nearestRank(values, 30), 20);
  EXPECT_EQ(nearestRank(values, 40), 20);
  EXPECT_EQ(nearestRank(values, 50), 35);
  EXPECT_EQ(nearestRank(values, 100), 50);
  EXPECT_EQ(nearestRank({values, 1}, 99), 15);
}

RC_GTEST_PROP(PercentileProperty, AtLeastTheShareDoesNotExceedIt, ()) {
  auto values = *rc::gen::nonEmpty(rc::gen::arbitrary<std::vector<double>>());
  const double percent = *rc::gen::inRange(1, 101);
  std::sort(values.begin(), values.end());
  const double result = nearestRank(values, percent);
  const auto notAbove = std::count_if(values.begin(), values.end(),
                                      [&](double v) { return v <= result; });
  const auto below = std::count_if(values.begin(), values.end(),
                                   [&](double v) { return v < result; });
  const double needed = percent / 100 * static_cast<double>(values.size());
  RC_ASSERT(static_cast<double>(notAbove) >= needed - 1e-9);
  RC_ASSERT(static_cast<double>(below) < needed);
}

/// Checks what must hold for any log: ratios in [0, 1], waste within the cost,
/// no number that is negative where none can be.
void checkSane(const json &m) {
  auto ratio = [](const json &value) {
    RC_ASSERT(value.is_null() || (value >= 0.0 && value <= 1.0));
  };
  for (const char *name : {"next_accuracy", "first_use_recall", "ece"})
    ratio(m["prediction"][name]);
  ratio(m["preparation"]["hit_rate"]);
  ratio(m["preparation"]["request_hit_rate"]);
  RC_ASSERT(m["compile"]["wasted_cpu_s"] <= m["compile"]["cpu_s"]);
  for (const char *name : {"wait_s", "slow_s", "total_s"})
    RC_ASSERT(m["lost"][name].is_null() || m["lost"][name] >= 0.0);
  RC_ASSERT(m["load"]["blocked_ms"].is_null() ||
            m["load"]["blocked_ms"] >= 0.0);
}

RC_GTEST_PROP(MetricsProperty, AnyEventsGiveMetrics, ()) {
  const auto events = *rc::gen::container<std::vector<Event>>(genEvent(true));
  checkSane(compute(events));
}

RC_GTEST_PROP(MetricsProperty, EventsThatMeetGiveMetrics, ()) {
  const auto events = *rc::gen::container<std::vector<Event>>(genEvent(false));
  checkSane(compute(events));
}

RC_GTEST_PROP(MetricsProperty, TheLogIsEnough, ()) {
  const auto events = *rc::gen::container<std::vector<Event>>(genEvent(false));
  std::vector<Event> back;
  for (const Event &event : events)
    back.push_back(*parseEvent(toJsonLine(event)));
  RC_ASSERT(computeMetrics({}, back) == computeMetrics({}, events));
}

} // namespace
