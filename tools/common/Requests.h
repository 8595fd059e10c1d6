// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Recorded requests: CSV `arrival_s,entry,<roots...>`.
#pragma once

#include "base/Status.h"
#include "schema/Module.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pgkp::rt {

struct Request {
  double arrival = 0; ///< s since the first request of the recording's clock
  uint32_t entry = 0;
  std::vector<int64_t> roots; ///< in the order of the entry's roots
};

/// Root columns may stand in any order; every root of a requested entry needs
/// one. Columns that no entry knows are an error, so that a misspelt root is
/// noticed. Arrivals must not decrease. Errors name file, line and column.
/// `onlyEntry`: requests of other entries are dropped.
Expected<std::vector<Request>> readRequests(const std::string &path,
                                            const Module &module,
                                            const std::string &onlyEntry = {});

/// Extents above this are absurd: no tensor of them fits into memory.
constexpr int64_t kMaxExtent = int64_t{1} << 40;

} // namespace pgkp::rt
