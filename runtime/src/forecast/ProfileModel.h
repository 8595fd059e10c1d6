// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What earlier runs say: P(used) = (u + 1) / (n + 2), at about the time
/// it was then.
#pragma once

#include "base/Clock.h"
#include "schema/Module.h"
#include "schema/profile_generated.h"

#include <optional>
#include <vector>

namespace pgkp::rt::forecast {

/// algorithms.md section 1d. Thread-compatible.
class ProfileModel {
public:
  /// Of a profile of another module nothing is taken.
  ProfileModel(const Module &module, const schema::ProfileT *profile);

  bool usable() const { return matches; }
  /// Keys in the profile, in its order (that of first use).
  const std::vector<KeyId> &keys() const { return order; }
  /// For a key that this run has not used. `begun`: when the first request
  /// began or is expected to; nothing: unknown, it may be any moment.
  std::optional<FirstUse> forecast(KeyId key, std::optional<TimeNs> begun,
                                   TimeNs now) const;
  /// By how much the profile lowers another source's probability of a key that
  /// its runs did not use: 2 / (n + 2); 1 for a key it knows and without a
  /// profile.
  double absentShare(KeyId key) const {
    return rows[key].known ? 1 : 2 / (runs + 2);
  }
  /// The rate of uses that earlier runs saw; 0: none.
  double useRate(KeyId key) const { return rows[key].rate; }

private:
  struct Row {
    bool known = false;
    double mass = 0, lower = 0;
    double firstUse = 0; ///< s after the first request
    double rate = 0;     ///< uses per second
  };
  bool matches = false;
  double runs = 0;       ///< aged number of them
  std::vector<Row> rows; ///< by key
  std::vector<KeyId> order;
};

} // namespace pgkp::rt::forecast
