// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Whether tasks wait for a processor: pressure stall information where
/// the kernel has it, else our own waiting.
#pragma once

#include "base/Clock.h"
#include "base/File.h"

#include <optional>
#include <string>

namespace pgkp::rt {

/// Thread-compatible.
class Pressure {
public:
  /// `group`: the folder of our own cgroup (version 2), whose tasks are the
  /// only ones that preparation can hurt; empty: the whole machine's.
  Pressure(std::string root, const std::string &group);

  /// Share of the time since the last call in which a task waited, [0, 1]. The
  /// first call gives 0. If the kernel's trigger went off meanwhile it is at
  /// least `kTriggerShare`, however long ago the last call was.
  double sample(TimeNs now);

  /// "/proc/pressure/cpu by trigger", "/proc/pressure/cpu", "own scheduling
  /// delay", "none".
  std::string describe() const;

  /// What the trigger waits for: the governor's limit, over two seconds, which
  /// is the window that the kernel allows to everybody.
  static constexpr double kTriggerShare = 0.05;

private:
  enum class Source { none, pressure, ownDelay };

  void armTrigger(const std::string &path);
  bool triggered() const;
  std::optional<double> waitedSeconds() const;

  const std::string root;
  Source source = Source::none;
  std::string file; ///< of the pressure counter, without root
  UniqueFd trigger;
  std::optional<double> lastWaited;
  TimeNs lastTime = 0;
};

} // namespace pgkp::rt
