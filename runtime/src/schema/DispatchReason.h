// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Why a dispatch ran the variant it ran.
#pragma once

#include <cstdint>

namespace pgkp::rt {

enum class DispatchReason : uint8_t {
  exact,      ///< all facts of the variant are `== v`
  classMatch, ///< a variant with some range or divisibility fact
  generic,    ///< the variant without facts
  waited      ///< the caller waited for the variant (set by the engine)
};

} // namespace pgkp::rt
