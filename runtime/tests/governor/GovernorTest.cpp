// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "governor/Governor.h"

#include "base/LogCapture.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

using namespace pgkp::rt;

namespace {

constexpr TimeNs s = kNsPerSecond;

/// What the test says, whenever it is asked.
struct SaidLoad final : Probe {
  explicit SaidLoad(const MachineLoad &load) : load(load) {}
  MachineLoad sample(TimeNs) override { return load; }
  std::string describe() const override { return "said"; }
  const MachineLoad &load;
};

MachineLoad quiet(double cores) {
  return {.cores = cores,
          .idleCores = cores,
          .pressure = 0,
          .freeMemoryBytes = 64e9};
}

TEST(Governor, FixedIsFixed) {
  auto governor = makeFixedGovernor(3);
  EXPECT_EQ(governor->capacity(0, true).workers, 3u);
  EXPECT_EQ(governor->capacity(9 * s, false).workers, 3u);
}

TEST(Governor, SaysWhatItUses) {
  setenv("PGKP_LOG", "info", 1);
  LogCapture log;
  const MachineLoad load = quiet(4);
  makeGovernor(std::make_unique<SaidLoad>(load), 3);
  unsetenv("PGKP_LOG");
  EXPECT_EQ(log.count("governor: said; at most 3 workers"), 1u);
}

TEST(Governor, ServingTakesAQuarterOfTheCores) {
  MachineLoad load = quiet(16);
  auto governor = makeGovernor(std::make_unique<SaidLoad>(load), 12);
  EXPECT_EQ(governor->capacity(0, false).workers, 12u);
  EXPECT_EQ(governor->capacity(0, true).workers, 4u);
  load.idleCores = 3; // all but one of these
  EXPECT_EQ(governor->capacity(1 * s, true).workers, 2u);
}

TEST(Governor, ASmallMachineKeepsOneWorker) {
  MachineLoad load = quiet(2);
  load.idleCores = 0;
  auto governor = makeGovernor(std::make_unique<SaidLoad>(load), 4);
  EXPECT_EQ(governor->capacity(0, true).workers, 1u);
  EXPECT_EQ(governor->capacity(0, false).workers, 2u);
}

TEST(Governor, PressureHalvesHoldsAndRecoversByOne) {
  MachineLoad load = quiet(64);
  auto governor = makeGovernor(std::make_unique<SaidLoad>(load), 8);
  auto workers = [&](int second) {
    return governor->capacity(second * s, false).workers;
  };
  EXPECT_EQ(workers(0), 8u);
  load.pressure = 0.06;
  EXPECT_EQ(workers(1), 4u);
  EXPECT_GE(governor->capacity(1 * s, false).cpuPrice, 1);
  EXPECT_EQ(workers(2), 4u); // held
  EXPECT_EQ(workers(3), 2u);
  load.pressure = 0.04;
  EXPECT_EQ(workers(4), 2u); // held
  EXPECT_EQ(workers(5), 3u);
  EXPECT_EQ(workers(6), 4u);
  governor->onLatency(1.06, 6 * s);
  EXPECT_EQ(workers(7), 2u);
}

TEST(Governor, PriceFallsToItsFloorOnIdleCores) {
  MachineLoad load = quiet(64);
  auto governor = makeGovernor(std::make_unique<SaidLoad>(load), 2);
  EXPECT_EQ(governor->capacity(0, true).cpuPrice, 0.02);
  load.pressure = 0.5;
  EXPECT_GE(governor->capacity(1 * s, true).cpuPrice, 1);
  load.pressure = 0;
  for (int second = 2; second < 20; ++second)
    governor->capacity(second * s, true);
  EXPECT_EQ(governor->capacity(20 * s, true).cpuPrice, 0.02);
}

TEST(Governor, PriceFollowsTheWorkersUsedAndNotTheirLimit) {
  MachineLoad load = quiet(16);
  load.idleCores = 2; // far fewer than the limit
  auto governor = makeGovernor(std::make_unique<SaidLoad>(load), 12);
  for (int second = 0; second < 30; ++second)
    EXPECT_EQ(governor->capacity(second * s, true, 1).cpuPrice, 0.02);
  // Pressure lowers the limit to 1 while 8 jobs still run: it climbs.
  load.pressure = 0.5;
  double last = 0;
  for (int second = 30; second < 40; ++second)
    last = governor->capacity(second * s, true, 8).cpuPrice;
  load.pressure = 0;
  EXPECT_GT(last, 1);
  EXPECT_GT(governor->capacity(40 * s, true, 8).cpuPrice, last * 0.99);
}

TEST(Governor, OwnWorkersDoNotLowerTheirOwnCeiling) {
  MachineLoad load = quiet(32);
  load.idleCores = 5;
  auto governor = makeGovernor(std::make_unique<SaidLoad>(load), 12);
  EXPECT_EQ(governor->capacity(0, true, 0).workers, 4u);
  load.idleCores = 1; // four of them are ours now
  EXPECT_EQ(governor->capacity(1 * s, true, 4).workers, 4u);
}

TEST(Governor, WithoutMemoryNothingStarts) {
  MachineLoad load = quiet(8);
  load.freeMemoryBytes = 100e6;
  auto governor = makeGovernor(std::make_unique<SaidLoad>(load), 4);
  EXPECT_EQ(governor->capacity(0, false).workers, 0u);
  load.freeMemoryBytes = 0; // unknown
  EXPECT_EQ(governor->capacity(1 * s, false).workers, 4u);
}

RC_GTEST_PROP(GovernorProperty, AlwaysWithinBounds, ()) {
  MachineLoad load;
  const unsigned most = *rc::gen::inRange(1u, 20u);
  auto governor = makeGovernor(std::make_unique<SaidLoad>(load), most);
  for (int i = 0; i < 50; ++i) {
    load = {.cores = *rc::gen::inRange(1, 200) / 10.0,
            .idleCores = *rc::gen::inRange(0, 200) / 10.0,
            .pressure = *rc::gen::inRange(0, 11) / 10.0,
            .freeMemoryBytes = 64e9};
    const Capacity capacity = governor->capacity(
        i * *rc::gen::inRange<TimeNs>(0, s), *rc::gen::arbitrary<bool>());
    RC_ASSERT(capacity.workers >= 1 && capacity.workers <= most);
    RC_ASSERT(capacity.cpuPrice >= 0.02 && capacity.cpuPrice <= 4);
  }
}

} // namespace
