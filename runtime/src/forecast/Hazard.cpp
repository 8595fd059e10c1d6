// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast/Hazard.h"
#include "forecast/Beta.h"

#include <algorithm>
#include <cmath>

namespace pgkp::rt::forecast {

static constexpr double kDecay = 60; ///< tau, s
static constexpr double kPriorAlpha = 0.5,
                        kPriorBeta = 10; ///< Gamma-Poisson, s
/// Key-seconds that the key's own forecast weighs against a cell.
static constexpr double kPriorWeight = 2;
/// Gaps of its own that the pooled cell weighs against a key's own, and after
/// which older ones count half.
static constexpr double kPoolWeight = 4, kOwnGaps = 512;

size_t Hazard::ageBin(double age) {
  return std::min<size_t>(kAges - 1,
                          static_cast<size_t>(std::log2(1 + 4 * age)));
}

double Hazard::ageBinEnd(size_t bin) {
  return bin + 1 == kAges
             ? HUGE_VAL
             : (std::ldexp(1.0, static_cast<int>(bin) + 1) - 1) / 4;
}

const Hazard::Cell &Hazard::cellAt(double age, double count) const {
  const auto column = std::min<size_t>(
      kCounts - 1, static_cast<size_t>(2 * std::log2(1 + count)));
  return cells[ageBin(age) * kCounts + column];
}

void Hazard::count(Key &key, size_t horizon, double from, double to,
                   bool used) {
  for (size_t bin = ageBin(from); from < to; ++bin) {
    const double end = std::min(to, ageBinEnd(bin));
    Own &own = key.own[bin];
    if (bin >= key.ages) { // the first horizon to get here opens the bin
      key.ages = bin + 1;
      if ((own.gaps += 1) > kOwnGaps) {
        own.gaps /= 2;
        for (size_t h = 0; h < kHorizons; ++h) {
          own.used[h] /= 2;
          own.seen[h] /= 2;
        }
      }
    }
    own.seen[horizon] += static_cast<float>(end - from);
    if (used)
      own.used[horizon] += static_cast<float>(end - from);
    const double middle = (from + end) / 2;
    auto &cell = const_cast<Cell &>(
        cellAt(middle, key.count * std::exp(-middle / kDecay)));
    cell.seen[horizon] += end - from;
    if (used)
      cell.used[horizon] += end - from;
    cell.changed = true;
    from = end;
  }
}

void Hazard::onUse(KeyId id, TimeNs now) {
  Key &key = keys[id];
  if (key.sightings == 0) {
    key.first = now;
    seenKeys.push_back(id);
  } else {
    const double gap = std::max(0.0, toSeconds(now - key.last));
    for (size_t h = 0; h < kHorizons; ++h) {
      const double known = key.counted[h];
      const double within = std::max(known, gap - horizons[h]);
      count(key, h, known, within, false);
      count(key, h, within, gap, true);
    }
    key.count *= std::exp(-gap / kDecay);
  }
  key.count += 1;
  key.sightings += 1;
  key.last = now;
  key.counted.fill(0);
  key.ages = 0;
}

void Hazard::advance(TimeNs now) {
  for (KeyId id : seenKeys) {
    Key &key = keys[id];
    const double age = toSeconds(now - key.last);
    for (size_t h = 0; h < kHorizons; ++h) {
      const double closed = age - horizons[h];
      if (closed <= key.counted[h])
        continue;
      count(key, h, key.counted[h], closed, false);
      key.counted[h] = static_cast<float>(closed);
    }
  }
  double sum = 0;
  for (KeyId id : seenKeys)
    sum += std::log(wholeRate(keys[id], now));
  if (!seenKeys.empty())
    typical = std::exp(sum / static_cast<double>(seenKeys.size()));
  for (Cell &cell : cells) {
    if (!cell.changed)
      continue;
    cell.changed = false;
    // Overlapping windows are one observation per horizon's length, not one per
    // second.
    constexpr size_t longest = kHorizons - 1;
    const double used = cell.used[longest] / horizons[longest];
    const double unused =
        (cell.seen[longest] - cell.used[longest]) / horizons[longest];
    const double a = used + 1, b = unused + 1;
    cell.lowerShare = std::min(1.0, betaLower(a, b) / (a / (a + b)));
  }
}

double Hazard::wholeRate(const Key &key, TimeNs now) {
  return key.sightings /
         (std::max(1.0, toSeconds(now - key.first)) + kPriorBeta);
}

double Hazard::gammaPoisson(const Key &key, double age, TimeNs now,
                            double horizon) const {
  const double watched = toSeconds(now - key.first);
  const double alpha = kPriorAlpha + key.count * std::exp(-age / kDecay);
  const double beta = kPriorBeta + kDecay * -std::expm1(-watched / kDecay);
  return 1 - std::pow(beta / (beta + horizon), alpha);
}

std::array<double, Hazard::kHorizons> Hazard::probabilities(KeyId id,
                                                            TimeNs now) const {
  const Key &key = keys[id];
  const double age = std::max(0.0, toSeconds(now - key.last));
  const Cell &cell = cellAt(age, key.count * std::exp(-age / kDecay));
  const Own &own = key.own[ageBin(age)];
  std::array<double, kHorizons> result;
  double least = 0;
  for (size_t h = 0; h < kHorizons; ++h) {
    const double prior = gammaPoisson(key, age, now, horizons[h]);
    double p =
        (cell.used[h] + kPriorWeight * prior) / (cell.seen[h] + kPriorWeight);
    if (own.seen[h] > 0)
      p +=
          own.gaps / (own.gaps + kPoolWeight) * (own.used[h] / own.seen[h] - p);
    least = result[h] = std::clamp(p, least, 1.0);
  }
  return result;
}

FirstUse Hazard::forecast(KeyId id, TimeNs now) const {
  const Key &key = keys[id];
  const double age = std::max(0.0, toSeconds(now - key.last));
  FirstUse use = FirstUse::within(probabilities(id, now));
  use.provenance = schema::Provenance::history;
  use.lowerShare = cellAt(age, key.count * std::exp(-age / kDecay)).lowerShare;
  const double watched = std::max(1.0, toSeconds(now - key.first));
  const double recent = key.count * std::exp(-age / kDecay) /
                        (kDecay * -std::expm1(-watched / kDecay));
  use.useRate = (recent + wholeRate(key, now)) / 2;
  return use;
}

} // namespace pgkp::rt::forecast
