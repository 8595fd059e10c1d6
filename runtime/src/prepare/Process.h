// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A child process as its parent sees it: whether it lives, what it used,
/// how urgent it is. Always through its pidfd where there is one: a number can
/// be somebody else's by the time it is used.
#pragma once

#include "prepare/Spawn.h"

#include <optional>
#include <string>

namespace pgkp::rt {

/// How a process ended.
struct Exit {
  bool known = false; ///< false: somebody else has reaped it
  int code = 0, status = 0;
  double cpuSeconds = 0;

  /// "exited with status 3", "was ended by signal 9 (KILL)".
  std::string text() const;
};

/// Reaps it, and kills what it has left in its process group. Nothing while it
/// lives. Failpoint "worker.wait".
std::optional<Exit> reap(const Child &child);

/// It was stopped by a signal, and not continued.
bool isStopped(const Child &child);

/// The worker and the assembler that it may have started.
void killGroup(const Child &child);

/// CPU time of a live process, all its threads; 0 if it is gone.
double cpuSecondsOf(const Child &child);

/// Its first thread runs, or would if it got a processor.
bool isRunnable(const Child &child);

/// The kernel ends it when it has used `seconds` more of CPU time than now.
void limitCpu(const Child &child, double seconds);

/// Normal CPU and I/O class for all its threads, or the idle ones again.
/// \returns false where that is not permitted: raising may need a privilege.
bool setUrgent(const Child &child, bool urgent);

} // namespace pgkp::rt
