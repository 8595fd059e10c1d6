// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Ratios.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace pgkp::rt::bench {

void MedianReporter::ReportRuns(const std::vector<Run> &runs) {
  for (const Run &run : runs)
    if (run.run_type == Run::RT_Iteration && !run.error_occurred)
      times[run.benchmark_name()].push_back(run.GetAdjustedCPUTime());
}

const std::vector<double> *MedianReporter::find(const std::string &base) const {
  // Names carry "/repeats:20" and the like behind the argument.
  for (const auto &[name, values] : times)
    if (name == base || name.rfind(base + "/", 0) == 0)
      return &values;
  return nullptr;
}

double MedianReporter::median(const std::string &base) const {
  const std::vector<double> *values = find(base);
  if (!values)
    return std::nan("");
  std::vector<double> sorted = *values;
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) / 2];
}

std::vector<double>
MedianReporter::pairedRatios(const std::string &name,
                             const std::string &base) const {
  const std::vector<double> *one = find(name), *other = find(base);
  std::vector<double> ratios;
  if (one && other)
    for (size_t i = 0; i < std::min(one->size(), other->size()); ++i)
      ratios.push_back((*one)[i] / (*other)[i]);
  return ratios;
}

bool MedianReporter::printRatios() const {
  for (const auto &[name, values] : times)
    std::printf("%-40s %8.2f ns  (median of %zu)\n", name.c_str(), median(name),
                values.size());
  bool good = true, any = false;
  for (const char *keys : {"/1", "/4096"}) {
    auto time = [&](const char *name) {
      return median(std::string(name) + keys);
    };
    const double call = time("BM_IndirectCall"),
                 find = time("BM_FlatHashMapFind");
    auto target = [&](const char *name, const char *text, double limit) {
      const double measured = time(name);
      if (std::isnan(measured) || std::isnan(limit))
        return;
      const bool met = measured <= limit;
      any = true;
      good &= met;
      std::printf("%s%s: %.2f of %s = %.2f ns: %s\n", name, keys,
                  measured / limit, text, limit, met ? "met" : "MISSED");
    };
    target("BM_DispatchHit", "2 BM_IndirectCall + BM_FlatHashMapFind",
           2 * call + find);
    target("BM_DispatchClass", "4 BM_FlatHashMapFind", 4 * find);
    target("BM_ObservePredict", "5 BM_FlatHashMapFind", 5 * find);
    target("BM_ObservePredictBranch", "5 BM_FlatHashMapFind", 5 * find);
  }
  auto paired = [&](const std::string &name, const std::string &base,
                    double limit) {
    std::vector<double> ratios = pairedRatios(name, base);
    if (ratios.empty())
      return;
    std::sort(ratios.begin(), ratios.end());
    const double ratio = ratios[(ratios.size() - 1) / 2];
    any = true;
    good &= ratio <= limit;
    std::printf("%s: %.2f %s (%.2f to %.2f over %zu pairs), at most %.0f: %s\n",
                name.c_str(), ratio, base.c_str(), ratios.front(),
                ratios.back(), ratios.size(), limit,
                ratio <= limit ? "met" : "MISSED");
  };
  for (const char *bytes : {"/2048", "/8192", "/65536"})
    paired(std::string("BM_StoreGet") + bytes,
           std::string("BM_StorePread") + bytes, 10);
  paired("BM_StoreOpen", "BM_StoreOpenEmpty", 20);
  return good && any;
}

} // namespace pgkp::rt::bench
