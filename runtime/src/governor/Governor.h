// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file How much of the machine preparation may use now.
#pragma once

#include "base/Clock.h"

#include <memory>
#include <string>

namespace pgkp::rt {

/// What the operating system says. Injectable: tests give numbers, part of the
/// runtime reads /proc and /sys below a root folder.
struct MachineLoad {
  double cores = 1;     ///< allowed: min(affinity, cgroup quota)
  double idleCores = 1; ///< of these, idle over the last sample
  double pressure =
      0; ///< share of time in which a task waited for a core, [0, 1]
  double freeMemoryBytes = 0;
};
class Probe {
public:
  virtual ~Probe() = default;
  virtual MachineLoad sample(TimeNs now) = 0;
  /// "affinity 2 cores, cgroup none, pressure /proc/pressure/cpu": what it
  /// uses.
  virtual std::string describe() const = 0;
};
/// `root`: "" or a folder that holds proc/ and sys/ fixtures.
std::unique_ptr<Probe> makeLinuxProbe(std::string root = "");

struct Capacity {
  unsigned workers = 1;   ///< jobs that may run
  double cpuPrice = 0.02; ///< algorithms.md section 6b: kc
};

/// Thread-compatible.
class Governor {
public:
  virtual ~Governor() = default;
  /// `serving`: a request is running or ran within the last second.
  /// `running`: jobs that workers have now; their cores are not idle, but ours.
  virtual Capacity capacity(TimeNs now, bool serving, unsigned running = 0) = 0;
  /// The foreground's launch latency, p99 over its baseline, as measured since
  /// the last call.
  virtual void onLatency(double, TimeNs) {}
};

struct GovernorOptions {
  unsigned maxWorkers = 1;
  /// Free memory below which no new job starts: twice the largest job seen.
  double memoryBytes = 512.0 * (1 << 20);
};
/// Additive increase, multiplicative decrease on pressure and latency
/// (algorithms.md section 7). While serving at most a quarter of the cores, but
/// one worker at least: a compile at idle priority costs the foreground nothing
/// measurable (design section 2, fact 6), and with none nothing would ever
/// become ready on a small machine. Too little memory: none.
/// The price is the dual variable of "workers used <= workers allowed": it
/// climbs while jobs of a larger limit still run, falls while there is room,
/// and is at least 1 s per s while the foreground is hurt.
std::unique_ptr<Governor> makeGovernor(std::unique_ptr<Probe> probe,
                                       GovernorOptions options);
/// With the default options.
std::unique_ptr<Governor> makeGovernor(std::unique_ptr<Probe> probe,
                                       unsigned maxWorkers);
/// Always `workers`: for replay and for tests.
std::unique_ptr<Governor> makeFixedGovernor(unsigned workers);

} // namespace pgkp::rt
