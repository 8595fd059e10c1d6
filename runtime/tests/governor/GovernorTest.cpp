// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "governor/Governor.h"

#include <filesystem>
#include <fstream>
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

/// A folder that looks like a machine's /proc and /sys.
class ProbeTest : public testing::Test {
protected:
  void SetUp() override {
    root = std::filesystem::path(testing::TempDir()) /
           ("pgkp-probe-" +
            std::string(
                testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(root);
    write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3\n");
    write("proc/meminfo", "MemTotal: 8000 kB\nMemAvailable: 4000 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root); }
  void write(const std::string &file, const std::string &text) {
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  }
  /// All processors alike: ticks busy, niced, idle.
  void stat(int cpus, int busy, int niced, int idle) {
    std::string text = "cpu  1 1 1 1 0 0 0 0 0 0\n";
    for (int i = 0; i < cpus; ++i)
      text += "cpu" + std::to_string(i) + " " + std::to_string(busy) + " " +
              std::to_string(niced) + " 0 " + std::to_string(idle) +
              " 0 0 0 0 0 0\n";
    write("proc/stat", text);
  }
  std::filesystem::path root;
};

TEST_F(ProbeTest, AffinityAloneWhereNothingElseIsThere) {
  auto probe = makeLinuxProbe(root);
  const MachineLoad load = probe->sample(0);
  EXPECT_EQ(load.cores, 4);
  EXPECT_EQ(load.idleCores, 4);
  EXPECT_EQ(load.pressure, 0);
  EXPECT_EQ(load.freeMemoryBytes, 4000 * 1024.0);
  EXPECT_EQ(probe->describe(), "affinity 4 cores, cgroup none, pressure none");
}

TEST_F(ProbeTest, UnifiedQuotaIsTheTightestOnTheWayUp) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/a/memory.max", "1000000\n");
  write("sys/fs/cgroup/a/memory.current", "400000\n");
  auto probe = makeLinuxProbe(root);
  EXPECT_EQ(probe->sample(0).cores, 1.5);
  EXPECT_EQ(probe->sample(0).freeMemoryBytes, 600000);
  EXPECT_EQ(probe->describe(),
            "affinity 4 cores, cgroup v2 /sys/fs/cgroup/a/b, pressure none");
}

TEST_F(ProbeTest, ContainerSeesItsGroupAsTheRoot) {
  write("proc/self/cgroup", "0::/../outside\n");
  write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(makeLinuxProbe(root)->sample(0).cores, 2);
}

TEST_F(ProbeTest, LegacyQuota) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/job\n3:memory:/other\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  auto probe = makeLinuxProbe(root);
  EXPECT_EQ(probe->sample(0).cores, 0.5);
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(probe->sample(0).cores, 4);
}

TEST_F(ProbeTest, IdleCoresOfOurProcessorsWithNicedWorkAsIdle) {
  stat(8, 100, 0, 100);
  auto probe = makeLinuxProbe(root);
  probe->sample(0);
  stat(8, 150, 10, 140); // half of it busy, a tenth niced, the rest idle
  EXPECT_NEAR(probe->sample(10 * s).idleCores, 2, 1e-9);
  stat(8, 250, 10, 140); // busy all the time; one tenth of a second later
  const double idle = probe->sample(10 * s + s / 10).idleCores;
  EXPECT_NEAR(idle, 2 * std::exp(-1), 1e-9);
}

TEST_F(ProbeTest, PressureIsTheShareSinceTheLastSample) {
  write("proc/pressure/cpu",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\nfull total=0\n");
  auto probe = makeLinuxProbe(root);
  EXPECT_EQ(probe->sample(0).pressure, 0);
  write("proc/pressure/cpu",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n");
  EXPECT_NEAR(probe->sample(2 * s).pressure, 0.25, 1e-12);
}

TEST_F(ProbeTest, DamagedFilesAreIgnored) {
  write("proc/self/cgroup", "nonsense\n0::/x\n");
  write("sys/fs/cgroup/x/cpu.max", "lots of time");
  write("proc/stat", "cpuX y\ncpu0 a b c d e f\n");
  write("proc/pressure/cpu", "some total=abc\n");
  write("proc/meminfo", "MemAvailable:");
  auto probe = makeLinuxProbe(root);
  for (int i = 0; i < 3; ++i) {
    const MachineLoad load = probe->sample(i * s);
    EXPECT_EQ(load.cores, 4);
    EXPECT_EQ(load.freeMemoryBytes, 0);
  }
}

TEST(LinuxProbe, ThisMachine) {
  auto probe = makeLinuxProbe();
  const MachineLoad load = probe->sample(0);
  EXPECT_GT(load.cores, 0);
  EXPECT_GT(load.freeMemoryBytes, 0);
  EXPECT_LE(probe->sample(1 * s).idleCores, load.cores);
}

} // namespace
