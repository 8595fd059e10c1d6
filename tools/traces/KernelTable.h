// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Collects launches and gives names, keys and streams their numbers.
#pragma once

#include "Trace.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <span>

namespace pgkp::rt {

/// Thread-compatible.
class KernelTable {
public:
  uint32_t name(std::string_view text);
  uint32_t key(uint32_t name, std::span<const int64_t> extents);
  /// `stream` is the recorded number, `at` in s.
  void add(uint32_t key, double at, double seconds, uint32_t stream,
           uint64_t correlation) {
    trace.launches.push_back({at, seconds, correlation, key, stream});
  }
  size_t size() const { return trace.launches.size(); }

  /// Sorts by (start, stream, correlation), counts from the first start, and
  /// makes stream numbers dense.
  KernelTrace finish();

private:
  struct KeyHash {
    size_t operator()(const KernelTrace::Key &key) const {
      uint64_t h = key.name;
      for (int64_t extent : key.extents)
        h = (h ^ static_cast<uint64_t>(extent)) * 0x9e3779b97f4a7c15 ^
            (h >> 29);
      return h;
    }
  };
  struct KeyEqual {
    bool operator()(const KernelTrace::Key &a,
                    const KernelTrace::Key &b) const {
      return a.name == b.name && a.extents == b.extents;
    }
  };
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  KernelTrace trace;
  boost::unordered_flat_map<std::string, uint32_t, TextHash, std::equal_to<>>
      nameIndex;
  boost::unordered_flat_map<KernelTrace::Key, uint32_t, KeyHash, KeyEqual>
      keyIndex;
  KernelTrace::Key probe; ///< reused, so that a known key costs no allocation
};

} // namespace pgkp::rt
