// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast/Progressions.h"
#include "forecast/RootModel.h"

#include <algorithm>
#include <cmath>

namespace pgkp::rt::forecast {

/// Weight of the newest period in their mean.
static constexpr double kPeriodWeight = 0.2;

std::span<const Progressions::Reach>
Progressions::onRequest(uint32_t entry, std::span<const int64_t> roots,
                        std::span<const KeyId> keys, TimeNs now) {
  reached.clear();
  vector.assign(roots.begin(), roots.end());
  for (size_t r = 0; r < roots.size(); ++r) {
    vector[r] = -1 - static_cast<int64_t>(r); // stands for "any"
    const uint64_t hash = requestHash(entry, vector);
    vector[r] = roots[r];
    auto it = runs.find(hash);
    if (it == runs.end()) {
      if (runs.size() >= kMaxRuns)
        runs.clear();
      runs.emplace(hash, Run{.last = roots[r], .at = now});
      continue;
    }
    Run &run = it->second;
    int64_t step;
    if (__builtin_sub_overflow(roots[r], run.last, &step) || step == 0) {
      run.last = roots[r];
      run.at = now;
      continue;
    }
    const double period = toSeconds(now - run.at);
    if (step == run.step) {
      went += run.length >= kMinLength;
      run.length += 1;
      run.period += kPeriodWeight * (period - run.period);
    } else {
      broke += run.length >= kMinLength;
      run = {.step = step, .length = 1, .period = period};
      run.searched = roots[r];
    }
    run.last = roots[r];
    run.at = now;
    if (run.length >= kMinLength)
      search(entry, r, run, keys);
  }
  return reached;
}

/// Walks ahead, one step at a time for the first, then faster: classes begin at
/// multiples, which the first steps meet, and at bounds, which no stride leaps
/// over for good.
void Progressions::search(uint32_t entry, size_t root, Run &run,
                          std::span<const KeyId> keys) {
  const bool told =
      run.step > 0 ? run.last < run.searched : run.last > run.searched;
  if (told || !(run.period > 0))
    return;
  const double limit =
      std::min(static_cast<double>(kMaxSteps), kMaxSeconds / run.period);
  const auto isNew = [&](KeyId key) {
    return !module.isGeneric(key) &&
           std::find(keys.begin(), keys.end(), key) == keys.end() &&
           std::none_of(reached.begin(), reached.end(),
                        [key](const Reach &r) { return r.key == key; });
  };
  const int64_t from = vector[root];
  const double goOn = (went + 49) / (went + broke + 50);
  int64_t j = 1;
  for (; static_cast<double>(j) <= limit; j += std::max<int64_t>(1, j / 32)) {
    int64_t distance;
    if (__builtin_mul_overflow(run.step, j, &distance) ||
        __builtin_add_overflow(from, distance, &vector[root]) ||
        vector[root] <= 0)
      break;
    expansion.clear();
    module.expand(entry, vector, expansion);
    for (KeyId key : expansion)
      if (isNew(key))
        reached.push_back({key, std::pow(goOn, static_cast<double>(j)),
                           static_cast<double>(j) * run.period});
  }
  vector[root] = from;
  // Half of the way on it is worth another look.
  int64_t half;
  if (__builtin_mul_overflow(run.step, std::max<int64_t>(1, j / 2), &half) ||
      __builtin_add_overflow(from, half, &run.searched))
    run.searched = from;
}

} // namespace pgkp::rt::forecast
