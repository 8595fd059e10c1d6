// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "governor/Cgroup.h"

#include "governor/ProcFile.h"

#include <algorithm>
#include <fmt/format.h>

namespace pgkp::rt {

namespace {

bool contains(std::string_view list, std::string_view name) {
  const auto parts = split(list, ',');
  return std::find(parts.begin(), parts.end(), name) != parts.end();
}

/// Where a hierarchy is mounted, and which of its groups is the mount's root.
struct Mount {
  std::string point, group;
};

/// proc_pid_mountinfo(5): "36 35 98:0 /group /mount/point options - type source
/// superOptions", with optional fields before the dash.
std::optional<Mount> findMount(const std::string &mountinfo, bool unified,
                               std::string_view controller) {
  for (std::string_view line : split(mountinfo, '\n')) {
    const auto fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 5 || fields.end() - dash < 4)
      continue;
    if (unified ? dash[1] == "cgroup2"
                : dash[1] == "cgroup" && contains(dash[3], controller))
      return Mount{std::string(fields[4]), std::string(fields[3])};
  }
  return std::nullopt;
}

/// proc_pid_cgroup(5): "number:controllers:/group", no controllers in
/// version 2.
std::optional<std::string> findGroup(const std::string &groups, bool unified,
                                     std::string_view controller) {
  for (std::string_view line : split(groups, '\n')) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos)
      continue;
    const std::string_view names = line.substr(first + 1, second - first - 1);
    if (unified ? names.empty() : contains(names, controller))
      return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

/// The folders that have `file`, from our group up. In a container the path
/// that the kernel tells may lie outside of what is mounted: the mount's root
/// is our group then, and what is not there is passed over.
std::vector<std::string> collect(const std::string &root, const Mount &mount,
                                 std::string group, std::string_view file) {
  if (mount.group != "/" && group.starts_with(mount.group))
    group.erase(0, mount.group.size());
  while (group.ends_with('/'))
    group.pop_back();
  std::vector<std::string> folders;
  for (;;) {
    if (readText(root + mount.point + group + "/" + std::string(file)))
      folders.push_back(mount.point + group);
    const size_t slash = group.rfind('/');
    if (slash == group.npos)
      return folders;
    group.resize(slash);
  }
}

ControllerGroups find(const std::string &root, std::string_view controller,
                      std::string_view fileV1, std::string_view fileV2) {
  const std::string groups = readText(root + "/proc/self/cgroup").value_or("");
  const std::string mounts =
      readText(root + "/proc/self/mountinfo").value_or("");
  // A controller is in one hierarchy only; in the hybrid layout version 2 has
  // none of them.
  for (bool unified : {false, true}) {
    const auto group = findGroup(groups, unified, controller);
    if (!group)
      continue;
    const Mount mount =
        findMount(mounts, unified, controller)
            .value_or(Mount{unified
                                ? "/sys/fs/cgroup"
                                : "/sys/fs/cgroup/" + std::string(controller),
                            "/"});
    ControllerGroups found{
        unified, collect(root, mount, *group, unified ? fileV2 : fileV1)};
    if (found.found())
      return found;
  }
  return {};
}

} // namespace

std::string ControllerGroups::describe() const {
  return found() ? fmt::format("v{} {}", unified ? 2 : 1, folders.front())
                 : "none";
}

Cgroup::Cgroup(std::string rootFolder)
    : root(std::move(rootFolder)),
      cpuGroups(find(root, "cpu", "cpu.cfs_quota_us", "cpu.max")),
      memoryGroups(
          find(root, "memory", "memory.limit_in_bytes", "memory.max")) {}

std::optional<double> Cgroup::cpuQuota() const {
  std::optional<double> least;
  for (const std::string &folder : cpuGroups.folders) {
    std::optional<double> limit, period;
    if (cpuGroups.unified) {
      const std::string text =
          readText(root + folder + "/cpu.max").value_or("");
      const auto parts = split(text, ' ');
      if (parts.size() == 2) {
        limit = parseNumber(parts[0]); // "max": nothing
        period = parseNumber(parts[1]);
      }
    } else {
      limit = readNumber(root + folder + "/cpu.cfs_quota_us");
      period = readNumber(root + folder + "/cpu.cfs_period_us");
    }
    if (limit && period && *limit > 0 && *period > 0)
      least = std::min(least.value_or(*limit / *period), *limit / *period);
  }
  return least;
}

std::optional<double> Cgroup::throttledSeconds() const {
  std::optional<double> most;
  for (const std::string &folder : cpuGroups.folders) {
    const auto text = readText(root + folder + "/cpu.stat");
    if (!text)
      continue;
    const auto value = cpuGroups.unified ? findNumber(*text, "throttled_usec")
                                         : findNumber(*text, "throttled_time");
    if (value)
      most = std::max(most.value_or(0),
                      *value * (cpuGroups.unified ? 1e-6 : 1e-9));
  }
  return most;
}

std::optional<double> Cgroup::freeMemory() const {
  std::optional<double> least;
  for (const std::string &folder : memoryGroups.folders) {
    const std::string path = root + folder;
    const bool v2 = memoryGroups.unified;
    auto limit =
        readNumber(path + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
    // Above "high" the kernel makes everybody wait for reclaim.
    if (const auto high = v2 ? readNumber(path + "/memory.high") : std::nullopt)
      limit = std::min(limit.value_or(*high), *high);
    const auto used =
        readNumber(path + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
    // Version 1 spells "no limit" as a number near 2^63.
    if (!limit || !used || *limit >= 1e18)
      continue;
    // Cached files are given up first.
    const double cached =
        findNumber(readText(path + "/memory.stat").value_or(""),
                   v2 ? "inactive_file" : "total_inactive_file")
            .value_or(0);
    const double free = std::max(1.0, *limit - std::max(0.0, *used - cached));
    least = std::min(least.value_or(free), free);
  }
  return least;
}

} // namespace pgkp::rt
