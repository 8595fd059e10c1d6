// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The compiler as child processes that may crash, hang or lie.
#pragma once

#include "prepare/Compiler.h"
#include "prepare/WorkerOptions.h"

#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace pgkp::rt {

/// $PGKP_WORKER, then "pgkp-worker" beside the executable, beside this library,
/// on PATH. unavailable: one line that says where it was looked for.
Expected<std::string> findWorker();

/// Workers are started when a job needs one and kept warm. One thread
/// ("pgkp-workers") serves all of them; it starts with the first job. What a
/// worker answers is verified before it is handed up; a worker of another build
/// than `CompileJob::producer` is refused, and its file is left alone until
/// it changes (outcome unavailable). A job is never repeated:
/// the outcome says what happened, the caller decides.
///
/// A worker is a child with nothing inherited but its socket, an allow-listed
/// environment, limits, and death with its parent. Stopping takes at most 2 s.
///
/// Thread-safe. After fork the child's copy takes no jobs and stops nothing.
class WorkerPool final : public Compiler {
public:
  explicit WorkerPool(WorkerOptions options);
  /// Jobs that run are cancelled, and their results delivered, before it
  /// returns. Not to be called from the callback.
  ~WorkerPool() override;

  void onResult(Callback callback) override;
  bool submit(CompileJob job) override;
  void cancel(JobId id) override;
  void raise(JobId id) override;
  unsigned capacity() const override;
  unsigned running() const override;
  void setLimit(unsigned jobs) override;

  WorkerCounts counts() const;
  /// Live workers, for tests and diagnostics.
  std::vector<pid_t> pids() const;
  /// What the last answer gave as the worker's identity; empty before the
  /// first.
  std::string producer() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace pgkp::rt
