// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file One compilation for each content key, however many want it.
///
/// Where a job stands is the business of whoever asked for it (the brain keeps
/// a stage for each key); this table knows only what is being compiled now, and
/// for whom.
#pragma once

#include "prepare/Compiler.h"

#include <memory>
#include <vector>

namespace pgkp::rt {

/// A compiler in front of another one. A job whose content key is being
/// compiled already joins that compilation and takes no slot; each of the jobs
/// that share one gets the result under its own number. One that is cancelled
/// leaves the others theirs; the last to leave stops the compilation. Raising
/// one raises the compilation. Jobs without content key (bundles, pings) are
/// never joined. Thread-safe.
///
/// Results come from the compiler's thread, except that of a job that is
/// cancelled while others wait for the same compilation: from cancel() itself.
class JobTable final : public Compiler {
public:
  explicit JobTable(std::unique_ptr<Compiler> compiler);
  /// Stops the compiler, which delivers what is in flight as cancelled.
  ~JobTable() override;

  void onResult(Callback callback) override;
  bool submit(CompileJob job) override;
  void cancel(JobId id) override;
  void raise(JobId id) override;
  unsigned capacity() const override;
  unsigned running() const override;
  void setLimit(unsigned jobs) override;

  struct Job {
    JobId id = 0; ///< the first that wanted it
    Digest contentKey;
    size_t waiting = 0; ///< jobs that get the result
    bool raised = false;
  };
  /// What is in flight, in order of number.
  std::vector<Job> jobs() const;
  /// Jobs that joined another one, since the start.
  uint64_t joined() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace pgkp::rt
