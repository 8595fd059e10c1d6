// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The next-key predictor: learning one dispatch and predicting the one after.
// The argument is the number of keys. ObservePredict goes over them in one
// order again and again, as a program does; after ObservePredictBranch every
// sixteenth key is drawn at random, which is where tables are searched and
// allocated.
#include "forecast/NextKey.h"
#include "base/Random.h"

#include <benchmark/benchmark.h>
#include <numeric>
#include <vector>

using namespace pgkp::rt;

namespace {

constexpr size_t kSteps = size_t{1} << 16;

/// A cyclic walk over `count` keys, each sixteenth step anywhere if `branch`.
std::vector<KeyId> makeSteps(size_t count, bool branch) {
  std::vector<KeyId> order(count);
  std::iota(order.begin(), order.end(), 0u);
  SeededRandom random(1);
  for (size_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[random.below(i)]);
  std::vector<KeyId> steps(kSteps);
  size_t at = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    steps[i] = order[at];
    at = branch && i % 16 == 15 ? random.below(count) : (at + 1) % count;
  }
  return steps;
}

void observePredict(benchmark::State &state, bool branch) {
  const auto steps = makeSteps(static_cast<size_t>(state.range(0)), branch);
  forecast::NextKey predictor;
  for (KeyId key : steps)
    predictor.observe(key);
  size_t at = 0;
  for (auto _ : state) {
    predictor.observe(steps[at++ & (kSteps - 1)]);
    benchmark::DoNotOptimize(predictor.predicted());
  }
}

void BM_ObservePredict(benchmark::State &state) {
  observePredict(state, false);
}
void BM_ObservePredictBranch(benchmark::State &state) {
  observePredict(state, true);
}

BENCHMARK(BM_ObservePredict)->Arg(1)->Arg(256)->Arg(4096);
BENCHMARK(BM_ObservePredictBranch)->Arg(256)->Arg(4096);

} // namespace
