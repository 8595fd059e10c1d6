// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// pgkp-bench: what the request path costs. Google Benchmark does the measuring;
// its own options (--benchmark_*) are passed on.
#include "Ratios.h"

#include <CLI/CLI.hpp>
#include <benchmark/benchmark.h>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

enum ExitCode { exitOk = 0, exitFailed = 1, exitUsage = 2 };

int usageError(const std::string &message) {
  std::fprintf(stderr, "error: %s (see pgkp-bench --help)\n", message.c_str());
  return exitUsage;
}

} // namespace

int main(int argc, char **argv) {
  std::vector<char *> ours = {argv[0]}, theirs = {argv[0]};
  for (int i = 1; i < argc; ++i)
    (std::string_view(argv[i]).starts_with("--benchmark_") ? theirs : ours)
        .push_back(argv[i]);

  CLI::App app(
      "Measures dispatch against an indirect call and a hash map look-up, and "
      "the store against a read of the same bytes.",
      "pgkp-bench");
  app.set_version_flag("--version", std::string(PGKP_VERSION_STRING));
  app.footer("Options that start with --benchmark_ go to Google Benchmark:\n"
             "  --benchmark_filter=REGEX  --benchmark_list_tests\n"
             "  --benchmark_format=console|json|csv  --benchmark_out=FILE\n"
             "  --benchmark_min_time=SECONDS  --benchmark_repetitions=N");
  bool ratios = false;
  app.add_flag(
      "--ratios", ratios,
      "20 interleaved repetitions, then medians and their ratios; exit 1 "
      "if a ratio is over its target");
  try {
    app.parse(static_cast<int>(ours.size()), ours.data());
  } catch (const CLI::Success &success) {
    return app.exit(success);
  } catch (const CLI::ParseError &error) {
    return usageError(error.what());
  }

  std::string repetitions = "--benchmark_repetitions=20",
              interleaving = "--benchmark_enable_random_interleaving=true",
              minTime = "--benchmark_min_time=0.02";
  if (ratios) // before what the user says, which then wins
    theirs.insert(theirs.begin() + 1,
                  {repetitions.data(), interleaving.data(), minTime.data()});
  int count = static_cast<int>(theirs.size());
  theirs.push_back(nullptr);
  benchmark::Initialize(&count, theirs.data());
  if (count > 1)
    return usageError(std::string("unknown option '") + theirs[1] + "'");

  if (!ratios) {
    const size_t run = benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return run == 0 ? exitFailed : exitOk;
  }
  pgkp::rt::bench::MedianReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
  return reporter.printRatios() ? exitOk : exitFailed;
}
