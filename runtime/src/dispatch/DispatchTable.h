// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The request path: which variant runs for these extents.
#pragma once

#include "devices/device/Device.h"
#include "schema/Module.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace pgkp::rt {

/// A dispatchable variant. Immutable once published.
struct Variant {
  KeyId key = kNoKey;
  std::vector<schema::Fact> facts; ///< empty: generic
  std::shared_ptr<const Image> image;
  Expr workspace;                  ///< scratch bytes over the extents
  double nsPerUse = 0;             ///< measured; 0: never
};

} // namespace pgkp::rt
