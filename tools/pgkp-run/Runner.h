// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Plays recorded requests against a loaded module.
#pragma once

#include "Requests.h"
#include "Tensor.h"

#include "engine/Engine.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pgkp::rt {

struct RunnerOptions {
  double pace = 1;    ///< arrivals this many times faster; 0: back to back
  double lead = 0;    ///< s of preparation before the first arrival
  bool check = false; ///< compare every output with the generic variants'
  bool announce =
      true; ///< tell the runtime of requests that have arrived and wait
  uint64_t seed = 1;
  /// Writes what each request reads and gives as NumPy files into this folder:
  /// N-argI.npy and N-resultI.npy, N the request. A persistent argument is
  /// written where its content is new. Empty: nothing.
  std::string dump;
  /// Called after each request; may be null.
  std::function<void(size_t done, size_t total)> progress;
};

struct RunnerResult {
  size_t requests = 0, failed = 0, mismatches = 0;
  std::string firstMismatch; ///< one line: request, output, element, got, want
};

class Runner {
public:
  static Expected<std::unique_ptr<Runner>>
  create(std::shared_ptr<LoadedModule> module, RunnerOptions options);
  ~Runner();

  /// Plays all requests in order. An error ends the run; mismatches do not.
  Expected<RunnerResult> run(const std::vector<Request> &requests);

  /// Interleaved pairs of steady request time, preparation running and paused
  /// (the order alternates); appends one `pair` event each to the engine's log.
  /// The request is the last one of `requests`.
  Status runPairs(const std::vector<Request> &requests, unsigned pairs,
                  double secondsPerSide);

private:
  struct Impl;
  explicit Runner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace pgkp::rt
