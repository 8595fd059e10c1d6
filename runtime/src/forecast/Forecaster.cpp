// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Asks the estimators and combines them: for keys in use their history, for
// keys never used a mixture of profile, neighbours and structure; beside either
// the first claim that stands. What comes out is calibrated.
#include "forecast/Forecaster.h"
#include "forecast/Calibrator.h"
#include "forecast/Claims.h"
#include "forecast/Hazard.h"
#include "forecast/Mixture.h"
#include "forecast/NextKey.h"
#include "forecast/ProfileModel.h"
#include "forecast/Progressions.h"
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
/// Keys whose forecasts a tick looks at to learn from.
constexpr size_t kWatched = 256;
/// Observations for which the mixture moves fast after an alarm.
constexpr unsigned kDriftSteps = 2000;

class Mixed final : public Forecaster {
public:
  Mixed(std::shared_ptr<const Module> m, const schema::ProfileT *recorded,
        ForecasterOptions options, TimeNs now)
      : module(std::move(m)), options(options), hazard(module->keys().size()),
        claims(module->keys().size()), roots(*module), progressions(*module),
        structure(*module),
        profile(*module, options.profile ? recorded : nullptr),
        calibrator(module->keys().size()), tracked(module->keys().size()),
        used(module->keys().size()), swept(now) {
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
      for (const Progressions::Reach &reach :
           progressions.onRequest(entry, values, expansion, now))
        if (!wasUsed(reach.key)) {
          claims.hint(reach.key, reach.probability, reach.seconds, now);
          track(reach.key);
        }
      roots.onRequest(entry, values, expansion, now);
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
    close(now);
    calibrator.onUse(key, now);
    claims.onUse(key, now);
    if (options.history)
      hazard.onUse(key, now);
    used[key] = true;
    track(key);
    auto it = streams.find(stream);
    if (it == streams.end() && streams.size() < kMaxStreams)
      it = streams.emplace(stream, std::make_unique<NextKey>()).first;
    if (it != streams.end())
      it->second->observe(key);
  }

  void onTick(TimeNs now) override {
    sweep(now);
    close(now);
    if (options.calibration)
      watch(now);
  }

  FirstUse forecast(KeyId key, TimeNs now) const override {
    return key < tracked.size() ? calibrated(combine(key, now)) : FirstUse{};
  }

  unsigned driftAlarms() const override { return calibrator.alarms(); }

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

  bool wasUsed(KeyId key) const { return used[key]; }

  /// The experts on first uses.
  enum Expert : size_t { recorded, neighbours, lattice, numExperts };
  using Opinions = Calibrator::Opinions;
  static_assert(std::tuple_size_v<Opinions> == numExperts);

  struct Combined {
    FirstUse use;
    std::array<double, FirstUse::kHorizons> cdf{}; ///< of `use`
    size_t kind = 0;
    /// What each expert said of each horizon; negative: nothing.
    std::array<Opinions, FirstUse::kHorizons> opinions;
  };

  Combined combine(KeyId key, TimeNs now) const {
    Combined out;
    for (Opinions &row : out.opinions)
      row.fill(-1);
    const bool inUse = wasUsed(key);
    bool known = false;
    if (!inUse)
      known = mixExperts(key, now, out);
    else if (options.history)
      out.use = hazard.forecast(key, now);
    const auto claim = claims.forecast(key, now);
    if (claim)
      addClaim(*claim, key, out.use);
    // A key that comes into use is used as others are, unless runs before have
    // told.
    if (!inUse && out.use.useRate < hazard.typicalRate() &&
        profile.useRate(key) <= 0)
      out.use.useRate = hazard.typicalRate();
    for (size_t h = 0; h < FirstUse::kHorizons; ++h)
      out.cdf[h] = out.use.cdf(FirstUse::horizons[h]);
    out.kind = (inUse ? 1 : 0) | (claim ? 2 : 0) | (known ? 4 : 0);
    return out;
  }

  /// \returns whether the profile knows the key.
  bool mixExperts(KeyId key, TimeNs now, Combined &out) const {
    std::array<std::optional<FirstUse>, numExperts> said;
    said[recorded] =
        profile.forecast(key, begun ? begun : claims.nextAnnounced(), now);
    if (options.structure) {
      // Runs that did not use the key speak against it.
      const double share = profile.absentShare(key);
      said[neighbours] = roots.forecast(key, now);
      if (said[neighbours])
        for (double &hazard : said[neighbours]->hazard)
          hazard *= share;
      said[lattice] = structure.forecast(key, begun, now, share);
    }
    std::array<bool, numExperts> awake;
    size_t count = 0, only = 0;
    for (size_t j = 0; j < numExperts; ++j) {
      awake[j] = said[j].has_value();
      if (!awake[j])
        continue;
      ++count;
      only = j;
      for (size_t h = 0; h < FirstUse::kHorizons; ++h)
        out.opinions[h][j] =
            static_cast<float>(said[j]->cdf(FirstUse::horizons[h]));
    }
    if (count == 1)
      out.use = *said[only];
    if (count > 1)
      out.use = mix(said, awake, out.opinions);
    return awake[recorded];
  }

  FirstUse
  mix(const std::array<std::optional<FirstUse>, numExperts> &said,
      const std::array<bool, numExperts> &awake,
      const std::array<Opinions, FirstUse::kHorizons> &opinions) const {
    FirstUse use;
    std::array<double, FirstUse::kHorizons> cdf{};
    double strongest = -1, lower = 0, sum = 0;
    for (size_t h = 0; h < FirstUse::kHorizons; ++h) {
      const auto weights = mixture.at(h, awake);
      for (size_t j = 0; j < numExperts; ++j) {
        if (!awake[j])
          continue;
        const double part = weights[j] * opinions[h][j];
        cdf[h] += part;
        if (h + 1 < FirstUse::kHorizons)
          continue;
        // The longest horizon decides what the forecast is said to rest on.
        if (part > strongest) {
          strongest = part;
          use.provenance = said[j]->provenance;
        }
        sum += part;
        lower += part * said[j]->lowerShare;
        use.useRate += weights[j] * said[j]->useRate;
        if (said[j]->dated()) {
          use.date = said[j]->date;
          use.sigma = said[j]->sigma;
          use.dateMass = weights[j] * said[j]->dateMass;
        }
      }
    }
    use.lowerShare = sum > 0 ? std::min(1.0, lower / sum) : 0;
    return fit(use, cdf);
  }

  /// Whichever comes first; but two dates are one event told twice, and a weak
  /// hint does not silence a strong forecast.
  void addClaim(const FirstUse &claim, KeyId key, FirstUse &use) const {
    const double rate =
        std::max({claim.useRate, use.useRate, profile.useRate(key)});
    if (!use.dated() || claim.dateMass >= use.dateMass) {
      const double before = use.mass();
      use.date = claim.date;
      use.sigma = claim.sigma;
      use.dateMass = claim.dateMass;
      if (claim.dateMass >= before) {
        use.provenance = claim.provenance;
        use.lowerShare = claim.lowerShare;
      }
    }
    use.useRate = rate;
  }

  FirstUse calibrated(const Combined &combined) const {
    if (!options.calibration || combined.cdf.back() <= 0)
      return combined.use;
    FirstUse use =
        fit(combined.use, calibrator.correct(combined.kind, combined.cdf));
    use.lowerShare = calibrator.lowerShare(combined.kind, combined.cdf.back(),
                                           use.lowerShare);
    return use;
  }

  /// Takes samples of forecasts whose horizons are due, some keys a tick.
  void watch(TimeNs now) {
    for (size_t n = std::min(list.size(), kWatched); n > 0; --n) {
      watched = watched + 1 < list.size() ? watched + 1 : 0;
      const KeyId key = list[watched];
      std::optional<Combined> combined;
      std::array<double, FirstUse::kHorizons> corrected;
      for (size_t h = 0; h < FirstUse::kHorizons; ++h) {
        if (!calibrator.dueAt(key, h, now))
          continue;
        if (!combined) {
          combined = combine(key, now);
          corrected = calibrator.correct(combined->kind, combined->cdf);
        }
        calibrator.sample(key, h, combined->kind, combined->cdf[h],
                          corrected[h], combined->opinions[h], now);
      }
    }
  }

  /// Horizons that have closed teach.
  void close(TimeNs now) {
    calibrator.advance(now, [this](const Calibrator::Closed &closed) {
      if (std::count_if(closed.opinions.begin(), closed.opinions.end(),
                        [](float p) { return p >= 0; }) > 1)
        mixture.learn(closed.horizon, closed.opinions, closed.used);
    });
    if (alarms != calibrator.alarms()) {
      alarms = calibrator.alarms();
      mixture.drift(kDriftSteps);
    }
  }

  void sweep(TimeNs now) {
    if (now - swept < kSweep)
      return;
    swept = now;
    hazard.advance(now);
    claims.sweep(now);
    calibrator.refit();
  }

  const std::shared_ptr<const Module> module;
  const ForecasterOptions options;
  Hazard hazard;
  Claims claims;
  RootModel roots;
  Progressions progressions;
  Structure structure;
  ProfileModel profile;
  Calibrator calibrator;
  /// What ran before is the best witness; the others start alike.
  Mixture<numExperts> mixture{{0.9, 0.05, 0.05}};
  unsigned alarms = 0;
  size_t watched = 0;          ///< position in `list`
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
