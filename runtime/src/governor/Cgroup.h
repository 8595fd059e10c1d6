// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The limits of the control groups that this process is in: version 1,
/// version 2, or both at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pgkp::rt {

/// A controller as it binds us: our own group and its parents up to the one
/// that we can see, the innermost first. A limit anywhere among them counts.
struct ControllerGroups {
  bool unified = false;             ///< version 2
  std::vector<std::string> folders; ///< below the root given; never empty slots

  bool found() const { return !folders.empty(); }
  /// "v2 /sys/fs/cgroup/a", "none".
  std::string describe() const;
};

/// Reads below `root` ("" or a folder with proc/ and sys/). Thread-compatible.
class Cgroup {
public:
  explicit Cgroup(std::string root);

  const ControllerGroups &cpu() const { return cpuGroups; }
  const ControllerGroups &memory() const { return memoryGroups; }

  /// Cores that the tightest group allows; nothing: no limit.
  std::optional<double> cpuQuota() const;
  /// Seconds for which the quota has stopped the group, since its start.
  std::optional<double> throttledSeconds() const;
  /// Bytes that may still be used in the tightest group; nothing: no limit.
  std::optional<double> freeMemory() const;

private:
  const std::string root;
  ControllerGroups cpuGroups, memoryGroups;
};

} // namespace pgkp::rt
