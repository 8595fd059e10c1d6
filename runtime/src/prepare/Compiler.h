// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Compilation through an interface: worker processes, or a simulated
/// compiler.
#pragma once

#include "base/Clock.h"
#include "base/Digest.h"
#include "base/Status.h"
#include "schema/wire_generated.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pgkp::rt {

using JobId = uint64_t;

struct CompileJob {
  JobId id = 0;
  Digest contentKey;
  std::string label;            ///< "kernel[facts]", for messages
  std::vector<uint8_t> request; ///< a serialized RequestMessage
  // What the answer is held to.
  /// The compiler's identity; empty: any. An artifact of another one would be
  /// filed under a key that promises this one.
  std::string producer;
  size_t numDims = 64, numArgs = 65535; ///< of the kernel
};

enum class JobOutcome {
  done,     ///< `payload` is a verified Artifact or Bundle
  rejected, ///< the compiler said no (bad_input, unsupported, internal):
            ///< `message`
  killed,   ///< the worker died or was killed from outside
  hung,     ///< no answer within the limit; we killed it
  cancelled,
  unavailable ///< no worker could be started
};

struct CompileResult {
  JobId id = 0;
  Digest contentKey;
  JobOutcome outcome = JobOutcome::unavailable;
  std::string message;          ///< one line unless done
  std::vector<uint8_t> payload; ///< Artifact or Bundle FlatBuffer, verified
  TimeNs started = 0, finished = 0;
  double cpuSeconds = 0;   ///< of the worker, as it or the kernel reports
  uint64_t peakRssKib = 0; ///< as the worker reports; 0: unknown
  std::string producer;    ///< the worker's identity; empty unless it answered
};

/// Runs jobs, at most `capacity` at a time. It never blocks the caller. Results
/// come from the compiler's own thread (or from the virtual clock's loop)
/// through the callback, exactly one for each accepted job. Thread-safe.
class Compiler {
public:
  using Callback = std::function<void(CompileResult)>;
  virtual ~Compiler() = default;
  /// Set once, before the first submit.
  virtual void onResult(Callback callback) = 0;
  /// False: every slot is busy, the job was not taken.
  virtual bool submit(CompileJob job) = 0;
  /// A job that runs is stopped with its worker; one that is done already stays
  /// done.
  virtual void cancel(JobId id) = 0;
  /// Somebody waits for the job: it runs at normal priority from now on, where
  /// that is permitted.
  virtual void raise(JobId id) = 0;
  virtual unsigned capacity() const = 0;
  /// Jobs that run now.
  virtual unsigned running() const = 0;
  /// Limits how many jobs may run from now on (the governor's word); running
  /// ones go on.
  virtual void setLimit(unsigned jobs) = 0;
};

/// Counters of the worker processes; the names are those of the metrics.
struct WorkerCounts {
  uint64_t started = 0, killed = 0, hung = 0, restarts = 0;
  uint64_t garbage = 0; ///< gave an answer that did not verify
  uint64_t skewed = 0;  ///< were another build than the bundle's
};

} // namespace pgkp::rt
