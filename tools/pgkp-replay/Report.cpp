// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Report.h"

#include <algorithm>
#include <cmath>

namespace pgkp::rt {

using Json = nlohmann::ordered_json;

namespace {

std::optional<double> number(const Json &metrics, const char *path) {
  const Json value = metrics.value(Json::json_pointer(path), Json());
  if (!value.is_number())
    return std::nullopt;
  return value.get<double>();
}

/// Lost seconds of the policy's run with that seed.
std::optional<double> lostOf(const std::vector<RunReport> &runs,
                             std::string_view policy, uint64_t seed) {
  for (const RunReport &run : runs)
    if (run.policy == policy && run.seed == seed)
      return number(run.metrics, "/lost/total_s");
  return std::nullopt;
}

struct Column {
  const char *title, *path;
  int precision;
  bool worstIsLeast; ///< the worst seed is the one with the least
};
constexpr Column kColumns[] = {
    {"hit_rate", "/preparation/hit_rate", 3, true},
    {"lost_s", "/lost/total_s", 4, false},
    {"wait_s", "/lost/wait_s", 4, false},
    {"slow_s", "/lost/slow_s", 4, false},
    {"gap", "/gap_closed", 3, true},
    {"jobs", "/compile/jobs", 0, false},
    {"cpu_s", "/compile/cpu_s", 2, false},
    {"wasted_s", "/compile/wasted_cpu_s", 2, false},
    {"completion_s", "/completion_s", 3, false},
    {"next_key", "/prediction/next_accuracy", 4, true}};

/// "0.97 (0.91)": the mean, and the worst of several.
std::string cell(const std::vector<const RunReport *> &runs,
                 const Column &column) {
  double sum = 0, worst = 0;
  size_t count = 0;
  for (const RunReport *run : runs)
    if (const auto value = number(run->metrics, column.path)) {
      worst = count == 0            ? *value
              : column.worstIsLeast ? std::min(worst, *value)
                                    : std::max(worst, *value);
      sum += *value;
      ++count;
    }
  if (count == 0)
    return "-";
  const double mean = sum / static_cast<double>(count);
  if (runs.size() == 1)
    return fmt::format("{:.{}f}", mean, column.precision);
  return fmt::format("{:.{}f} ({:.{}f})", mean, column.precision, worst,
                     column.precision);
}

} // namespace

void addGaps(std::vector<RunReport> &runs) {
  for (RunReport &run : runs) {
    const auto lazy = lostOf(runs, "lazy", run.seed);
    const auto oracle = lostOf(runs, "oracle", run.seed);
    const auto own = number(run.metrics, "/lost/total_s");
    run.metrics["gap_closed"] = nullptr;
    if (!lazy || !oracle || !own) {
      run.metrics["gap"] = "lazy or oracle did not run";
    } else if (const double gap = *lazy - *oracle;
               gap < std::max(1.0, 0.01 * *lazy)) {
      run.metrics["gap"] = "no gap";
    } else {
      run.metrics["gap_closed"] = (*lazy - *own) / gap;
      run.metrics["gap"] = gap;
    }
  }
}

std::string toTable(const std::vector<RunReport> &runs) {
  std::vector<std::vector<std::string>> rows{{"policy"}};
  for (const Column &column : kColumns)
    rows[0].emplace_back(column.title);
  std::vector<std::string> policies;
  for (const RunReport &run : runs)
    if (std::find(policies.begin(), policies.end(), run.policy) ==
        policies.end())
      policies.push_back(run.policy);
  for (const std::string &policy : policies) {
    std::vector<const RunReport *> own;
    for (const RunReport &run : runs)
      if (run.policy == policy)
        own.push_back(&run);
    rows.push_back({policy});
    for (const Column &column : kColumns)
      rows.back().push_back(cell(own, column));
  }
  std::string out;
  for (const auto &row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      size_t width = 0;
      for (const auto &other : rows)
        width = std::max(width, other[i].size());
      out += i == 0 ? fmt::format("{:<{}}", row[i], width)
                    : fmt::format("  {:>{}}", row[i], width);
    }
    out += '\n';
  }
  return out;
}

std::string toJson(const std::vector<RunReport> &runs) {
  Json all = Json::array();
  for (const RunReport &run : runs)
    all.push_back(run.metrics);
  return all.dump(2) + "\n";
}

} // namespace pgkp::rt
