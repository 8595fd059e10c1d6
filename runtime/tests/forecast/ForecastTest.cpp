// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast/Beta.h"
#include "forecast/Calibrator.h"
#include "forecast/Claims.h"
#include "forecast/Forecaster.h"
#include "forecast/Hazard.h"
#include "forecast/Mixture.h"
#include "forecast/ProfileModel.h"
#include "forecast/Progressions.h"
#include "forecast/RootModel.h"
#include "schema/TestBundle.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <set>

using namespace pgkp;
using namespace pgkp::rt;
using namespace pgkp::rt::forecast;
namespace fx = pgkp::rt::fixtures;

namespace {

constexpr TimeNs s = kNsPerSecond;
/// Keys of the test bundle's matmul: m == 1, m in [2, 63], m % 16 == 0,
/// generic.
constexpr KeyId kOne = 0, kSmall = 1, kSixteen = 2, kGeneric = 3;

std::shared_ptr<const Module> testModule(float probability = 0.5f) {
  auto bundle = fx::testBundle();
  for (auto &klass : bundle.kernels[0]->classes)
    klass->probability = probability;
  auto module = Module::load(fx::pack(bundle));
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  return module.value_or(nullptr);
}

schema::ProfileT profileOf(const Module &module, double runs) {
  schema::ProfileT profile;
  profile.format_version = 1;
  profile.module_hash =
      std::make_unique<schema::Digest>(fx::schemaDigest(module.hash()));
  profile.runs = runs;
  return profile;
}
void addKey(schema::ProfileT &profile, std::vector<schema::Fact> facts,
            double firstUse, double used, double rate = 2) {
  auto key = std::make_unique<schema::KeyProfileT>();
  key->kernel_hash =
      std::make_unique<schema::Digest>(fx::schemaDigest(fx::matmulHash()));
  key->kernel = "matmul";
  key->facts = std::move(facts);
  key->first_use_s = firstUse;
  key->runs_used = used;
  key->rate = rate;
  profile.keys.push_back(std::move(key));
}

TEST(Beta, LowerQuantile) {
  // Beta(1, 1) is uniform; Beta(a, 1) has CDF x^a.
  EXPECT_NEAR(betaLower(1, 1), 0.1, 1e-9);
  EXPECT_NEAR(betaLower(2, 1), std::sqrt(0.1), 1e-9);
  EXPECT_NEAR(betaLower(1, 2), 1 - std::sqrt(0.9), 1e-9);
  EXPECT_NEAR(betaLower(500, 500), 0.5 - 1.2816 * std::sqrt(0.25 / 1001), 1e-4);
  EXPECT_EQ(betaLower(0, 1), 0);
  EXPECT_EQ(betaLower(1, 0), 1);
}

TEST(Hazard, OneSightingIsTheGammaPoissonForecast) {
  Hazard hazard(1);
  hazard.onUse(0, 0);
  // At the first use: alpha = 0.5 + 1, beta = 10.
  const auto p = hazard.probabilities(0, 0);
  for (size_t h = 0; h < Hazard::kHorizons; ++h)
    EXPECT_NEAR(p[h], 1 - std::pow(10 / (10 + Hazard::horizons[h]), 1.5),
                1e-12);
  // 30 s later the count has decayed and the watch has lasted.
  const double alpha = 0.5 + std::exp(-0.5),
               beta = 10 + 60 * (1 - std::exp(-0.5));
  EXPECT_NEAR(hazard.probabilities(0, 30 * s)[1],
              1 - std::pow(beta / (beta + 10), alpha), 1e-12);
}

TEST(Hazard, CountsTheWholeGapOnce) {
  // Uses every 4 s, long enough that priors do not matter: within 1 s of any
  // moment a use comes with probability 1/4 overall, never just after a use,
  // always just before the next.
  Hazard hazard(1);
  TimeNs now = 0;
  for (int i = 0; i < 4000; ++i, now += 4 * s)
    hazard.onUse(0, now);
  const TimeNs last = now - 4 * s;
  EXPECT_NEAR(hazard.probabilities(0, last)[0], 0, 1e-2); // age 0
  EXPECT_NEAR(hazard.probabilities(0, last + s)[0], 0,
              1e-2); // age 1: [0.75, 1.75)
  EXPECT_NEAR(hazard.probabilities(0, last + 2 * s)[0], 0.375,
              2e-2); // [1.75, 3.75)
  EXPECT_NEAR(hazard.probabilities(0, last + 39 * s / 10)[0], 1,
              0.2);                                       // [3.75, 4)
  EXPECT_NEAR(hazard.probabilities(0, last)[1], 1, 1e-2); // within 10 s
  const FirstUse use = hazard.forecast(0, last);
  EXPECT_NEAR(use.cdf(10), hazard.probabilities(0, last)[1], 1e-6);
  EXPECT_NEAR(use.useRate, 0.25, 0.02);
  EXPECT_EQ(use.provenance, schema::Provenance::history);
}

TEST(Hazard, SilenceIsLearntFromOpenGaps) {
  Hazard hazard(100);
  // A hundred keys, each used once: nothing ever comes back.
  for (KeyId key = 0; key < 100; ++key)
    hazard.onUse(key, 0);
  const double before = hazard.probabilities(0, 30 * s)[1];
  for (TimeNs t = s; t <= 100 * s; t += s)
    hazard.advance(t);
  // Ages up to 90 s have closed their 10 s horizons without a use.
  EXPECT_GT(before, 0.1);
  EXPECT_LT(hazard.probabilities(0, 30 * s)[1], 0.01);
  // Nothing is counted twice: 20 more seconds change a cell that has been
  // passed not at all.
  const double once = hazard.probabilities(0, 2 * s)[1];
  hazard.advance(200 * s);
  EXPECT_EQ(hazard.probabilities(0, 2 * s)[1], once);
}

TEST(Claims, AnnouncementIsDatedAndNearlyCertain) {
  Claims claims(4);
  const std::vector<KeyId> keys = {1, 2};
  claims.announce(77, keys, 20 * s, 0);
  auto use = claims.forecast(1, 10 * s);
  ASSERT_TRUE(use.has_value());
  EXPECT_NEAR(use->date, 10, 1e-9);
  EXPECT_NEAR(use->sigma, 1, 1e-9);
  EXPECT_NEAR(use->mass(), 0.98, 1e-9);
  EXPECT_NEAR(use->lower(), std::pow(0.1, 1.0 / 49), 1e-3);
  EXPECT_EQ(use->provenance, schema::Provenance::announcement);
  EXPECT_FALSE(claims.forecast(3, 10 * s).has_value());
  EXPECT_EQ(claims.nextAnnounced(), 20 * s);

  // It begins late: the keys are due now, the announcement is used up.
  claims.begin(77, keys, 22 * s);
  EXPECT_EQ(claims.forecast(1, 22 * s)->date, 0);
  claims.onUse(1, 22 * s);
  EXPECT_FALSE(claims.forecast(1, 22 * s).has_value());
  EXPECT_TRUE(claims.forecast(2, 22 * s).has_value());
  EXPECT_LT(claims.forecast(2, 40 * s)->mass(), 1e-9); // that request is over
  EXPECT_EQ(claims.nextAnnounced(), std::nullopt);
}

TEST(Claims, OneUseDoesNotFulfilTheNextAnnouncement) {
  Claims claims(1);
  const std::vector<KeyId> keys = {0};
  claims.announce(1, keys, 5 * s, 0);
  claims.announce(2, keys, 50 * s, 0);
  claims.begin(1, keys, 5 * s);
  claims.onUse(0, 5 * s);
  EXPECT_NEAR(claims.forecast(0, 5 * s)->date, 45, 1e-9);
}

TEST(Claims, BrokenAnnouncementsCostTrust) {
  Claims claims(1);
  const std::vector<KeyId> keys = {0};
  for (uint64_t i = 0; i < 50; ++i)
    claims.announce(i, keys, s, 0);
  claims.sweep(400 * s);
  claims.announce(99, keys, 1000 * s, 500 * s);
  EXPECT_NEAR(claims.forecast(0, 500 * s)->mass(), 49.0 / 100, 1e-9);
  EXPECT_LT(claims.forecast(0, 500 * s)->lower(), 0.49);
}

TEST(Claims, HintsHaveTheirOwnProbabilityAndExpire) {
  Claims claims(1);
  claims.hint(0, 0.5, 2, 0);
  EXPECT_NEAR(claims.forecast(0, 0)->mass(), 0.5, 1e-12);
  EXPECT_NEAR(claims.forecast(0, 0)->date, 2, 1e-9);
  EXPECT_FALSE(claims.forecast(0, 13 * s).has_value());
  claims.hint(0, 0.5, -1, 20 * s); // no slack known
  EXPECT_EQ(claims.forecast(0, 20 * s)->date, 0);
}

TEST(ProfileModel, ProbabilityAndDateOfEarlierRuns) {
  auto module = testModule();
  auto profile = profileOf(*module, 3);
  addKey(profile, {fx::eq(0, 1)}, 20, 2);
  const ProfileModel model(*module, &profile);
  ASSERT_EQ(model.keys(), std::vector<KeyId>{kOne});
  // No request yet: (2 + 1) / (3 + 2), some time after 20 s.
  auto use = model.forecast(kOne, std::nullopt, 0);
  EXPECT_NEAR(use->mass(), 0.6, 1e-12);
  EXPECT_NEAR(use->lower(), betaLower(3, 2), 1e-12);
  EXPECT_NEAR(use->date, 30, 1e-12);
  // 5 s into the run.
  use = model.forecast(kOne, 100 * s, 105 * s);
  EXPECT_NEAR(use->date, 15, 1e-9);
  EXPECT_NEAR(use->sigma, 6, 1e-9);
  EXPECT_NEAR(use->useRate, 2, 1e-12);
  // At the date, half of the mass has been used up: 0.3 / (0.4 + 0.3).
  use = model.forecast(kOne, 0, 20 * s);
  EXPECT_NEAR(use->mass(), 0.3 / 0.7, 1e-9);
  // Long overdue: undated and unlikely.
  use = model.forecast(kOne, 0, 120 * s);
  EXPECT_FALSE(use->dated());
  EXPECT_LT(use->mass(), 0.01);
  EXPECT_FALSE(model.forecast(kSmall, std::nullopt, 0).has_value());
  EXPECT_NEAR(model.absentShare(kSmall), 2.0 / 5, 1e-12);
  EXPECT_EQ(model.absentShare(kOne), 1);
}

TEST(ProfileModel, AnotherModulesProfileSaysNothing) {
  auto module = testModule();
  auto profile = profileOf(*module, 3);
  addKey(profile, {fx::eq(0, 1)}, 20, 2);
  profile.module_hash =
      std::make_unique<schema::Digest>(fx::schemaDigest(fx::matmulHash()));
  EXPECT_FALSE(ProfileModel(*module, &profile).usable());
  EXPECT_TRUE(ProfileModel(*module, &profile).keys().empty());
  EXPECT_FALSE(ProfileModel(*module, nullptr).usable());
}

/// Forecasts of one kind for key 0, `share` of them used, 20 s apart.
void feed(Calibrator &calibrator, KeyId key, size_t horizon, double forecast,
          unsigned every, int samples, TimeNs from = 0) {
  const Calibrator::Opinions none = {-1, -1, -1};
  for (int i = 0; i < samples; ++i) {
    const TimeNs now = from + i * 2000 * s;
    calibrator.advance(now, [](const auto &) {});
    calibrator.sample(key, horizon, 0, forecast, forecast, none, now);
    if (every && i % every == 0)
      calibrator.onUse(key, now + s / 2);
  }
  calibrator.advance(from + samples * 2000 * s, [](const auto &) {});
  calibrator.refit();
}

TEST(Calibrator, LearnsThatForecastsAreTooHigh) {
  Calibrator calibrator(1);
  const std::array<double, 4> raw = {0.1, 0.9, 0.95, 0.95};
  EXPECT_EQ(calibrator.correct(0, raw), raw); // nothing counted: unchanged
  feed(calibrator, 0, 1, 0.9, 5, 400);        // one in five
  // 100 independent samples against a prior of 4.
  const auto corrected = calibrator.correct(0, raw);
  EXPECT_NEAR(corrected[1], (20 + 4 * 0.9) / 104, 1e-3);
  EXPECT_EQ(corrected[0], 0.1); // other horizons and kinds have their own
  EXPECT_EQ(corrected[2], 0.95);
  EXPECT_EQ(calibrator.correct(1, raw), raw);
}

TEST(Calibrator, CorrectionIsMonotoneAcrossBins) {
  Calibrator calibrator(2);
  feed(calibrator, 0, 1, 0.32, 1, 400); // the low one always comes,
  feed(calibrator, 1, 1, 0.62, 0, 400, 10000000 * s); // the high one never
  EXPECT_NEAR(calibrator.correct(0, {0, 0.32, 1, 1})[1], 0.5, 0.05);
  EXPECT_NEAR(calibrator.correct(0, {0, 0.62, 1, 1})[1], 0.5, 0.05);
}

TEST(Calibrator, ASampleCountsUsesAfterItOnly) {
  Calibrator calibrator(1);
  const Calibrator::Opinions said = {0.5f, -1, 0.25f};
  std::vector<bool> used;
  const auto note = [&](const Calibrator::Closed &closed) {
    EXPECT_EQ(closed.opinions, said);
    used.push_back(closed.used);
  };
  calibrator.onUse(0, 5 * s);
  EXPECT_TRUE(calibrator.dueAt(0, 0, 5 * s));
  calibrator.sample(0, 0, 0, 0.5, 0.5, said, 5 * s); // the use is its past
  EXPECT_FALSE(calibrator.dueAt(0, 0, 5 * s));
  calibrator.advance(6 * s, note); // the horizon's last moment
  EXPECT_TRUE(used.empty());
  calibrator.advance(7 * s, note);
  EXPECT_EQ(used, std::vector<bool>{false});
  calibrator.sample(0, 0, 0, 0.5, 0.5, said, 7 * s);
  calibrator.advance(8 * s, note);
  calibrator.onUse(0, 8 * s); // within (7, 8]
  calibrator.advance(9 * s, note);
  EXPECT_EQ(used, (std::vector<bool>{false, true}));
}

TEST(Calibrator, DriftRaisesAnAlarmAndHalvesTheCounts) {
  Calibrator calibrator(1);
  feed(calibrator, 0, 1, 0.05, 0, 400);
  EXPECT_EQ(calibrator.alarms(), 0u);
  const double before = calibrator.correct(0, {0, 0.05, 1, 1})[1];
  feed(calibrator, 0, 1, 0.05, 1, 100, 10000000 * s); // all of a sudden, always
  EXPECT_GE(calibrator.alarms(), 1u);
  EXPECT_GT(calibrator.correct(0, {0, 0.05, 1, 1})[1], 5 * before);
}

TEST(Fit, KeepsDateAndMeetsEveryHorizon) {
  const FirstUse dated = FirstUse::dated(0.9, 5, 0.5);
  const FirstUse lower = fit(dated, {0, 0.3, 0.4, 0.4});
  EXPECT_EQ(lower.date, 5);
  EXPECT_NEAR(lower.cdf(1), 0, 1e-9);
  EXPECT_NEAR(lower.cdf(10), 0.3, 1e-9);
  EXPECT_NEAR(lower.dateMass, 0.3, 1e-9); // nothing else explains it
  EXPECT_NEAR(lower.cdf(60), 0.4, 1e-9);
  const FirstUse higher = fit(dated, {0.2, 0.95, 0.97, 0.98});
  EXPECT_NEAR(higher.cdf(1), 0.2, 1e-9);
  EXPECT_NEAR(higher.cdf(10), 0.95, 1e-9);
  EXPECT_NEAR(higher.cdf(600), 0.98, 1e-9);
}

TEST(Mixture, FollowsTheBetterExpertAndComesBack) {
  Mixture<3> mixture({1.0 / 3, 1.0 / 3, 1.0 / 3});
  const std::array<bool, 3> awake = {true, true, false};
  EXPECT_NEAR(mixture.at(1, awake)[0], 0.5, 1e-12);
  EXPECT_EQ(mixture.at(1, awake)[2], 0);
  for (int i = 0; i < 200; ++i)
    mixture.learn(1, {0.9f, 0.1f, -1}, true);
  EXPECT_GT(mixture.at(1, awake)[0], 0.95);
  EXPECT_NEAR(mixture.at(0, awake)[0], 0.5, 1e-12); // other horizons: no
  for (int i = 0; i < 60; ++i)
    mixture.learn(1, {0.9f, 0.1f, -1}, false);
  EXPECT_LT(mixture.at(1, awake)[0], 0.2); // the share kept it findable
  // The sleeping expert's weight is as it was.
  EXPECT_NEAR(mixture.at(1, {true, true, true})[2], 1.0 / 3, 1e-9);
}

TEST(Progressions, DatesTheClassThatARisingRootReaches) {
  auto module = testModule(0);
  Progressions progressions(*module);
  // decode(batch = 1, seq): m = seq leaves [2, 63] at 64, a multiple of 16.
  std::vector<Progressions::Reach> found;
  for (int64_t seq = 33; seq <= 44; ++seq) {
    const std::vector<int64_t> roots = {1, seq};
    std::vector<KeyId> keys;
    module->expand(0, roots, keys);
    // Another shape in between does not disturb it.
    for (const auto &reach : progressions.onRequest(0, roots, keys, seq * s))
      found.push_back(reach);
    progressions.onRequest(0, std::vector<int64_t>{3, 500 - seq * seq}, keys,
                           seq * s + 1);
  }
  const auto sixteen =
      std::find_if(found.begin(), found.end(),
                   [](const auto &reach) { return reach.key == kSixteen; });
  ASSERT_NE(sixteen, found.end());
  // Known from the eighth request (40) on, with 24 steps of 1 s to go.
  EXPECT_NEAR(sixteen->seconds, 64 - 40, 1e-6);
  EXPECT_GT(sixteen->probability, 0.5);
  EXPECT_LT(sixteen->probability, 1);
}

TEST(RootModel, KeysToComeAreSharedByTheUnseenSpeciesEstimate) {
  auto module = testModule(0);
  RootModel model(*module);
  const std::vector<int64_t> roots = {2, 63}; // m = 126: generic; m = 2: small
  std::vector<KeyId> keys;
  module->expand(0, roots, keys);
  model.onRequest(0, roots, keys, 0);
  const auto early = model.forecast(kSixteen, 0);
  ASSERT_TRUE(early.has_value());
  EXPECT_FALSE(model.forecast(kSmall, 0).has_value()); // requested
  // Five minutes of the same: news has become unlikely, not impossible.
  for (int i = 1; i <= 300; ++i)
    model.onRequest(0, roots, keys, i * s);
  const auto late = model.forecast(kSixteen, 300 * s);
  EXPECT_LT(late->cdf(60), early->cdf(60) / 4);
  EXPECT_GT(late->cdf(60), 0);
}

std::vector<KeyId> keysOf(const Forecaster &forecaster) {
  std::vector<KeyId> keys;
  forecaster.keys(keys);
  return keys;
}

TEST(Forecaster, StructureCoversTheLatticeAndNeverGeneric) {
  auto module = testModule(0.5f);
  auto forecaster = makeForecaster(module, nullptr, {}, 0);
  EXPECT_EQ(keysOf(*forecaster), (std::vector<KeyId>{kOne, kSmall, kSixteen}));
  const FirstUse use = forecaster->forecast(kSixteen, 0);
  EXPECT_NEAR(use.mass(), 0.5, 0.05); // the rest comes after ten minutes
  EXPECT_NEAR(use.lowerShare, 0.2, 1e-6);
  EXPECT_EQ(use.provenance, schema::Provenance::structure);
  auto without = makeForecaster(module, nullptr, {.structure = false}, 0);
  EXPECT_TRUE(keysOf(*without).empty());
  EXPECT_EQ(without->forecast(kSixteen, 0).mass(), 0);
}

TEST(Forecaster, AnnouncementExpandsThroughTheManifest) {
  auto module = testModule(0);
  auto forecaster = makeForecaster(module, nullptr, {}, 0);
  EXPECT_TRUE(keysOf(*forecaster).empty());
  // decode(batch = 4, seq = 32): m = 128 is a multiple of 16, m = 4 is small.
  const std::vector<int64_t> roots = {4, 32};
  forecaster->onAnnounce(0, roots, 30 * s, 0);
  EXPECT_EQ(keysOf(*forecaster), (std::vector<KeyId>{kSixteen, kSmall}));
  EXPECT_NEAR(forecaster->forecast(kSixteen, 10 * s).date, 20, 1e-9);
  EXPECT_EQ(forecaster->forecast(kOne, 0).mass(), 0);
  forecaster->onAnnounce(7, roots, 30 * s, 0); // no such entry
  forecaster->onAnnounce(0, std::vector<int64_t>{1}, 30 * s,
                         0); // wrong number of roots
  EXPECT_EQ(keysOf(*forecaster).size(), 2u);
}

TEST(Forecaster, NeighboursOfSeenRootsGetAForecast) {
  auto module = testModule(0);
  auto forecaster = makeForecaster(module, nullptr, {}, 0);
  const std::vector<int64_t> roots = {2, 63}; // m = 126: generic; m = 2: small
  forecaster->onRequest(0, roots, s);
  // One token more (2 * 64 = 128), or batch 1, would be other keys.
  const FirstUse sixteen = forecaster->forecast(kSixteen, s);
  EXPECT_GT(sixteen.mass(), 0);
  EXPECT_EQ(sixteen.provenance, schema::Provenance::structure);
  EXPECT_GT(forecaster->forecast(kOne, s).mass(), 0);
  EXPECT_LT(sixteen.lowerShare, 1);
}

TEST(Forecaster, UsedKeysFollowTheirHistory) {
  auto module = testModule();
  auto forecaster = makeForecaster(module, nullptr, {}, 0);
  for (int i = 0; i <= 300; ++i)
    forecaster->onUse(kSmall, i * s);
  const FirstUse use = forecaster->forecast(kSmall, 300 * s);
  EXPECT_EQ(use.provenance, schema::Provenance::history);
  EXPECT_GT(use.cdf(10), 0.95);
  EXPECT_NEAR(use.useRate, 1, 0.1);
}

TEST(Forecaster, ProfileBeatsTheLatticePriorAndSurvivesRoundTrip) {
  auto module = testModule(0.05f);
  auto profile = profileOf(*module, 1);
  addKey(profile, {fx::divisible(0, 16)}, 4, 1);
  auto forecaster = makeForecaster(module, &profile, {}, 0);
  EXPECT_EQ(keysOf(*forecaster).front(), kSixteen);
  EXPECT_NEAR(forecaster->forecast(kSixteen, 0).mass(), 2.0 / 3, 0.05);
  EXPECT_EQ(forecaster->forecast(kSixteen, 0).provenance,
            schema::Provenance::profile);
  EXPECT_NEAR(forecaster->forecast(kOne, 0).mass(), 0.05 * 2 / 3, 5e-3);
  auto ignoring = makeForecaster(module, &profile, {.profile = false}, 0);
  EXPECT_EQ(ignoring->forecast(kSixteen, 0).provenance,
            schema::Provenance::structure);
}

TEST(Forecaster, NextKeyIsPerStream) {
  auto forecaster = makeForecaster(testModule(), nullptr, {}, 0);
  double p = 1;
  EXPECT_EQ(forecaster->nextKey(&p), kNoKey);
  EXPECT_EQ(p, 0);
  for (int i = 0; i < 40; ++i) { // interleaved: each stream alone is a cycle
    forecaster->onUse(i % 2 ? kSmall : kOne, i * s, 0);
    forecaster->onUse(kSixteen, i * s, 1);
  }
  EXPECT_EQ(forecaster->nextKey(&p, 0), kOne);
  EXPECT_GT(p, 0.8);
  EXPECT_EQ(forecaster->nextKey(nullptr, 1), kSixteen);
}

TEST(Oracle, DatesAreExactAndDriftWithTheRun) {
  auto module = testModule();
  auto oracle = makeOracle(
      module, {{5 * s, kOne}, {8 * s, kSmall}, {9 * s, kOne}}, 100 * s);
  EXPECT_EQ(keysOf(*oracle), (std::vector<KeyId>{kOne, kSmall}));
  EXPECT_NEAR(oracle->forecast(kSmall, 101 * s).date, 7, 1e-9);
  EXPECT_EQ(oracle->forecast(kSmall, 101 * s).mass(), 1);
  EXPECT_EQ(oracle->forecast(kSixteen, 101 * s).mass(), 0);
  EXPECT_EQ(oracle->nextKey(nullptr), kOne);
  oracle->onUse(kOne, 107 * s); // two seconds behind
  EXPECT_EQ(oracle->nextKey(nullptr), kSmall);
  EXPECT_NEAR(oracle->forecast(kSmall, 107 * s).date, 3, 1e-9);
  EXPECT_NEAR(oracle->forecast(kOne, 107 * s).date, 4, 1e-9);
  oracle->onUse(kSmall, 110 * s);
  oracle->onUse(kOne, 111 * s);
  EXPECT_EQ(oracle->forecast(kOne, 111 * s).mass(), 0);
  EXPECT_EQ(oracle->nextKey(nullptr), kNoKey);
}

/// Whatever happens in whatever order: probabilities, ascending in time, below
/// their mass.
RC_GTEST_PROP(ForecasterProperty, ForecastsAreProbabilities, ()) {
  auto module = testModule(*rc::gen::element(0.0f, 0.05f, 0.5f, 1.0f));
  auto profile = profileOf(*module, *rc::gen::inRange(0, 5));
  addKey(profile, {fx::eq(0, 1)}, *rc::gen::inRange(0, 50),
         *rc::gen::inRange(0, 8));
  auto forecaster =
      makeForecaster(module, *rc::gen::arbitrary<bool>() ? &profile : nullptr,
                     {.structure = *rc::gen::arbitrary<bool>()}, 0);
  TimeNs now = 0;
  const auto steps = *rc::gen::inRange(0, 60);
  for (int i = 0; i < steps; ++i) {
    now += *rc::gen::element<TimeNs>(0, 1, kNsPerMs, s, 7 * s, 30 * s, 700 * s);
    const std::vector<int64_t> roots = {
        *rc::gen::element<int64_t>(-1, 0, 1, 2, 4, 1LL << 60),
        *rc::gen::inRange<int64_t>(0, 70)};
    switch (*rc::gen::inRange(0, 5)) {
    case 0:
      forecaster->onRequest(0, roots, now);
      break;
    case 1:
      forecaster->onAnnounce(
          0, roots, *rc::gen::element<TimeNs>(0, now, now + 20 * s, kForever),
          now);
      break;
    case 2:
      forecaster->onPrepareHint(*rc::gen::inRange<KeyId>(0, 6),
                                *rc::gen::inRange(-1, 3),
                                *rc::gen::inRange(-2, 50), now);
      break;
    case 3:
      forecaster->onUse(*rc::gen::inRange<KeyId>(0, 6), now,
                        *rc::gen::inRange(0u, 3u));
      break;
    case 4:
      forecaster->onTick(now);
      break;
    }
    for (KeyId key = 0; key < 5; ++key) {
      const FirstUse use = forecaster->forecast(key, now);
      RC_ASSERT(use.valid());
      double before = 0;
      for (double x : {-1.0, 0.0, 1e-3, 0.5, 1.0, 10.0, 60.0, 600.0, 1e6}) {
        const double p = use.cdf(x);
        RC_ASSERT(p >= before && p <= 1 && use.lowerCdf(x) <= p);
        before = p;
      }
    }
    double p = -1;
    forecaster->nextKey(&p);
    RC_ASSERT(p >= 0 && p <= 1);
    const auto keys = keysOf(*forecaster);
    RC_ASSERT(std::set<KeyId>(keys.begin(), keys.end()).size() == keys.size());
    for (KeyId key : keys)
      RC_ASSERT(!module->isGeneric(key));
  }
}

RC_GTEST_PROP(ForecasterProperty, SameInputSameForecasts, ()) {
  auto module = testModule();
  auto a = makeForecaster(module, nullptr, {}, 0),
       b = makeForecaster(module, nullptr, {}, 0);
  TimeNs now = 0;
  for (int i = 0; i < 30; ++i) {
    now += *rc::gen::inRange<TimeNs>(0, 5 * s);
    const auto key = *rc::gen::inRange<KeyId>(0, 3);
    const std::vector<int64_t> roots = {*rc::gen::inRange<int64_t>(1, 5),
                                        *rc::gen::inRange<int64_t>(1, 70)};
    for (auto *forecaster : {a.get(), b.get()}) {
      forecaster->onRequest(0, roots, now);
      forecaster->onUse(key, now);
    }
    for (KeyId k = 0; k < 4; ++k) {
      const FirstUse x = a->forecast(k, now), y = b->forecast(k, now);
      RC_ASSERT(x.hazard == y.hazard && x.dateMass == y.dateMass &&
                x.date == y.date && x.sigma == y.sigma &&
                x.lowerShare == y.lowerShare && x.useRate == y.useRate);
    }
  }
}

} // namespace
