// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A module becomes a bundle, in a worker, while the caller waits.
#pragma once

#include "base/Status.h"
#include "prepare/WorkerPool.h"
#include "schema/manifest_generated.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pgkp::rt {

struct BundleSource {
  std::string name; ///< the file's, for messages
  std::span<const uint8_t> module;
  std::vector<schema::TargetT> targets;
  std::span<const uint8_t> profile = {}; ///< a serialized Profile
};

/// Blocks until the bundle is built; \returns its verified payload, without
/// envelope. Takes the compiler's callback: it must have no other user.
/// invalidArgument: the module is at fault. unavailable: no worker, or it died.
/// deadline: it took too long.
Expected<std::vector<uint8_t>> buildBundle(Compiler &compiler,
                                           const BundleSource &source);

/// With one worker of its own, at normal priority.
Expected<std::vector<uint8_t>> buildBundle(WorkerOptions options,
                                           const BundleSource &source);

/// "host", "sm_90", ... as --targets= gives them; "host" stands for `host`.
/// invalidArgument.
Expected<std::vector<schema::TargetT>>
parseTargets(const std::vector<std::string> &names,
             const schema::TargetT &host);

} // namespace pgkp::rt
