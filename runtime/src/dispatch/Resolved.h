// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What a look-up finds, as dispatch tables and inline caches keep it.
#pragma once

#include "dispatch/Extents.h"
#include "schema/DispatchReason.h"

#include <cstddef>
#include <cstdint>

namespace pgkp::rt {

struct Variant;

/// What a look-up found.
struct Resolved {
  const Variant *variant = nullptr; ///< null: no variant fits these extents
  const void *handle = nullptr;     ///< of its image, for Device::launch
  uint64_t workspaceBytes = 0;
  DispatchReason reason = DispatchReason::generic;
};

/// Extents up to this many are cached inline, and an answer with its question
/// is one cache line.
constexpr size_t kInlineExtents = 4;

/// An answer and the extents that it is for.
struct alignas(64) Answer {
  Resolved found;
  int64_t extents[kInlineExtents] = {};
};
static_assert(sizeof(Answer) == 64);

} // namespace pgkp::rt
