// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The prior of keys nobody has seen: the class lattice in the manifest.
#pragma once

#include "base/Clock.h"
#include "schema/Module.h"

#include <optional>
#include <vector>

namespace pgkp::rt::forecast {

/// algorithms.md section 1c. The manifest gives P(a process uses the class);
/// the time to it is heavy-tailed, and every second without a use speaks
/// against it. Thread-compatible.
class Structure {
public:
  explicit Structure(const Module &module);

  const std::vector<KeyId> &keys() const { return order; }
  /// For a key that has not been used. `begun`: first request; nothing: none
  /// yet.
  /// `share`: what other evidence leaves of the prior.
  std::optional<FirstUse> forecast(KeyId key, std::optional<TimeNs> begun,
                                   TimeNs now, double share = 1) const;

private:
  struct Row {
    float mass = 0, lower = 0;
  };
  std::vector<Row> rows;
  std::vector<KeyId> order;
};

} // namespace pgkp::rt::forecast
