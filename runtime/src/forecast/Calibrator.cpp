// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast/Calibrator.h"
#include "forecast/Beta.h"

#include <algorithm>
#include <cmath>

namespace pgkp::rt::forecast {

/// Bins are equal in log-odds, from 0.1 % to 99.9 %: whether a rare use has 1 %
/// or 4 % decides a plan.
static constexpr double kMaxLogOdds = 7;

static double logOdds(double p) {
  const double q = std::clamp(p, 1e-4, 1 - 1e-4);
  return std::log(q / (1 - q));
}

size_t Calibrator::binOf(double p) {
  const double x = (logOdds(p) + kMaxLogOdds) / (2 * kMaxLogOdds);
  return std::min(static_cast<size_t>(std::clamp(x, 0.0, 1.0) * kBins),
                  kBins - 1);
}
double Calibrator::centerOf(size_t bin) {
  const double x = ((static_cast<double>(bin) + 0.5) / kBins * 2 - 1);
  return 1 / (1 + std::exp(-x * kMaxLogOdds));
}

FirstUse fit(FirstUse use, const std::array<double, FirstUse::kHorizons> &p) {
  double before = 0;
  for (size_t i = 0; i < FirstUse::kHorizons; ++i) {
    const double target = std::clamp(p[i], 0.0, 1.0);
    double dated = use.datedCdf(FirstUse::horizons[i]);
    // More than all of it cannot be dated; what the date's early tail says
    // too much stays.
    const double survives = std::exp(-before);
    if (dated > 0 && FirstUse::horizons[i] >= use.date &&
        1 - survives * (1 - dated) > target) {
      const double share =
          std::clamp((1 - (1 - target) / survives) / dated, 0.0, 1.0);
      use.dateMass *= share;
      dated *= share;
    }
    const double left = 1 - dated;
    const double hazard =
        left > 0 && target < 1
            ? std::clamp(-std::log((1 - target) / left), before,
                         FirstUse::kCertain)
            : std::max(before, target < 1 ? 0.0 : FirstUse::kCertain);
    use.hazard[i] = before = hazard;
  }
  return use;
}

void Calibrator::sample(KeyId key, size_t horizon, size_t kind, double raw,
                        double corrected, const Opinions &opinions,
                        TimeNs now) {
  due[key][horizon] = now + kLength[horizon] / kOverlap;
  open[horizon].push_back({now, key, opinions, static_cast<float>(raw),
                           static_cast<float>(corrected),
                           static_cast<uint8_t>(kind)});
}

Calibrator::Closed Calibrator::close(size_t horizon) {
  const Sample sample = open[horizon].front();
  open[horizon].pop_front();
  const bool used = lastUse[sample.key] > sample.from;
  Histogram &histogram = histograms[horizon][sample.kind];
  Bin &bin = histogram.bins[binOf(sample.raw)];
  constexpr double weight = 1.0 / kOverlap;
  if (bin.total > kWindow) {
    bin.total /= 2;
    bin.used /= 2;
    bin.forecast /= 2;
  }
  bin.total += weight;
  bin.used += used ? weight : 0;
  bin.forecast += weight * sample.raw;
  histogram.changed = true;
  if (horizon == kTenSeconds && drift.add(sample.corrected, used, weight)) {
    ++alarmed;
    for (auto &row : histograms)
      for (Histogram &h : row) {
        h.changed = true;
        for (Bin &b : h.bins) {
          b.total /= 2;
          b.used /= 2;
          b.forecast /= 2;
        }
      }
  }
  return {horizon, sample.opinions, used};
}

void Calibrator::refit() {
  struct Block {
    double sum, weight;
    size_t bins;
  };
  for (auto &row : histograms)
    for (Histogram &histogram : row) {
      if (!histogram.changed)
        continue;
      histogram.changed = false;
      histogram.fitted = true;
      std::array<Block, kBins> blocks;
      size_t count = 0;
      for (size_t i = 0; i < kBins; ++i) {
        Bin &bin = histogram.bins[i];
        bin.center = bin.total > 0 ? bin.forecast / bin.total : centerOf(i);
        // An empty bin has no say, but goes along with its neighbours.
        const double prior = bin.total > 0 ? kPrior : 1e-6;
        blocks[count++] = {bin.used + prior * bin.center, bin.total + prior, 1};
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
        for (size_t i = 0; i < blocks[b].bins; ++i, ++at)
          histogram.bins[at].value = blocks[b].sum / blocks[b].weight;
      for (Bin &bin : histogram.bins) {
        if (bin.total <= 0)
          continue;
        const double a = bin.used + 1, b = bin.total - bin.used + 1;
        bin.lowerShare = std::min(1.0, betaLower(a, b) * (a + b) / a);
      }
    }
}

std::array<double, Calibrator::kHorizons>
Calibrator::correct(size_t kind,
                    const std::array<double, kHorizons> &raw) const {
  std::array<double, kHorizons> out;
  double least = 0;
  for (size_t h = 0; h < kHorizons; ++h) {
    const Histogram &histogram = histograms[h][kind];
    double p = raw[h];
    if (histogram.fitted && p > 0) {
      // What was counted near it shifts its log-odds.
      const Bin &bin = histogram.bins[binOf(p)];
      const double shift =
          bin.total > 0 ? logOdds(bin.value) - logOdds(bin.center) : 0;
      if (shift != 0)
        p = 1 / (1 + std::exp(-(logOdds(p) + shift)));
    }
    out[h] = least = std::clamp(p, least, 1.0);
  }
  return out;
}

double Calibrator::lowerShare(size_t kind, double raw, double assumed) const {
  const Bin &bin = histograms[kHorizons - 1][kind].bins[binOf(raw)];
  return (kPrior * assumed + bin.total * bin.lowerShare) / (kPrior + bin.total);
}

} // namespace pgkp::rt::forecast
