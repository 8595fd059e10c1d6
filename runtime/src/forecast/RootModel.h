// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Keys that requests like those seen would use: neighbours of root
/// vectors.
#pragma once

#include "base/Clock.h"
#include "schema/Module.h"

#include <boost/unordered/unordered_flat_set.hpp>
#include <optional>
#include <span>
#include <vector>

namespace pgkp::rt::forecast {

/// Hash of an entry and its roots.
uint64_t requestHash(uint32_t entry, std::span<const int64_t> roots);

/// algorithms.md section 2a, over vectors: each new root vector gives its
/// weight to vectors near it (one root moved at a time: by one, to the next
/// multiple of 16, by octaves, to 1, with weight 4^-distance); the manifest
/// expands them to keys. How many keys are still to come is the unseen-species
/// question: with Q1 and Q2 keys used in exactly one and two of T seconds with
/// requests, Chao2's estimate of the unseen keys and its extrapolation to m
/// more such seconds (Chao et al., Ecology 90, 2009),
///   Q0 = (T - 1) / T * Q1^2 / (2 Q2)
///   New(m) = Q0 (1 - (1 - Q1 / (T Q0 + Q1))^m),
/// shared among unused keys by their support. Thread-compatible.
class RootModel {
public:
  explicit RootModel(const Module &module)
      : module(module), support(module.keys().size()),
        seconds(module.keys().size()), counted(module.keys().size()) {}

  /// `keys`: what the request expands to.
  void onRequest(uint32_t entry, std::span<const int64_t> roots,
                 std::span<const KeyId> keys, TimeNs now);
  /// Requests of earlier runs shape the neighbourhood, not the request rate.
  void addRecorded(uint32_t entry, std::span<const int64_t> roots);

  /// Keys with support, in the order in which they got it.
  const std::vector<KeyId> &keys() const { return supported; }
  /// For a key that no request has expanded to. Nothing: no support.
  std::optional<FirstUse> forecast(KeyId key, TimeNs now) const;

private:
  void learn(uint32_t entry, std::span<const int64_t> roots);
  double secondRate(TimeNs now) const;

  const Module &module;
  std::vector<double> support;   ///< by key
  std::vector<uint32_t> seconds; ///< by key: seconds in which it was requested
  std::vector<uint64_t> counted; ///< by key: the last of them
  double unseenSupport = 0;      ///< of keys that no request expanded to
  std::vector<KeyId> supported;
  boost::unordered_flat_set<uint64_t> seen; ///< request hashes
  uint64_t second = 0;                      ///< T: seconds with requests so far
  double once = 0, twice = 0;               ///< Q1, Q2
  double recent = 0; ///< decayed count of seconds with requests, at `last`
  TimeNs first = 0, last = 0;
  std::vector<int64_t> vector;
  std::vector<KeyId> expansion; ///< scratch
};

} // namespace pgkp::rt::forecast
