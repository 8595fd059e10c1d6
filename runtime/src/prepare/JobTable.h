// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file One job per content key: states, joining, raising, back-off, negative
/// records.
///
///            want                started             finished(done)
///   none ----------> queued ----------------> running ----------> ready
///    ^                  |                        |
///    |   finished(cancelled), withdraw           | finished(killed, hung,
///    unavailable)
///    +------------------+------------------------+------> backoff --(time
///    passes)--> none
///                                                | finished(rejected)
///                                                +------> refused, for this
///                                                run
///
/// It holds no queue: the planner orders jobs, this table says whether there is
/// one.
#pragma once

#include "base/Clock.h"
#include "base/Digest.h"
#include "prepare/Compiler.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pgkp::rt {

enum class JobState : uint8_t {
  none,
  queued,
  running,
  ready,
  backoff,
  refused
};

/// What `want` found.
enum class Want : uint8_t {
  start,  ///< there was no job: the caller owns one now, in state queued
  joined, ///< there is one, as urgent as this
  raised, ///< there was a speculative one; now it is demanded: move it to the
          ///< front
  ready,  ///< done before; the artifact is in the store
  later,  ///< it failed lately: not before `JobView::retryAt`
  refused ///< the compiler said no: not again in this run
};

struct JobView {
  JobState state = JobState::none;
  JobId id = 0;          ///< of the job queued or running
  bool demanded = false; ///< a caller waits for it, or missed it
  unsigned failures = 0; ///< in a row
  TimeNs retryAt = 0;    ///< in state backoff
  std::string reason;    ///< of the last failure
};

struct BackoffOptions {
  TimeNs first = kNsPerSecond;
  TimeNs limit = 60 * kNsPerSecond;
};

/// Deterministic: time comes from the clock given, job numbers count from 1.
/// Thread-safe.
class JobTable {
public:
  explicit JobTable(const Clock &clock, BackoffOptions backoff = {});
  ~JobTable();

  struct Answer {
    Want want;
    JobId id = 0; ///< of the job, for start, joined and raised
  };
  /// Someone wants this key compiled. `demand`: it was dispatched, or a caller
  /// waits.
  Answer want(const Digest &key, bool demand);

  /// The compiler took the job.
  void started(const Digest &key);
  /// It is not queued any more, and was never started.
  void withdraw(const Digest &key);
  /// The compiler's result for it. Wakes the waiters.
  void finished(const CompileResult &result);
  /// Found in the store: no job is needed. Wakes the waiters.
  void markReady(const Digest &key);
  /// The artifact is gone, or the failure is forgiven: the next `want` starts
  /// anew.
  void forget(const Digest &key);

  JobView view(const Digest &key) const;

  /// Blocks until the key's job is over or `deadline` (of the clock) has
  /// passed. \returns the state then: still queued or running after the
  /// deadline.
  JobState wait(const Digest &key, TimeNs deadline) const;

  struct Failure {
    Digest key;
    JobView job;
  };
  /// Keys in state backoff or refused, in order of key.
  std::vector<Failure> failures() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace pgkp::rt
