// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file How workers are started, limited and replaced.
#pragma once

#include "base/Clock.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pgkp::rt {

struct WorkerOptions {
  /// Empty: findWorker().
  std::string path;
  unsigned workers = 1;
  /// A job that takes longer is ended with its worker. One that wants to run
  /// but gets no processor may take up to ten times as long, as far as it has
  /// not used so much CPU time.
  TimeNs jobTimeout = 60 * kNsPerSecond;
  /// Building a bundle compiles every kernel of a module.
  TimeNs bundleTimeout = 600 * kNsPerSecond;
  /// A worker without a job leaves after so long: its memory is worth more to
  /// others.
  TimeNs idleTimeout = 60 * kNsPerSecond;
  /// How often idle workers are looked at: nothing tells that one was stopped.
  TimeNs checkPeriod = kNsPerSecond / 2;
  /// Address space of a worker; 0: no limit.
  uint64_t memoryMib = 4096;
  /// A worker is replaced after so many jobs, or when it grew beyond so much
  /// memory.
  unsigned jobsPerWorker = 500;
  uint64_t recycleRssKib = uint64_t{2} << 20;
  /// Idle CPU and I/O class. Off where somebody waits for the result.
  bool background = true;
  /// "NAME=value", added to the allow-listed environment.
  std::vector<std::string> environment;

  /// PGKP_WORKER, PGKP_WORKERS, PGKP_JOB_TIMEOUT_S, PGKP_WORKER_IDLE_S,
  /// PGKP_WORKER_MEMORY_MIB. Without PGKP_WORKERS: `defaultWorkers`.
  static WorkerOptions fromEnvironment(unsigned defaultWorkers = 1);

  /// All that a worker gets: where to find tools and libraries, how to print,
  /// and `environment`.
  std::vector<std::string> workerEnvironment() const;
};

} // namespace pgkp::rt
