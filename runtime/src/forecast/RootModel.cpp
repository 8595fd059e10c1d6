// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast/RootModel.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace pgkp::rt::forecast {

static constexpr double kDecay = 60; ///< s, of the request rate
/// Root vectors remembered; beyond that a new one
/// teaches nothing.
static constexpr size_t kMaxVectors = 16384;
/// The estimate rests on analogy alone: its lower bound is this share of it.
static constexpr double kLowerShare = 0.25;
/// Keys used once that we have not seen: none yet is not never.
static constexpr double kUnseen = 0.5;

uint64_t requestHash(uint32_t entry, std::span<const int64_t> roots) {
  uint64_t hash = 0x9e3779b97f4a7c15 ^ entry;
  for (int64_t root : roots) {
    hash = (hash ^ static_cast<uint64_t>(root)) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return hash;
}

void RootModel::onRequest(uint32_t entry, std::span<const int64_t> roots,
                          std::span<const KeyId> keys, TimeNs now) {
  if (second == 0 || now - last >= kNsPerSecond) {
    if (second == 0)
      first = now;
    else
      recent *= std::exp(-toSeconds(now - last) / kDecay);
    recent += 1;
    ++second;
    last = now;
  }
  for (KeyId key : keys) {
    if (module.isGeneric(key) || counted[key] == second)
      continue;
    counted[key] = second;
    const uint32_t times = ++seconds[key];
    if (times == 1)
      unseenSupport = std::max(0.0, unseenSupport - support[key]);
    once += times == 1 ? 1 : times == 2 ? -1 : 0;
    twice += times == 2 ? 1 : times == 3 ? -1 : 0;
  }
  learn(entry, roots);
}

void RootModel::addRecorded(uint32_t entry, std::span<const int64_t> roots) {
  learn(entry, roots);
}

void RootModel::learn(uint32_t entry, std::span<const int64_t> roots) {
  if (entry >= module.entries().size() ||
      module.entries()[entry].roots.size() != roots.size())
    return;
  if (seen.size() >= kMaxVectors ||
      !seen.insert(requestHash(entry, roots)).second)
    return;

  struct Neighbour {
    int64_t value;
    double weight;
  };
  vector.assign(roots.begin(), roots.end());
  for (size_t r = 0; r < roots.size(); ++r) {
    const int64_t v = roots[r];
    if (v <= 0 || v > (int64_t{1} << 40))
      continue;
    const std::array<Neighbour, 9> neighbours = {{{v + 1, 0.5},
                                                  {v - 1, 0.5},
                                                  {v / 16 * 16, 0.25},
                                                  {v / 16 * 16 + 16, 0.25},
                                                  {v * 2, 0.25},
                                                  {v / 2, 0.25},
                                                  {v * 4, 0.0625},
                                                  {v / 4, 0.0625},
                                                  {1, 0.0625}}};
    double total = 0;
    for (const Neighbour &n : neighbours)
      total += n.weight;
    total *= static_cast<double>(roots.size());
    for (const Neighbour &n : neighbours) {
      if (n.value <= 0 || n.value == v)
        continue;
      vector[r] = n.value;
      expansion.clear();
      module.expand(entry, vector, expansion);
      for (KeyId key : expansion) {
        if (module.isGeneric(key))
          continue;
        if (support[key] == 0)
          supported.push_back(key);
        support[key] += n.weight / total;
        if (seconds[key] == 0)
          unseenSupport += n.weight / total;
      }
    }
    vector[r] = v;
  }
}

double RootModel::secondRate(TimeNs now) const {
  const double watched = std::max(1.0, toSeconds(now - first));
  return std::min(1.0, recent * std::exp(-toSeconds(now - last) / kDecay) /
                           (kDecay * -std::expm1(-watched / kDecay)));
}

std::optional<FirstUse> RootModel::forecast(KeyId key, TimeNs now) const {
  if (support[key] == 0 || seconds[key] > 0 || second == 0 ||
      unseenSupport <= 0)
    return std::nullopt;
  const auto t = static_cast<double>(second);
  const double chao =
      (t - 1) / t *
      (twice > 0 ? once * once / (2 * twice) : once * (once - 1) / 2);
  // At the start there is nothing to extrapolate from; and one key more may
  // always come.
  const double unseen = std::max(chao, (once + 1) / t);
  const double perSecond = (once + kUnseen) / (t * unseen + once + kUnseen);
  const double share = std::min(1.0, support[key] / unseenSupport);
  const double rate = secondRate(now);
  std::array<double, FirstUse::kHorizons> p;
  for (size_t i = 0; i < p.size(); ++i) {
    const double more = std::max(rate * FirstUse::horizons[i], 0.0);
    const double fresh =
        unseen * -std::expm1(more * std::log1p(-std::min(perSecond, 1 - 1e-9)));
    p[i] = -std::expm1(-fresh * share);
  }
  FirstUse use = FirstUse::within(p);
  use.provenance = schema::Provenance::structure;
  use.lowerShare = kLowerShare;
  use.useRate = rate * share;
  return use;
}

} // namespace pgkp::rt::forecast
