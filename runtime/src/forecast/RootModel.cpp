// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast/RootModel.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace pgkp::rt::forecast {

static constexpr double kDecay = 60; ///< s, of the request rate
/// Root vectors remembered; beyond that every new one counts as novel and
/// teaches nothing.
static constexpr size_t kMaxVectors = 16384;
/// The estimate rests on analogy alone: its lower bound is this share of it.
static constexpr double kLowerShare = 0.25;

uint64_t requestHash(uint32_t entry, std::span<const int64_t> roots) {
  uint64_t hash = 0x9e3779b97f4a7c15 ^ entry;
  for (int64_t root : roots) {
    hash = (hash ^ static_cast<uint64_t>(root)) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return hash;
}

void RootModel::onRequest(uint32_t entry, std::span<const int64_t> roots,
                          TimeNs now) {
  if (requests == 0)
    first = now;
  else
    recent *= std::exp(-toSeconds(now - last) / kDecay);
  recent += 1;
  requests += 1;
  last = now;
  learn(entry, roots);
}

void RootModel::addRecorded(uint32_t entry, std::span<const int64_t> roots) {
  learn(entry, roots);
}

void RootModel::learn(uint32_t entry, std::span<const int64_t> roots) {
  if (entry >= module.entries().size() ||
      module.entries()[entry].roots.size() != roots.size())
    return;
  const uint64_t hash = requestHash(entry, roots);
  if (auto it = seen.find(hash); it != seen.end()) {
    singles -= it->second == 1;
    ++it->second;
    return;
  }
  singles += 1;
  if (seen.size() >= kMaxVectors)
    return;
  seen.emplace(hash, 1);
  vectors += 1;

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
      }
    }
    vector[r] = v;
  }
}

double RootModel::requestRate(TimeNs now) const {
  if (requests == 0)
    return 0;
  const double watched = std::max(1.0, toSeconds(now - first));
  return recent * std::exp(-toSeconds(now - last) / kDecay) /
         (kDecay * -std::expm1(-watched / kDecay));
}

FirstUse RootModel::forecast(KeyId key, TimeNs now) const {
  FirstUse use;
  use.provenance = schema::Provenance::structure;
  if (support[key] == 0 || vectors == 0)
    return use;
  const double novelty = (singles + 1) / (std::max(requests, vectors) + 2);
  const double perRequest = std::min(1.0, novelty * support[key] / vectors);
  const double rate = perRequest * requestRate(now);
  use = FirstUse::exponential(1, rate);
  use.provenance = schema::Provenance::structure;
  use.lowerShare = kLowerShare;
  use.useRate = rate;
  return use;
}

} // namespace pgkp::rt::forecast
