// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Machines and containers as their /proc and /sys look from inside.
#include "governor/Governor.h"
#include "governor/Pressure.h"
#include "governor/WorkerCount.h"

#include "base/TempDir.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sched.h>

using namespace pgkp::rt;

namespace {

constexpr TimeNs s = kNsPerSecond;
constexpr double kMiB = 1 << 20;

class ProbeTest : public testing::Test {
protected:
  ProbeTest() {
    write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3\n");
    write("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n");
  }
  void write(const std::string &file, const std::string &text) {
    const std::filesystem::path path = dir / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void write(const std::map<std::string, std::string> &files) {
    for (const auto &[file, text] : files)
      write(file, text);
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
  std::unique_ptr<Probe> probe() const { return makeLinuxProbe(dir.path); }

  TempDir dir;
};

TEST_F(ProbeTest, AffinityAloneWhereNothingElseIsThere) {
  const auto own = probe();
  const MachineLoad load = own->sample(0);
  EXPECT_EQ(load.cores, 4);
  EXPECT_EQ(load.idleCores, 4);
  EXPECT_EQ(load.pressure, 0);
  EXPECT_EQ(load.freeMemoryBytes, 4096 * kMiB);
  EXPECT_EQ(own->describe(),
            "affinity 4 cores, quota none (cgroup none), memory of the machine "
            "(cgroup none), pressure none");
}

TEST_F(ProbeTest, DockerWithVersion1) {
  // The kernel tells the host's path; what is mounted is our group alone.
  const std::string id = "/docker/8b1f0c";
  write({{"proc/self/cgroup", "12:memory:" + id + "\n4:cpu,cpuacct:" + id +
                                  "\n1:name=systemd:" + id + "\n"},
         {"proc/self/mountinfo",
          "720 716 0:28 " + id +
              " /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:12 - cgroup cgroup "
              "rw,cpu,cpuacct\n"
              "731 716 0:36 " +
              id +
              " /sys/fs/cgroup/memory ro,nosuid master:20 - cgroup cgroup "
              "rw,memory\n"},
         {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n"},
         {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"},
         {"sys/fs/cgroup/cpu,cpuacct/cpu.stat",
          "nr_periods 10\nnr_throttled 0\nthrottled_time 0\n"},
         {"sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"},
         {"sys/fs/cgroup/memory/memory.usage_in_bytes", "314572800\n"},
         {"sys/fs/cgroup/memory/memory.stat",
          "inactive_file 1\ntotal_inactive_file 104857600\n"}});
  const auto own = probe();
  const MachineLoad load = own->sample(0);
  EXPECT_EQ(load.cores, 1.5);
  EXPECT_EQ(load.freeMemoryBytes, 312 * kMiB) << "cached files are given up";
  EXPECT_EQ(own->describe(),
            "affinity 4 cores, quota 1.5 cores (cgroup v1 "
            "/sys/fs/cgroup/cpu,cpuacct), memory limited (cgroup v1 "
            "/sys/fs/cgroup/memory), pressure none");
  // Stopped for half of the next second.
  write("sys/fs/cgroup/cpu,cpuacct/cpu.stat",
        "nr_periods 20\nnr_throttled 5\nthrottled_time 500000000\n");
  EXPECT_NEAR(own->sample(1 * s).pressure, 0.5, 1e-9);
  EXPECT_EQ(own->sample(2 * s).pressure, 0);
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(own->sample(3 * s).cores, 4);
  EXPECT_EQ(own->sample(3 * s).freeMemoryBytes, 4096 * kMiB);
}

TEST_F(ProbeTest, DockerWithVersion2) {
  // A namespace of its own: our group is the root of what we see.
  write({{"proc/self/cgroup", "0::/\n"},
         {"proc/self/mountinfo", "550 540 0:29 / /sys/fs/cgroup ro,nosuid - "
                                 "cgroup2 cgroup rw,nsdelegate\n"},
         {"sys/fs/cgroup/cpu.max", "250000 100000\n"},
         {"sys/fs/cgroup/cpu.stat", "usage_usec 5\nthrottled_usec 0\n"},
         {"sys/fs/cgroup/cpu.pressure",
          "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"},
         {"proc/pressure/cpu",
          "some avg10=9.00 avg60=0.00 avg300=0.00 total=0\n"},
         {"sys/fs/cgroup/memory.max", "1073741824\n"},
         {"sys/fs/cgroup/memory.high", "max\n"},
         {"sys/fs/cgroup/memory.current", "268435456\n"},
         {"sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 0\n"}});
  const auto own = probe();
  MachineLoad load = own->sample(0);
  EXPECT_EQ(load.cores, 2.5);
  EXPECT_EQ(load.freeMemoryBytes, 768 * kMiB);
  EXPECT_EQ(own->describe(),
            "affinity 4 cores, quota 2.5 cores (cgroup v2 /sys/fs/cgroup), "
            "memory limited (cgroup v2 /sys/fs/cgroup), pressure "
            "/sys/fs/cgroup/cpu.pressure");
  // The neighbours' waiting is not ours.
  write("proc/pressure/cpu", "some avg10=9.00 total=1000000\n");
  EXPECT_EQ(own->sample(1 * s).pressure, 0);
  write("sys/fs/cgroup/cpu.pressure", "some avg10=1.00 total=250000\n");
  write("sys/fs/cgroup/cpu.stat", "usage_usec 5\nthrottled_usec 100000\n");
  EXPECT_NEAR(own->sample(2 * s).pressure, 0.25, 1e-9);
  write("sys/fs/cgroup/memory.high", "402653184\n");
  EXPECT_EQ(own->sample(3 * s).freeMemoryBytes, 128 * kMiB);
}

TEST_F(ProbeTest, KubernetesNested) {
  // The limit is the pod's; the container itself has none.
  const std::string pod = "/kubepods.slice/kubepods-burstable.slice/"
                          "kubepods-burstable-pod1.slice";
  const std::string container = pod + "/cri-containerd-2.scope";
  const std::string sys = "sys/fs/cgroup";
  write({{"proc/self/cgroup", "0::" + container + "\n"},
         {"proc/self/mountinfo",
          "30 24 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n"},
         {sys + container + "/cpu.max", "max 100000\n"},
         {sys + pod + "/cpu.max", "350000 100000\n"},
         {sys + "/kubepods.slice/cpu.max", "400000 100000\n"},
         {sys + container + "/memory.max", "max\n"},
         {sys + container + "/memory.current", "1048576\n"},
         {sys + pod + "/memory.max", "2147483648\n"},
         {sys + pod + "/memory.current", "1073741824\n"}});
  const MachineLoad load = probe()->sample(0);
  EXPECT_EQ(load.cores, 3.5);
  EXPECT_EQ(load.freeMemoryBytes, 1024 * kMiB);
}

TEST_F(ProbeTest, SystemdUnit) {
  const std::string unit = "sys/fs/cgroup/system.slice/app.service";
  write({{"proc/self/cgroup", "0::/system.slice/app.service\n"},
         {"proc/self/mountinfo",
          "30 24 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n"},
         {unit + "/cpu.max", "max 100000\n"},
         {unit + "/cpu.pressure", "some total=0\n"},
         {"sys/fs/cgroup/system.slice/cpu.max", "max 100000\n"}});
  const auto own = probe();
  EXPECT_EQ(own->sample(0).cores, 4);
  EXPECT_NE(own->describe().find("quota none (cgroup v2 "
                                 "/sys/fs/cgroup/system.slice/app.service)"),
            std::string::npos)
      << own->describe();
}

TEST_F(ProbeTest, HybridHierarchy) {
  // Version 2 is there, without controllers.
  write(
      {{"proc/self/cgroup", "5:cpu,cpuacct:/job\n3:memory:/\n0::/job\n"},
       {"proc/self/mountinfo",
        "31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "33 24 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"},
       {"sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n"},
       {"sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n"}});
  EXPECT_EQ(probe()->sample(0).cores, 0.5);
}

TEST_F(ProbeTest, AQuotaIsTheTightestOnTheWayUp) {
  write({{"proc/self/cgroup", "0::/a/b\n"}, // no mountinfo: the usual place
         {"sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
         {"sys/fs/cgroup/a/cpu.max", "150000 100000\n"}});
  EXPECT_EQ(probe()->sample(0).cores, 1.5);
}

TEST_F(ProbeTest, AGroupOutsideOfWhatIsMounted) {
  write({{"proc/self/cgroup", "0::/../outside\n"},
         {"sys/fs/cgroup/cpu.max", "200000 100000\n"}});
  EXPECT_EQ(probe()->sample(0).cores, 2);
}

TEST_F(ProbeTest, IdleCoresOfOurProcessorsWithNicedWorkAsIdle) {
  stat(8, 100, 0, 100);
  const auto own = probe();
  own->sample(0);
  stat(8, 150, 10, 140); // half of it busy, a tenth niced, the rest idle
  EXPECT_NEAR(own->sample(10 * s).idleCores, 2, 1e-9);
  stat(8, 250, 10, 140); // busy all the time; one tenth of a second later
  EXPECT_NEAR(own->sample(10 * s + s / 10).idleCores, 2 * std::exp(-1), 1e-9);
}

TEST_F(ProbeTest, PressureIsTheShareSinceTheLastSample) {
  write("proc/pressure/cpu",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\nfull total=0\n");
  const auto own = probe();
  EXPECT_EQ(own->sample(0).pressure, 0);
  write("proc/pressure/cpu",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n");
  EXPECT_NEAR(own->sample(2 * s).pressure, 0.25, 1e-12);
  // A fixture is read, never armed.
  EXPECT_NE(own->describe().find("pressure /proc/pressure/cpu"),
            std::string::npos);
  EXPECT_EQ(own->describe().find("trigger"), std::string::npos);
}

TEST_F(ProbeTest, WithoutPressureOwnWaitingTells) {
  write("proc/self/schedstat", "5000000000 1000000000 77\n");
  const auto own = probe();
  EXPECT_EQ(own->sample(0).pressure, 0);
  write("proc/self/schedstat", "5500000000 1300000000 99\n");
  EXPECT_NEAR(own->sample(1 * s).pressure, 0.3, 1e-9);
  EXPECT_NE(own->describe().find("pressure own scheduling delay"),
            std::string::npos);
}

TEST_F(ProbeTest, DamagedFilesAreIgnored) {
  write({{"proc/self/cgroup", "nonsense\n0::/x\n"},
         {"proc/self/mountinfo", "1 2 3\n- - - -\n4 5 6 / /x rw -\n"},
         {"sys/fs/cgroup/x/cpu.max", "lots of time"},
         {"sys/fs/cgroup/x/cpu.stat", "throttled_usec\nthrottled_usec x\n"},
         {"sys/fs/cgroup/x/memory.max", "all\n"},
         {"proc/self/schedstat", "1\n"},
         {"proc/stat", "cpuX y\ncpu0 a b c d e f\n"},
         {"proc/pressure/cpu", "some total=abc\n"},
         {"proc/meminfo", "MemAvailable:"}});
  const auto own = probe();
  for (int i = 0; i < 3; ++i) {
    const MachineLoad load = own->sample(i * s);
    EXPECT_EQ(load.cores, 4);
    EXPECT_EQ(load.pressure, 0);
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

TEST(LinuxProbe, FollowsTheAffinity) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  auto probe = makeLinuxProbe();
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before))
      CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_LE(probe->sample(0).cores, 1);
  sched_setaffinity(0, sizeof before, &before);
}

TEST(LinuxProbe, TheTriggerIsArmedWhereTheKernelAllows) {
  if (!std::filesystem::exists("/proc/pressure/cpu"))
    GTEST_SKIP() << "this kernel has no pressure stall information";
  Pressure pressure("", "");
  if (pressure.describe() == "/proc/pressure/cpu")
    GTEST_SKIP() << "this kernel does not let us arm a trigger";
  EXPECT_EQ(pressure.describe(), "/proc/pressure/cpu by trigger");
  EXPECT_EQ(pressure.sample(0), 0);
  const double share = pressure.sample(1 * s);
  EXPECT_GE(share, 0);
  EXPECT_LE(share, 1);
}

TEST(WorkerCount, CoresAndMemoryBound) {
  auto count = [](double cores, double freeMiB) {
    return workerCount({.cores = cores, .freeMemoryBytes = freeMiB * kMiB});
  };
  EXPECT_EQ(count(1, 64000), 1u);
  EXPECT_EQ(count(2, 64000), 1u);
  EXPECT_EQ(count(8, 64000), 7u);
  EXPECT_EQ(count(1.5, 64000), 1u) << "a quota of one and a half";
  EXPECT_EQ(count(64, 4096), 4u) << "half of the memory, 512 MiB each";
  EXPECT_EQ(count(64, 100), 1u);
  EXPECT_EQ(count(4, 0), 3u) << "unknown memory bounds nothing";
}

} // namespace
