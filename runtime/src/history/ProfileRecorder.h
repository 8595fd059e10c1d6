// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What this run saw, merged into what earlier runs saw.
#pragma once

#include "base/Clock.h"
#include "schema/Module.h"
#include "schema/profile_generated.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <span>
#include <vector>

namespace pgkp::rt {

/// Fed by the planning thread with the same calls as the forecaster. Keeps a
/// few numbers per key. Thread-compatible.
class ProfileRecorder {
public:
  /// Limits of a profile (algorithms.md section 1d).
  static constexpr size_t kMaxKeys = 16384, kMaxRoots = 4096;
  /// What an older run counts against the next one.
  static constexpr double kAging = 0.8;

  explicit ProfileRecorder(std::shared_ptr<const Module> module);

  void onRequest(uint32_t entry, std::span<const int64_t> roots, TimeNs now);
  /// `extents`: of the dispatch, kept where it is the key's first; may be
  /// empty.
  void onUse(KeyId key, TimeNs now, std::span<const int64_t> extents = {});
  /// Measured costs; what is 0 or negative is not known and changes nothing.
  void onStageTimes(KeyId key, double compileMs, double loadMs);
  void onKernelTimes(KeyId key, double genericNs, double variantNs);

  /// The profile of all runs including this one, ready to be written. `earlier`
  /// may be null; one of another module is left out. A run without requests or
  /// uses changes nothing.
  schema::ProfileT merge(const schema::ProfileT *earlier, TimeNs now) const;

private:
  struct Key {
    TimeNs first = 0;
    uint32_t rank = 0;
    double uses = 0;
    float compileMs = 0, loadMs = 0;
    double genericNs = 0, variantNs = 0;
    std::vector<int64_t> extents;
  };
  struct Roots {
    uint32_t entry;
    std::vector<int64_t> values;
    double count;
  };

  const std::shared_ptr<const Module> module;
  std::vector<Key> keys;
  std::vector<Roots> requests;
  boost::unordered_flat_map<uint64_t, size_t>
      requestIndex; ///< hash -> position
  bool begun = false;
  TimeNs start = 0; ///< of the first request or use
  uint32_t ranks = 0;
};

} // namespace pgkp::rt
