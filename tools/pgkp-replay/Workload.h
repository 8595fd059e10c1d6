// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file From the command line to what replay plays.
#pragma once

#include "ServingLoop.h"
#include "Trace.h"

#include "engine/Replay.h"

#include <optional>
#include <string>

namespace pgkp::rt {

/// A part of a trace, in shares of its requests, forwards or launches.
struct Slice {
  double begin = 0, end = 1;
};
/// "0.5:1"; invalidArgument.
Expected<Slice> parseSlice(const std::string &text);

struct WorkloadOptions {
  /// A file, or "synthetic:" and its settings.
  std::string path;
  std::string bundle, entry;
  TraceFormat format = TraceFormat::automatic;
  /// With a seed: lengths, forwards or keys change places among the arrivals,
  /// so that nothing of their order is left.
  std::optional<uint64_t> shuffle;
  ServingOptions serving;
};

/// A trace with what it runs on; parts of it are played.
class WorkloadSource {
public:
  /// Reads the trace and, unless it is one of kernels, the bundle.
  static Expected<WorkloadSource> open(const WorkloadOptions &options);
  /// Times of a part count from its own beginning.
  Expected<ReplayWorkload> part(Slice slice) const;

private:
  WorkloadOptions options;
  std::shared_ptr<const Module> module;
  std::optional<ServingTrace> served;
  std::vector<ReplayRequest> forwards;
  std::vector<ReplayLaunch> launches;
};

} // namespace pgkp::rt
