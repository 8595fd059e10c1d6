// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Roots that grow by the same step: the classes they will reach, with a
/// date.
#pragma once

#include "base/Clock.h"
#include "schema/Module.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <span>
#include <vector>

namespace pgkp::rt::forecast {

/// algorithms.md section 2b. A root that rises by the same step from request to
/// request while the entry's others stand still (a decoder's cache positions)
/// is extrapolated to the first keys that it has not had. Other requests in
/// between, a prefill say, do not disturb it. Thread-compatible.
class Progressions {
public:
  explicit Progressions(const Module &module) : module(module) {}

  struct Reach {
    KeyId key;
    double probability, seconds; ///< from now
  };
  /// \p keys: what the request expands to. \returns keys beyond them that a
  /// progression reaches; valid until the next call.
  std::span<const Reach> onRequest(uint32_t entry,
                                   std::span<const int64_t> roots,
                                   std::span<const KeyId> keys, TimeNs now);

private:
  /// One root of an entry at given values of the others.
  struct Run {
    int64_t last = 0, step = 0;
    uint32_t length = 0; ///< requests with this step, in a row
    TimeNs at = 0;
    double period = 0;    ///< s from step to step
    int64_t searched = 0; ///< the value up to which nothing more is to be told
  };
  static constexpr size_t kMaxRuns = 4096;
  /// Steps in a row that make a progression.
  static constexpr uint32_t kMinLength = 7;
  /// How far to look, s and steps.
  static constexpr double kMaxSeconds = 120;
  static constexpr int64_t kMaxSteps = 4096;

  void search(uint32_t entry, size_t root, Run &run,
              std::span<const KeyId> keys);

  const Module &module;
  boost::unordered_flat_map<uint64_t, Run> runs;
  double went = 0, broke = 0; ///< steps of progressions that went on, or not
  std::vector<int64_t> vector;
  std::vector<KeyId> expansion;
  std::vector<Reach> reached;
};

} // namespace pgkp::rt::forecast
