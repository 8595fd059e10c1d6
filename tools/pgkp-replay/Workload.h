// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file From the command line to what replay plays.
#pragma once

#include "Trace.h"

#include "engine/Replay.h"

#include <string>

namespace pgkp::rt {

struct WorkloadOptions {
  std::string path, bundle, entry;
  TraceFormat format = TraceFormat::automatic;
};

/// Reads the trace and, for forwards and served requests, the bundle.
Expected<ReplayWorkload> loadWorkload(const WorkloadOptions &options);

} // namespace pgkp::rt
