// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A time for operators whose trace has none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace pgkp::rt {

/// A launch's fixed part plus a sweep over as many bytes as the extents could
/// span, two for each product of neighbours, at 1 TB/s. A guess that grows with
/// the shapes, no model of a device: traces with such times say `measured =
/// false`.
inline double operatorSeconds(std::span<const int64_t> extents) {
  double elements = 0;
  for (size_t i = 0; i + 1 < extents.size(); ++i)
    elements +=
        static_cast<double>(extents[i]) * static_cast<double>(extents[i + 1]);
  return 4e-6 + std::min(elements * 2 / 1e12, 1.0);
}

} // namespace pgkp::rt
