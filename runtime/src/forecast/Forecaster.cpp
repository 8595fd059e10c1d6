// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Asks the estimators and picks: a standing claim, else history for keys in
// use, else for keys never used the surest of profile, neighbours and
// structure.
#include "forecast/Forecaster.h"
#include "forecast/Calibrator.h"
#include "forecast/Claims.h"
#include "forecast/Hazard.h"
#include "forecast/NextKey.h"
#include "forecast/ProfileModel.h"
#include "forecast/RootModel.h"
#include "forecast/Structure.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace pgkp::rt {

namespace {
using namespace forecast;

/// How often open gaps and watched forecasts are looked at.
constexpr TimeNs kSweep = kNsPerSecond;
/// Streams with a predictor of their own; the others have none.
constexpr size_t kMaxStreams = 64;

class Mixed final : public Forecaster {
public:
  Mixed(std::shared_ptr<const Module> m, const schema::ProfileT *recorded,
        ForecasterOptions options, TimeNs now)
      : module(std::move(m)), options(options), hazard(module->keys().size()),
        claims(module->keys().size()), roots(*module), structure(*module),
        profile(*module, options.profile ? recorded : nullptr),
        calibrator(module->keys().size()), tracked(module->keys().size()),
        swept(now) {
    for (KeyId key : profile.keys())
      track(key);
    if (options.structure) {
      if (profile.usable())
        for (const auto &request : recorded->roots)
          if (request)
            if (auto entry = module->findEntry(request->entry))
              roots.addRecorded(*entry, request->roots);
      for (KeyId key : structure.keys())
        track(key);
    }
  }

  void onRequest(uint32_t entry, std::span<const int64_t> values,
                 TimeNs now) override {
    if (!expand(entry, values))
      return;
    sweep(now);
    if (!begun)
      begun = now;
    claims.begin(requestHash(entry, values), expansion, now);
    trackExpansion();
    if (options.structure) {
      roots.onRequest(entry, values, now);
      for (; rootsTracked < roots.keys().size(); ++rootsTracked)
        track(roots.keys()[rootsTracked]);
    }
  }

  void onAnnounce(uint32_t entry, std::span<const int64_t> values, TimeNs when,
                  TimeNs now) override {
    if (!expand(entry, values))
      return;
    claims.announce(requestHash(entry, values), expansion, when, now);
    trackExpansion();
  }

  void onPrepareHint(KeyId key, double probability, double slack,
                     TimeNs now) override {
    if (key >= tracked.size() || !(probability > 0))
      return;
    claims.hint(key, probability, slack, now);
    track(key);
  }

  void onUse(KeyId key, TimeNs now, uint32_t stream) override {
    if (key >= tracked.size())
      return;
    sweep(now);
    calibrator.onUse(key, now);
    claims.onUse(key, now);
    if (options.history)
      hazard.onUse(key, now);
    used.resize(tracked.size());
    used[key] = true;
    track(key);
    auto it = streams.find(stream);
    if (it == streams.end() && streams.size() < kMaxStreams)
      it = streams.emplace(stream, std::make_unique<NextKey>()).first;
    if (it != streams.end())
      it->second->observe(key);
  }

  void onTick(TimeNs now) override { sweep(now); }

  FirstUse forecast(KeyId key, TimeNs now) const override {
    return key < tracked.size() ? calibrator.correct(raw(key, now))
                                : FirstUse{};
  }

  KeyId nextKey(double *probability, uint32_t stream) const override {
    auto it = streams.find(stream);
    if (probability)
      *probability = it == streams.end() ? 0 : it->second->probability();
    return it == streams.end() ? kNoKey : it->second->predicted();
  }

  void keys(std::vector<KeyId> &out) const override {
    out.insert(out.end(), list.begin(), list.end());
  }

private:
  bool expand(uint32_t entry, std::span<const int64_t> values) {
    if (entry >= module->entries().size() ||
        module->entries()[entry].roots.size() != values.size())
      return false;
    expansion.clear();
    module->expand(entry, values, expansion);
    return true;
  }

  void track(KeyId key) {
    if (tracked[key] || module->isGeneric(key))
      return;
    tracked[key] = true;
    list.push_back(key);
  }
  void trackExpansion() {
    for (KeyId key : expansion)
      track(key);
  }

  bool wasUsed(KeyId key) const { return key < used.size() && used[key]; }

  FirstUse raw(KeyId key, TimeNs now) const {
    FirstUse best;
    const auto claim = claims.forecast(key, now);
    if (wasUsed(key)) {
      if (options.history)
        best = hazard.forecast(key, now);
    } else {
      const auto start = begun ? begun : claims.nextAnnounced();
      double most = 0;
      auto consider = [&](const FirstUse &use) {
        if (const double mass = use.mass(); mass > most) {
          best = use;
          most = mass;
        }
      };
      if (const auto recorded = profile.forecast(key, start, now))
        consider(*recorded);
      if (options.structure) {
        consider(roots.forecast(key, now));
        // Runs that did not use the key speak against it.
        if (auto prior =
                structure.forecast(key, begun, now, profile.absentShare(key)))
          consider(*prior);
      }
    }
    if (!claim)
      return best;
    FirstUse use = *claim;
    use.useRate = std::max({use.useRate, best.useRate, profile.useRate(key)});
    // Whichever comes first; but two dates are one event told twice.
    if (!best.dated())
      use.hazard = best.hazard;
    // A weak hint does not silence a strong forecast.
    return !best.dated() || use.dateMass >= best.dateMass ? use : best;
  }

  void sweep(TimeNs now) {
    if (now - swept < kSweep)
      return;
    swept = now;
    hazard.advance(now);
    calibrator.advance(now);
    for (KeyId key : list)
      if (!calibrator.watching(key))
        calibrator.watch(key, raw(key, now), now);
  }

  const std::shared_ptr<const Module> module;
  const ForecasterOptions options;
  Hazard hazard;
  Claims claims;
  RootModel roots;
  Structure structure;
  ProfileModel profile;
  Calibrator calibrator;
  std::optional<TimeNs> begun; ///< the first request
  std::vector<bool> tracked, used;
  std::vector<KeyId> list; ///< tracked keys, in the order in which they came up
  size_t rootsTracked = 0;
  boost::unordered_flat_map<uint32_t, std::unique_ptr<NextKey>> streams;
  std::vector<KeyId> expansion; ///< scratch
  TimeNs swept;
};
} // namespace

std::unique_ptr<Forecaster> makeForecaster(std::shared_ptr<const Module> module,
                                           const schema::ProfileT *profile,
                                           ForecasterOptions options,
                                           TimeNs now) {
  return std::make_unique<Mixed>(std::move(module), profile, options, now);
}

} // namespace pgkp::rt
