// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every file may be missing (containers, old kernels): what is left is used,
// and what is used is named.
#include "governor/Cgroup.h"
#include "governor/Governor.h"
#include "governor/Pressure.h"
#include "governor/ProcFile.h"
#include "governor/WorkerCount.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <sched.h>
#include <string_view>
#include <thread>
#include <vector>

namespace pgkp::rt {

namespace {
/// "0-3,8": the numbers in it, at most CPU_SETSIZE of them.
std::vector<unsigned> parseCpuList(std::string_view text) {
  std::vector<unsigned> cpus;
  for (std::string_view part : split(text, ',')) {
    const size_t dash = part.find('-');
    const auto low = parseNumber(part.substr(0, dash));
    const auto high =
        dash == part.npos ? low : parseNumber(part.substr(dash + 1));
    if (!low || !high || *low < 0 || *high >= CPU_SETSIZE)
      continue;
    for (auto cpu = static_cast<unsigned>(*low);
         cpu <= static_cast<unsigned>(*high); ++cpu)
      cpus.push_back(cpu);
  }
  return cpus;
}

class LinuxProbe final : public Probe {
public:
  explicit LinuxProbe(std::string rootFolder)
      : root(std::move(rootFolder)), cgroup(root),
        pressure(root, cgroup.cpu().unified ? cgroup.cpu().folders.front()
                                            : std::string()) {
    readAffinity();
  }

  MachineLoad sample(TimeNs now) override {
    readAffinity(); // whoever runs the container may change it
    MachineLoad load;
    load.cores = std::max(0.01, std::min(static_cast<double>(cpus.size()),
                                         cgroup.cpuQuota().value_or(HUGE_VAL)));
    const double seconds = last ? toSeconds(now - *last) : 0;
    updateIdleShare(seconds);
    load.idleCores = std::min(load.cores, idleShare.value_or(1) *
                                              static_cast<double>(cpus.size()));
    // A quota that stops the whole group is the hardest kind of waiting, and
    // idle priority does not soften it.
    load.pressure = std::max(pressure.sample(now), throttledShare(seconds));
    load.freeMemoryBytes = freeMemory();
    last = now;
    return load;
  }

  std::string describe() const override {
    const auto quota = cgroup.cpuQuota();
    return fmt::format(
        "affinity {} core{}, quota {} (cgroup {}), memory {} (cgroup {}), "
        "pressure {}",
        cpus.size(), cpus.size() == 1 ? "" : "s",
        quota ? fmt::format("{:g} cores", *quota) : "none",
        cgroup.cpu().describe(),
        cgroup.freeMemory() ? "limited" : "of the machine",
        cgroup.memory().describe(), pressure.describe());
  }

private:
  static constexpr double kSmoothing = 0.1; ///< s

  std::string path(std::string_view absolute) const {
    return root + std::string(absolute);
  }

  void updateIdleShare(double seconds) {
    const auto now = readStat();
    if (now && statTime && now->total > statTime->total) {
      const double share = std::clamp((now->idle - statTime->idle) /
                                          (now->total - statTime->total),
                                      0.0, 1.0);
      const double weight = 1 - std::exp(-std::max(seconds, 0.0) / kSmoothing);
      idleShare =
          idleShare ? *idleShare + weight * (share - *idleShare) : share;
    }
    // Ticks that did not move yet are compared with later ones.
    if (!now || !statTime || now->total > statTime->total)
      statTime = now;
  }

  double throttledShare(double seconds) {
    const auto now = cgroup.throttledSeconds();
    double share = 0;
    if (now && throttled && seconds > 0)
      share = std::clamp((*now - *throttled) / seconds, 0.0, 1.0);
    throttled = now;
    return share;
  }

  void readAffinity() {
    cpus.clear();
    if (!root.empty()) {
      // A fixture says which processors it means.
      const std::string status =
          readText(path("/proc/self/status")).value_or("");
      for (std::string_view line : split(status, '\n'))
        if (line.starts_with("Cpus_allowed_list:"))
          cpus = parseCpuList(line.substr(line.find_first_of("0123456789")));
    } else {
      cpu_set_t set;
      CPU_ZERO(&set);
      if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
          if (CPU_ISSET(cpu, &set))
            cpus.push_back(cpu);
    }
    if (cpus.empty())
      for (unsigned cpu = 0;
           cpu < std::max(1u, std::thread::hardware_concurrency()); ++cpu)
        cpus.push_back(cpu);
  }

  struct Times {
    double idle = 0, total = 0;
  };
  /// Of the processors we may use. Niced work counts as idle: it yields to
  /// ours, and our own workers are niced.
  std::optional<Times> readStat() const {
    const auto text = readText(path("/proc/stat"));
    if (!text)
      return std::nullopt;
    Times times;
    bool any = false;
    for (std::string_view line : split(*text, '\n')) {
      if (!line.starts_with("cpu") || line.size() < 4 || line[3] == ' ')
        continue;
      const auto fields = split(line, ' ');
      const auto cpu = parseNumber(fields[0].substr(3));
      if (!cpu || fields.size() < 6 ||
          !std::binary_search(cpus.begin(), cpus.end(),
                              static_cast<unsigned>(*cpu)))
        continue;
      any = true;
      // user nice system idle iowait irq softirq steal; guest times are part of
      // user.
      for (size_t i = 1; i < std::min<size_t>(fields.size(), 9); ++i) {
        const double ticks = parseNumber(fields[i]).value_or(0);
        times.total += ticks;
        if (i == 2 || i == 4 || i == 5)
          times.idle += ticks;
      }
    }
    return any ? std::optional(times) : std::nullopt;
  }

  /// 0: unknown.
  double freeMemory() const {
    double bytes = 0;
    if (const auto text = readText(path("/proc/meminfo")))
      for (std::string_view line : split(*text, '\n'))
        if (line.starts_with("MemAvailable:")) {
          const auto fields = split(line, ' ');
          bytes = fields.size() >= 2 ? parseNumber(fields[1]).value_or(0) * 1024
                                     : 0;
        }
    if (const auto free = cgroup.freeMemory())
      bytes = bytes > 0 ? std::min(bytes, *free) : *free;
    return bytes;
  }

  const std::string root;
  const Cgroup cgroup;
  Pressure pressure;
  std::vector<unsigned> cpus; ///< ascending
  std::optional<TimeNs> last;
  std::optional<Times> statTime;
  std::optional<double> idleShare, throttled;
};
} // namespace

unsigned workerCount(const MachineLoad &load) {
  const double byCores = std::ceil(load.cores) - 1;
  const double byMemory = load.freeMemoryBytes > 0
                              ? load.freeMemoryBytes / 2 / kWorkerBytes
                              : byCores;
  return static_cast<unsigned>(
      std::clamp(std::floor(std::min(byCores, byMemory)), 1.0, 1024.0));
}

std::unique_ptr<Probe> makeLinuxProbe(std::string root) {
  return std::make_unique<LinuxProbe>(std::move(root));
}

} // namespace pgkp::rt
