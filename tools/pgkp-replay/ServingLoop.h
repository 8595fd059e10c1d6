// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file From requests with lengths to the forwards that a serving engine runs
/// for them.
#pragma once

#include "Trace.h"

#include "engine/Replay.h"

#include <map>
#include <string>

namespace pgkp::rt {

/// Continuous batching (Yu et al., Orca, OSDI 2022) with prefills of their own
/// that go first, as engines do whose forwards have one sequence length.
struct ServingOptions {
  int64_t maxTokens = 8192;  ///< in a forward; longer prompts run in chunks
  int64_t maxSequences = 64; ///< that run at the same time
  int64_t maxContext = 0; ///< positions of a sequence; 0: what the entry holds
  /// A forward takes base + perToken * new tokens + perPosition * cached
  /// positions, s, on the best variants.
  double base = 0.012, perToken = 20e-6, perPosition = 20e-9;
  std::string
      entry; ///< empty: the module's only one, or `prefill` and `decode`
  /// What a root stands for where its name does not say so: batch, seq, tokens,
  /// kv, context, or a number.
  std::map<std::string, std::string> roots;
};

/// Appends the forwards, and what the engine announces whenever a request
/// arrives: the prefill it will be part of, and the decode after that, as its
/// queue then has it. Deterministic. Longer requests are cut to `maxContext`.
/// invalidArgument: an entry or a root without meaning.
Status serve(const ServingTrace &trace, const ServingOptions &options,
             ReplayWorkload &workload);

/// Forwards as CSV `arrival_s,entry,<roots...>`, for pgkp-run.
std::string toCsv(const ReplayWorkload &workload);

} // namespace pgkp::rt
