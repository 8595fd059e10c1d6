// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Recorded forwards: CSV `arrival_s,entry,<roots...>`.
#pragma once

#include "InputFile.h"

#include "base/Status.h"
#include "schema/Module.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pgkp::rt {

/// Forwards as a file has them, before a module says what the columns mean.
struct ForwardTrace {
  struct Forward {
    double arrival = 0;          ///< s
    std::string entry;           ///< empty: the only entry of the module
    std::vector<int64_t> values; ///< one per column
    size_t line = 0;
  };
  std::string path;
  size_t headerLine = 0;
  std::vector<std::string> columns;
  /// Columns that are no root are dropped, not an error: the file has others
  /// for other purposes.
  bool extraColumns = false;
  std::vector<Forward> forwards;
};

struct Request {
  double arrival = 0; ///< s since the first request of the recording's clock
  uint32_t entry = 0;
  std::vector<int64_t> roots; ///< in the order of the entry's roots
};

/// The CSV above, or a recorder's `fwd,t_us,...` with root columns among
/// others. Arrivals must not decrease. Errors name file, line and column.
Expected<ForwardTrace> readForwards(InputFile &file);

/// Root columns may stand in any order; every root of a requested entry needs
/// one. Columns that no entry knows are an error, so that a misspelt root is
/// noticed. `onlyEntry`: requests of other entries are dropped.
Expected<std::vector<Request>> bindForwards(const ForwardTrace &trace,
                                            const Module &module,
                                            const std::string &onlyEntry = {});

/// Both, from a file that may be compressed.
Expected<std::vector<Request>> readRequests(const std::string &path,
                                            const Module &module,
                                            const std::string &onlyEntry = {});

/// Extents above this are absurd: no tensor of them fits into memory.
constexpr int64_t kMaxExtent = int64_t{1} << 40;

} // namespace pgkp::rt
