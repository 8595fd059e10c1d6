// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast/Calibrator.h"

#include <algorithm>
#include <cmath>

namespace pgkp::rt::forecast {

static constexpr size_t kTenSeconds = 1; ///< of FirstUse::horizons
static constexpr double kSeconds = FirstUse::horizons[kTenSeconds];

static size_t binOf(double p) {
  return std::min(
      static_cast<size_t>(std::clamp(p, 0.0, 1.0) * Calibrator::kBins),
      Calibrator::kBins - 1);
}

void Calibrator::watch(KeyId key, const FirstUse &use, TimeNs now) {
  Watch &watch = open[key];
  if (watch.active || use.dated())
    return;
  const double p = use.cdf(kSeconds);
  watch = {true, static_cast<uint8_t>(use.provenance),
           static_cast<uint8_t>(binOf(p)), p, now + kHorizon};
  closing.emplace_back(watch.until, key);
}

void Calibrator::close(Watch &watch, bool used) {
  Bin &bin = bins[watch.source][watch.bin];
  bin.total += 1;
  bin.used += used;
  bin.forecast += watch.forecast;
  watch.active = false;
  changed = true;
}

void Calibrator::onUse(KeyId key, TimeNs now) {
  Watch &watch = open[key];
  if (watch.active)
    close(watch, now <= watch.until);
}

void Calibrator::advance(TimeNs now) {
  while (!closing.empty() && closing.front().first < now) {
    const auto [until, key] = closing.front();
    closing.pop_front();
    if (Watch &watch = open[key]; watch.active && watch.until == until)
      close(watch, false);
  }
  if (!changed)
    return;
  changed = false;
  for (auto &source : bins) {
    // Pool adjacent violators over blocks of bins, weighted by what they hold.
    struct Block {
      double sum, weight;
      size_t bins;
    };
    std::array<Block, kBins> blocks;
    size_t count = 0;
    for (const Bin &bin : source) {
      const double mean =
          bin.total > 0
              ? bin.forecast / bin.total
              : (static_cast<double>(&bin - source.data()) + 0.5) / kBins;
      // An empty bin has no say, but goes along with its neighbours.
      const double prior = bin.total > 0 ? kPrior : 1e-6;
      blocks[count++] = {bin.used + prior * mean, bin.total + prior, 1};
      while (count > 1 &&
             blocks[count - 2].sum * blocks[count - 1].weight >
                 blocks[count - 1].sum * blocks[count - 2].weight) {
        blocks[count - 2].sum += blocks[count - 1].sum;
        blocks[count - 2].weight += blocks[count - 1].weight;
        blocks[count - 2].bins += blocks[count - 1].bins;
        --count;
      }
    }
    size_t at = 0;
    for (size_t b = 0; b < count; ++b)
      for (size_t i = 0; i < blocks[b].bins; ++i, ++at) {
        Bin &bin = source[at];
        const double mean = bin.total > 0
                                ? bin.forecast / bin.total
                                : (static_cast<double>(at) + 0.5) / kBins;
        bin.shift = blocks[b].sum / blocks[b].weight - mean;
      }
  }
}

FirstUse Calibrator::correct(FirstUse use) const {
  if (use.dated() || use.mass() <= 0)
    return use;
  const double raw = use.cdf(kSeconds);
  const double shift =
      bins[static_cast<size_t>(use.provenance)][binOf(raw)].shift;
  const double p = std::clamp(raw + shift, 0.0, 1.0);
  if (p == raw)
    return use;
  // Shorter horizons follow in proportion; longer ones stay unless they cannot
  // hold the corrected value.
  const double hazard = std::min(-std::log1p(-p), FirstUse::kCertain);
  for (size_t i = 0; i < FirstUse::kHorizons; ++i)
    if (FirstUse::horizons[i] < kSeconds)
      use.hazard[i] = use.hazard[kTenSeconds] > 0
                          ? use.hazard[i] / use.hazard[kTenSeconds] * hazard
                          : hazard * FirstUse::horizons[i] / kSeconds;
    else if (i > kTenSeconds)
      use.hazard[i] = std::max(use.hazard[i], hazard);
  use.hazard[kTenSeconds] = hazard;
  return use;
}

} // namespace pgkp::rt::forecast
