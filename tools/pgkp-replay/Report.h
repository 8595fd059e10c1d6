// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What a comparison of policies comes to: rows, gap closed, output.
#pragma once

#include "Series.h"

#include "base/Status.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace pgkp::rt {

struct RunReport {
  std::string policy;
  uint64_t seed = 1;
  nlohmann::ordered_json metrics; ///< of computeMetrics
  std::optional<Series> series;   ///< for the page
};

/// Adds `gap_closed` to every run's metrics (design section 6): (lazy - policy)
/// / (lazy - oracle) in lost seconds, of the runs with the same seed. Null
/// where lazy or oracle did not run, and where the oracle saves less than
/// max(1 s, 1 % of what lazy loses): `gap` says which.
void addGaps(std::vector<RunReport> &runs);

/// Mean over the seeds, and the worst where there are several, a row a policy.
std::string toTable(const std::vector<RunReport> &runs);

/// An array of metrics in the order of the runs.
std::string toJson(const std::vector<RunReport> &runs);

/// One self-contained page: no network, light and dark.
std::string toHtml(const std::vector<RunReport> &runs,
                   const std::string &title);

} // namespace pgkp::rt
