// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Keys that requests like those seen would use: neighbours of root
/// vectors.
#pragma once

#include "base/Clock.h"
#include "schema/Module.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <span>
#include <vector>

namespace pgkp::rt::forecast {

/// Hash of an entry and its roots.
uint64_t requestHash(uint32_t entry, std::span<const int64_t> roots);

/// algorithms.md section 2a, over vectors: each new root vector gives its
/// weight to vectors near it (one root moved at a time: by one, to the next
/// multiple of 16, by octaves, to 1, with weight 4^-distance); the manifest
/// expands them to keys. How often a request has a vector never seen before is
/// the Good-Turing estimate. Thread-compatible.
class RootModel {
public:
  explicit RootModel(const Module &module)
      : module(module), support(module.keys().size()) {}

  void onRequest(uint32_t entry, std::span<const int64_t> roots, TimeNs now);
  /// Requests of earlier runs shape the neighbourhood, not the request rate.
  void addRecorded(uint32_t entry, std::span<const int64_t> roots);

  /// Keys with support, in the order in which they got it.
  const std::vector<KeyId> &keys() const { return supported; }
  /// For a key that has not been used: novelty x support x request rate as a
  /// hazard.
  FirstUse forecast(KeyId key, TimeNs now) const;

private:
  void learn(uint32_t entry, std::span<const int64_t> roots);
  double requestRate(TimeNs now) const;

  const Module &module;
  std::vector<double> support; ///< by key
  std::vector<KeyId> supported;
  boost::unordered_flat_map<uint64_t, uint32_t> seen; ///< request hash -> times
  double requests = 0, singles = 0, vectors = 0;
  double recent = 0; ///< decayed count of requests, at `last`
  TimeNs first = 0, last = 0;
  std::vector<int64_t> vector;
  std::vector<KeyId> expansion; ///< scratch
};

} // namespace pgkp::rt::forecast
