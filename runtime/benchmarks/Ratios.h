// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Medians over repetitions, and the ratios that have targets.
#pragma once

#include <benchmark/benchmark.h>
#include <map>
#include <string>
#include <vector>

namespace pgkp::rt::bench {

class MedianReporter final : public benchmark::BenchmarkReporter {
public:
  bool ReportContext(const Context &) override { return true; }
  void ReportRuns(const std::vector<Run> &runs) override;

  /// Prints one line for each benchmark and each target that was measured.
  /// \returns false if a target is missed or none was measured.
  bool printRatios() const;

private:
  const std::vector<double> *find(const std::string &name) const;
  double median(const std::string &name) const;
  /// Of the first repetitions of both, of the second ones, and so on.
  std::vector<double> pairedRatios(const std::string &name,
                                   const std::string &base) const;

  std::map<std::string, std::vector<double>> times; ///< ns of processor time
};

} // namespace pgkp::rt::bench
