// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file One interface for every source of forecasts.
#pragma once

#include "base/Clock.h"
#include "schema/FirstUse.h"
#include "schema/Module.h"
#include "schema/profile_generated.h"

#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace pgkp::rt {

/// Feeds on what happens, answers what will. Deterministic. Thread-compatible:
/// the engine's planning thread owns it. Keys are the module's.
class Forecaster {
public:
  virtual ~Forecaster() = default;

  /// A request began with these roots.
  virtual void onRequest(uint32_t entry, std::span<const int64_t> roots,
                         TimeNs now) = 0;
  /// An announcement: it will begin at about `when`.
  virtual void onAnnounce(uint32_t entry, std::span<const int64_t> roots,
                          TimeNs when, TimeNs now) = 0;
  /// The compiler half's hint for one key.
  virtual void onPrepareHint(KeyId key, double probability, double slackSeconds,
                             TimeNs now) = 0;
  /// A dispatch of the key, in the stream's order.
  virtual void onUse(KeyId key, TimeNs now, uint32_t stream = 0) = 0;
  /// Time has passed: once before each round of forecasts. Forecasts whose
  /// horizon has closed without a use are learnt from here.
  virtual void onTick(TimeNs now) = 0;

  /// The forecast of one key.
  virtual FirstUse forecast(KeyId key, TimeNs now) const = 0;
  /// The key of the stream's next dispatch, kNoKey: no prediction; with the
  /// probability it gives it (may be null).
  virtual KeyId nextKey(double *probability, uint32_t stream = 0) const = 0;
  /// Every key that may have a forecast above nothing, each once, generic ones
  /// left out: there is nothing to prepare for them.
  virtual void keys(std::vector<KeyId> &out) const = 0;
  /// How often forecasts have become markedly worse than they were. Each time
  /// is a reason to speculate less for a while.
  virtual unsigned driftAlarms() const { return 0; }
};

struct ForecasterOptions {
  bool structure = true; ///< prior over the module's class lattice
  bool profile = true;
  bool history = true;
  bool calibration = true; ///< histograms, and the mixture's weights
};

/// Time-to-use hazard, recorded profile, announcements and hints, progressions
/// and neighbours of requested roots and the structural prior, each in a file
/// of its own; mixed and calibrated. `profile` may be null; it is copied. A
/// profile of another module gives no forecasts.
std::unique_ptr<Forecaster> makeForecaster(std::shared_ptr<const Module> module,
                                           const schema::ProfileT *profile,
                                           ForecasterOptions options,
                                           TimeNs now);

/// Future known: exact dated forecasts from a recorded list of (time since
/// start, key). Where the run is ahead of or behind the recording, its last use
/// tells by how much.
struct FutureUse {
  TimeNs at;
  KeyId key;
  /// From when on the forecaster may know of it; as a rule it always does.
  TimeNs known = std::numeric_limits<TimeNs>::min();
};
std::unique_ptr<Forecaster> makeOracle(std::shared_ptr<const Module> module,
                                       std::vector<FutureUse> future,
                                       TimeNs start);

} // namespace pgkp::rt
