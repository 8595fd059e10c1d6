// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every file may be missing (containers, old kernels): what is left is used,
// and what is used is named.
#include "governor/Governor.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <sched.h>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

namespace pgkp::rt {

namespace {
std::optional<std::string> readFile(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0)
      parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<double> number(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.remove_suffix(1);
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// "0-3,8": the numbers in it, at most CPU_SETSIZE of them.
std::vector<unsigned> parseCpuList(std::string_view text) {
  std::vector<unsigned> cpus;
  for (std::string_view part : split(text, ',')) {
    const size_t dash = part.find('-');
    const auto low = number(part.substr(0, dash));
    const auto high = dash == part.npos ? low : number(part.substr(dash + 1));
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
  explicit LinuxProbe(std::string rootFolder) : root(std::move(rootFolder)) {
    readAffinity();
    findCgroup();
    pressurePath = path("/proc/pressure/cpu");
    if (!readPressure())
      pressurePath.clear();
  }

  MachineLoad sample(TimeNs now) override {
    MachineLoad load;
    load.cores =
        std::max(0.01, std::min<double>(static_cast<double>(cpus.size()),
                                        quota().value_or(1e9)));
    const double seconds = last ? toSeconds(now - *last) : 0;
    const double weight =
        last ? 1 - std::exp(-std::max(seconds, 0.0) / kSmoothing) : 1;
    if (const auto busy = readStat(); busy && statTime) {
      const double total = busy->total - statTime->total;
      if (total > 0) {
        const double share =
            std::clamp((busy->idle - statTime->idle) / total, 0.0, 1.0);
        idleShare =
            idleKnown ? idleShare + weight * (share - idleShare) : share;
        idleKnown = true;
        statTime = busy;
      }
    } else {
      statTime = busy;
    }
    load.idleCores = std::min(load.cores, (idleKnown ? idleShare : 1) *
                                              static_cast<double>(cpus.size()));
    if (!pressurePath.empty())
      if (const auto total = readPressure(); total) {
        if (pressureTotal && seconds > 0)
          pressure =
              std::clamp((*total - *pressureTotal) / (seconds * 1e6), 0.0, 1.0);
        pressureTotal = total;
      }
    load.pressure = pressure;
    load.freeMemoryBytes = freeMemory();
    last = now;
    return load;
  }

  std::string describe() const override {
    return fmt::format(
        "affinity {} core{}, cgroup {}, pressure {}", cpus.size(),
        cpus.size() == 1 ? "" : "s",
        cgroup.empty() ? "none" : (unified ? "v2 " : "v1 ") + cgroup.front(),
        pressurePath.empty() ? "none" : pressurePath);
  }

private:
  static constexpr double kSmoothing = 0.1; ///< s

  std::string path(std::string_view absolute) const {
    return root + std::string(absolute);
  }

  void readAffinity() {
    if (!root.empty()) {
      // A fixture says which processors it means.
      const std::string status =
          readFile(path("/proc/self/status")).value_or("");
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

  /// The folders from our own group up to the root: a quota anywhere among them
  /// counts. In a container the first ones may be invisible.
  void findCgroup() {
    const std::string groups = readFile(path("/proc/self/cgroup")).value_or("");
    std::string v1, v2;
    bool haveV1 = false, haveV2 = false;
    for (std::string_view line : split(groups, '\n')) {
      const size_t first = line.find(':'), second = line.find(':', first + 1);
      if (first == line.npos || second == line.npos)
        continue;
      const std::string_view controllers =
          line.substr(first + 1, second - first - 1);
      const std::string_view group = line.substr(second + 1);
      if (controllers.empty()) {
        haveV2 = true;
        v2 = group;
      } else {
        for (std::string_view controller : split(controllers, ','))
          if (controller == "cpu") {
            haveV1 = true;
            v1 = group;
          }
      }
    }
    auto collect = [&](const std::string &mount, std::string group,
                       const char *file) {
      while (group.ends_with('/'))
        group.pop_back();
      for (;;) {
        if (readFile(path(mount + group + file)))
          cgroup.push_back(mount + group);
        const size_t slash = group.rfind('/');
        if (slash == group.npos)
          break;
        group.resize(slash);
      }
    };
    if (haveV2) {
      unified = true;
      collect("/sys/fs/cgroup", v2, "/cpu.max");
    }
    if (haveV1 && cgroup.empty()) {
      unified = false;
      collect("/sys/fs/cgroup/cpu", v1, "/cpu.cfs_quota_us");
    }
  }

  /// Cores that the tightest group allows; nothing: no limit.
  std::optional<double> quota() const {
    std::optional<double> least;
    for (const std::string &group : cgroup) {
      std::optional<double> limit, period;
      if (unified) {
        const std::string text =
            readFile(path(group + "/cpu.max")).value_or("");
        const auto parts = split(text, ' ');
        if (parts.size() == 2) {
          limit = number(parts[0]); // "max": nothing
          period = number(parts[1]);
        }
      } else {
        limit =
            number(readFile(path(group + "/cpu.cfs_quota_us")).value_or(""));
        period =
            number(readFile(path(group + "/cpu.cfs_period_us")).value_or(""));
      }
      if (limit && period && *limit > 0 && *period > 0)
        least = std::min(least.value_or(1e9), *limit / *period);
    }
    return least;
  }

  struct Times {
    double idle = 0, total = 0;
  };
  /// Of the processors we may use. Niced work counts as idle: it yields to
  /// ours, and our own workers are niced.
  std::optional<Times> readStat() const {
    const auto text = readFile(path("/proc/stat"));
    if (!text)
      return std::nullopt;
    Times times;
    bool any = false;
    for (std::string_view line : split(*text, '\n')) {
      if (!line.starts_with("cpu") || line.size() < 4 || line[3] == ' ')
        continue;
      const auto fields = split(line, ' ');
      const auto cpu = number(fields[0].substr(3));
      if (!cpu || fields.size() < 6 ||
          !std::binary_search(cpus.begin(), cpus.end(),
                              static_cast<unsigned>(*cpu)))
        continue;
      any = true;
      // user nice system idle iowait irq softirq steal; guest times are part of
      // user.
      for (size_t i = 1; i < std::min<size_t>(fields.size(), 9); ++i) {
        const double ticks = number(fields[i]).value_or(0);
        times.total += ticks;
        if (i == 2 || i == 4 || i == 5)
          times.idle += ticks;
      }
    }
    return any ? std::optional(times) : std::nullopt;
  }

  /// Microseconds in which some task waited for a processor, since the start.
  std::optional<double> readPressure() const {
    const auto text = readFile(pressurePath);
    if (!text)
      return std::nullopt;
    for (std::string_view line : split(*text, '\n'))
      if (line.starts_with("some "))
        for (std::string_view field : split(line, ' '))
          if (field.starts_with("total="))
            return number(field.substr(6));
    return std::nullopt;
  }

  /// 0: unknown.
  double freeMemory() const {
    double bytes = 0;
    if (const auto text = readFile(path("/proc/meminfo")))
      for (std::string_view line : split(*text, '\n'))
        if (line.starts_with("MemAvailable:")) {
          const auto fields = split(line, ' ');
          bytes = fields.size() >= 2 ? number(fields[1]).value_or(0) * 1024 : 0;
        }
    if (unified)
      for (const std::string &group : cgroup) {
        const auto limit =
            number(readFile(path(group + "/memory.max")).value_or(""));
        const auto used =
            number(readFile(path(group + "/memory.current")).value_or(""));
        if (limit && used)
          bytes = std::min(bytes > 0 ? bytes : *limit,
                           std::max(1.0, *limit - *used));
      }
    return bytes;
  }

  const std::string root;
  std::vector<unsigned> cpus; ///< ascending
  std::vector<std::string> cgroup;
  bool unified = false;
  std::string pressurePath;
  std::optional<TimeNs> last;
  std::optional<Times> statTime;
  std::optional<double> pressureTotal;
  double idleShare = 1, pressure = 0;
  bool idleKnown = false;
};
} // namespace

std::unique_ptr<Probe> makeLinuxProbe(std::string root) {
  return std::make_unique<LinuxProbe>(std::move(root));
}

} // namespace pgkp::rt
