// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/Planner.h"
#include "planner/Worth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <set>

using namespace pgkp::rt;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

Candidate likely(KeyId key, double mass, double hazard, double work,
                 double stall, double delta = 0, double rate = 0) {
  Candidate c;
  c.key = key;
  c.use = FirstUse::exponential(mass, hazard);
  c.use.useRate = rate;
  c.remaining = c.cpu = work;
  c.stall = stall;
  c.delta = delta;
  return c;
}
Candidate dated(KeyId key, double date, double work, double stall) {
  Candidate c = likely(key, 0, 0, work, stall);
  c.use = FirstUse::dated(1, date, 0);
  return c;
}
Candidate missed(KeyId key, uint64_t misses, TimeNs since,
                 double delta = 1e-3) {
  Candidate c = likely(key, 1, 1, 1, 0, delta, static_cast<double>(misses));
  c.misses = misses;
  c.firstMiss = since;
  return c;
}

std::vector<Decision> plan(std::string_view policy, const PlanInput &input) {
  std::vector<Decision> out;
  makePolicy(policy)->plan(input, out);
  EXPECT_EQ(out.size(), input.candidates.size());
  return out;
}
std::vector<KeyId> started(std::string_view policy,
                           const std::vector<Candidate> &candidates,
                           PlanInput input = {}) {
  input.candidates = candidates;
  if (input.slots == 0)
    input.slots = 10;
  std::vector<KeyId> keys;
  for (const Decision &decision : plan(policy, input))
    if (decision.start)
      keys.push_back(decision.key);
  return keys;
}
std::string reasonOf(std::string_view policy, const Candidate &candidate,
                     PlanInput input = {}) {
  std::vector<Candidate> candidates{candidate};
  input.candidates = candidates;
  if (input.slots == 0)
    input.slots = 1;
  return plan(policy, input)[0].reason;
}

TEST(Policy, Names) {
  for (const std::string &name : policyNames(true)) {
    auto policy = makePolicy(name);
    ASSERT_NE(policy, nullptr);
    EXPECT_EQ(policy->name(), name);
    EXPECT_EQ(policy->blocksOnMiss(), name == "eager");
    EXPECT_EQ(policy->speculates(),
              name == "predictive" || name == "oracle" || name == "announced");
  }
  EXPECT_EQ(makePolicy("fifo"), nullptr);
}

TEST(Policy, OffStartsNothing) {
  auto c = missed(1, 5, 1);
  c.demanded = true;
  EXPECT_THAT(started("off", {c}), IsEmpty());
}

TEST(Policy, EagerStartsWhatACallerWaitsFor) {
  auto first = missed(3, 1, 10), second = missed(1, 9, 20);
  first.demanded = second.demanded = true;
  EXPECT_THAT(
      started("eager", {missed(2, 5, 1), second, first, likely(4, 1, 1, 1, 1)}),
      ElementsAre(3, 1));
}

TEST(Policy, LazyIsMostUsedFirstThenOldest) {
  auto demanded = missed(9, 1, 50);
  demanded.demanded = true;
  EXPECT_THAT(
      started("lazy", {missed(1, 2, 30), missed(2, 7, 40), missed(3, 2, 20),
                       demanded, likely(4, 1, 1, 1, 1)}),
      ElementsAre(9, 2, 3, 1));
  EXPECT_THAT(
      started("lazy", {missed(1, 2, 30), missed(2, 7, 40)}, {.slots = 1}),
      ElementsAre(2));
}

TEST(Policy, OnlyAbsentAndStoredKeysStart) {
  for (std::string_view policy : {"lazy", "predictive", "oracle"})
    for (auto [stage, reason] : std::map<KeyStage, const char *>{
             {KeyStage::queued, "under way"},
             {KeyStage::compiling, "under way"},
             {KeyStage::loading, "under way"},
             {KeyStage::ready, "ready"},
             {KeyStage::notWorth, "not worth it"}}) {
      auto c = missed(1, 100, 1);
      c.stage = stage;
      EXPECT_EQ(reasonOf(policy, c), reason) << policy;
    }
  auto c = missed(1, 100, 1);
  c.stage = KeyStage::failed;
  c.mayStart = false;
  EXPECT_EQ(reasonOf("lazy", c), "backed off");
  c.mayStart = true;
  EXPECT_THAT(started("lazy", {c}), ElementsAre(1));
  EXPECT_THAT(started("predictive", {c}), ElementsAre(1));
}

TEST(Worth, IndexIsTheFormulaAsTheDelayVanishes) {
  // Exponential first use: (S h exp(-h c)) / c with S = 2, h = 0.25, c = 1.5.
  const Candidate c = likely(0, 1, 0.25, 1.5, 2);
  EXPECT_NEAR(planner::index(c, 1e-6), 2 * 0.25 * std::exp(-0.25 * 1.5) / 1.5,
              1e-5);
  // With a fallback and in use: Smith's rule, r Delta / c.
  Candidate inUse = missed(0, 5, 1, 1e-2);
  inUse.remaining = 4;
  EXPECT_NEAR(planner::index(inUse, 0.5), 5 * 1e-2 / 4, 1e-12);
}

TEST(Worth, WithoutFallbackTheIndexPeaksWhereTheMeanFirstUseIsTheWork) {
  // S = c: h exp(-h c), largest at h = 1 / c.
  auto at = [](double hazard) {
    return planner::index(likely(0, 1, hazard, 2, 2), 1e-6);
  };
  EXPECT_GT(at(0.5), at(0.4));
  EXPECT_GT(at(0.5), at(0.6));
}

TEST(Worth, ExpectedUsesIsTheIntegral) {
  for (const Candidate &c :
       {likely(0, 0.7, 0.3, 1, 0, 0, 4), dated(0, 6, 1, 0)}) {
    double sum = 0;
    const double step = 1e-3;
    for (double x = 2; x < 12; x += step)
      sum += c.use.useRate * c.use.cdf(x + step / 2) * step;
    sum += c.use.cdf(12) - c.use.cdf(2);
    EXPECT_NEAR(planner::expectedUses(c, 2, 12), sum, 2e-2);
  }
}

TEST(Predictive, TheDateThatIsNearestToItsWorkGoesFirst) {
  // Work 2 s each. Key 1 is due in 3 s, key 2 in 60 s, key 3 in 1 s: lost
  // already.
  EXPECT_THAT(started("predictive", {dated(2, 60, 2, 5), dated(3, 1, 2, 5),
                                     dated(1, 3, 2, 5)}),
              ElementsAre(1, 2));
  EXPECT_EQ(reasonOf("predictive", dated(3, 1, 2, 5)), "below price");
}

TEST(Predictive, PastItsDateOnlyLaterUsesPay) {
  Candidate c = dated(1, 1, 2, 5);
  c.delta = 1e-2;
  c.use.useRate = 1;
  EXPECT_EQ(reasonOf("predictive", c), "likely");
  c.cpu = 500; // 500 s x 0.02 = 10 s > 0.01 s x 600 uses
  EXPECT_EQ(reasonOf("predictive", c), "below price");
}

TEST(Predictive, PriceAndLowerBoundDecideAdmission) {
  // Saves 5 s x 0.1 = 0.5 s at mass; costs 10 s x 0.02 = 0.2 s.
  Candidate c = likely(1, 0.1, 1, 0.001, 5);
  c.cpu = 10;
  EXPECT_EQ(reasonOf("predictive", c), "likely");
  EXPECT_EQ(reasonOf("predictive", c, {.cpuPrice = 0.06}), "below price");
  c.use.lowerShare = 0.2; // 0.1 s at the lower bound
  EXPECT_EQ(reasonOf("predictive", c), "below price");
  c.use = {};
  EXPECT_EQ(reasonOf("predictive", c), "no forecast");
}

TEST(Predictive, AMissIsNoForecast) {
  Candidate c = missed(1, 3, 1);
  c.use.lowerShare = 0;
  EXPECT_EQ(reasonOf("predictive", c), "missed");
  c.delta = 0;
  EXPECT_EQ(reasonOf("predictive", c), "below price");
}

TEST(Predictive, DemandGoesFirstWhateverItIsWorth) {
  Candidate c = likely(9, 0, 0, 1, 0);
  c.demanded = true;
  EXPECT_THAT(started("predictive", {likely(1, 1, 1, 1, 100), c}),
              ElementsAre(9, 1));
}

TEST(Predictive, CreditStopsSpeculationButNotMisses) {
  std::vector<Candidate> candidates;
  for (KeyId key = 0; key < 5; ++key)
    candidates.push_back(likely(key, 1, 0.5, 2, 50));
  candidates.push_back(missed(9, 1, 1));
  // 20 s allowed, 17 s owed: 19, 21, then no more; the miss, last by index,
  // still starts.
  EXPECT_THAT(started("predictive", candidates, {.outstandingCpu = 17}),
              ElementsAre(0, 1, 9));
  EXPECT_THAT(
      started("predictive", candidates, {.usedCpu = 2, .outstandingCpu = 17}),
      ElementsAre(0, 1, 2, 9));
  EXPECT_THAT(
      started("predictive", candidates, {.slots = 2, .outstandingCpu = 30}),
      ElementsAre(9));
}

TEST(Oracle, DeadlinesAllMetBeatTheIndex) {
  // One worker. By value per work key 1 leads, but both are met only in the
  // order of dates.
  auto order = started("oracle", {dated(1, 4, 1.5, 100), dated(2, 2, 1.9, 10)},
                       {.slots = 1});
  EXPECT_THAT(order, ElementsAre(2));
  // Only one can be met: the one that is worth more.
  order = started("oracle", {dated(1, 2, 1.5, 100), dated(2, 1.9, 1.8, 10)},
                  {.slots = 1});
  EXPECT_THAT(order, ElementsAre(1));
  EXPECT_EQ(reasonOf("oracle", likely(1, 0, 0, 1, 1)), "no use ahead");
}

TEST(Explain, OneLineOfTerms) {
  const Candidate c = dated(1, 3, 2, 5);
  std::vector<Candidate> candidates{c};
  PlanInput input{.slots = 1, .candidates = candidates};
  const std::string line = explain(plan("predictive", input)[0], c);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_THAT(line, testing::StartsWith("start, likely; index "));
  EXPECT_THAT(line, testing::HasSubstr("date 3 s"));
}

rc::Gen<double> genNumber() {
  return rc::gen::oneOf(
      rc::gen::map(rc::gen::inRange(-10, 1000), [](int x) { return x / 10.0; }),
      rc::gen::element(0.0, 1e300, -1e300, HUGE_VAL, -HUGE_VAL, std::nan("")));
}

/// Any candidate, numbers that are none included.
rc::Gen<Candidate> genCandidate() {
  return rc::gen::exec([] {
    Candidate c;
    c.key = *rc::gen::inRange<KeyId>(0, 50);
    c.stage = static_cast<KeyStage>(*rc::gen::inRange(0, 8));
    for (double *number : {&c.use.hazard[0], &c.use.hazard[1], &c.use.hazard[2],
                           &c.use.hazard[3], &c.use.dateMass, &c.use.date,
                           &c.use.sigma, &c.use.useRate, &c.use.lowerShare,
                           &c.remaining, &c.cpu, &c.stall, &c.delta})
      *number = *genNumber();
    c.misses = *rc::gen::inRange<uint64_t>(0, 4);
    c.firstMiss = *rc::gen::inRange<TimeNs>(0, 4);
    c.demanded = *rc::gen::inRange(0, 5) == 0;
    c.mayStart = *rc::gen::inRange(0, 5) != 0;
    return c;
  });
}

RC_GTEST_PROP(PolicyProperty, DeterministicCompleteAndWithinSlots, ()) {
  const auto candidates =
      *rc::gen::container<std::vector<Candidate>>(genCandidate());
  PlanInput input{.slots = *rc::gen::inRange(0u, 6u), .candidates = candidates};
  for (const std::string &name : policyNames(true)) {
    std::vector<Decision> out, again;
    makePolicy(name)->plan(input, out);
    auto policy = makePolicy(name);
    policy->plan(input, again);
    again.clear();
    policy->plan(input, again);
    RC_ASSERT(out.size() == candidates.size());
    RC_ASSERT(again.size() == out.size());
    std::set<uint32_t> seen;
    unsigned starts = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      RC_ASSERT(again[i].candidate == out[i].candidate &&
                again[i].start == out[i].start);
      RC_ASSERT(out[i].key == candidates[out[i].candidate].key);
      RC_ASSERT(*out[i].reason != 0);
      seen.insert(out[i].candidate);
      if (out[i].start) {
        RC_ASSERT(starts == i); // those that start come first
        ++starts;
        const Candidate &c = candidates[out[i].candidate];
        RC_ASSERT(c.mayStart);
        RC_ASSERT(c.stage == KeyStage::absent || c.stage == KeyStage::stored ||
                  c.stage == KeyStage::failed);
      }
    }
    RC_ASSERT(seen.size() == out.size());
    RC_ASSERT(starts <= input.slots);
  }
}

RC_GTEST_PROP(PolicyProperty, TheOrderOfCandidatesDoesNotMatter, ()) {
  auto candidates = *rc::gen::uniqueBy<std::vector<Candidate>>(
      genCandidate(), [](const Candidate &c) { return c.key; });
  for (const std::string &name : policyNames(true)) {
    PlanInput input{.slots = 3, .candidates = candidates};
    std::vector<KeyId> keys;
    std::vector<Decision> out;
    makePolicy(name)->plan(input, out);
    for (const Decision &decision : out)
      if (decision.start)
        keys.push_back(decision.key);
    std::reverse(candidates.begin(), candidates.end());
    input.candidates = candidates;
    RC_ASSERT(started(name, candidates, input) == keys);
  }
}

/// A small world: jobs take their time on `workers` workers, the forecasts are
/// anything at all, and a few keys are really used. Whatever the forecaster
/// says, what was wasted stays within B0 + theta D and one job per worker
/// (algorithms.md section 6c).
RC_GTEST_PROP(PolicyProperty, WasteBoundHoldsForAnyForecaster, ()) {
  constexpr KeyId kKeys = 40;
  const unsigned workers = *rc::gen::inRange(1u, 5u);
  const double free = *rc::gen::inRange(0, 30);
  const double trust = *rc::gen::inRange(0, 3);
  std::vector<double> cpu(kKeys);
  double largest = 0;
  for (double &seconds : cpu)
    largest = std::max(largest, seconds = *rc::gen::inRange(1, 80) / 10.0);

  auto policy = makePolicy("predictive");
  std::vector<bool> launched(kKeys), speculative(kKeys), used(kKeys);
  std::vector<double> done(kKeys, 1e30);
  double outstanding = 0, usedCpu = 0, spent = 0;
  for (int tick = 0; tick < 60; ++tick) {
    const double now = tick;
    if (*rc::gen::inRange(0, 4) == 0) { // a real use
      const KeyId key = *rc::gen::inRange<KeyId>(0, kKeys);
      if (!used[key]) {
        used[key] = true;
        usedCpu += cpu[key];
        if (launched[key] && speculative[key])
          outstanding -= cpu[key];
      }
    }
    unsigned running = 0;
    for (KeyId key = 0; key < kKeys; ++key)
      running += launched[key] && done[key] > now;
    std::vector<Candidate> candidates;
    for (KeyId key = 0; key < kKeys; ++key) {
      Candidate c = likely(key, *rc::gen::inRange(0, 11) / 10.0,
                           *rc::gen::inRange(0, 50) / 10.0, cpu[key], 1000, 10,
                           *rc::gen::inRange(0, 100));
      c.misses = used[key] && done[key] > now;
      c.stage = !launched[key]    ? KeyStage::absent
                : done[key] > now ? KeyStage::compiling
                                  : KeyStage::ready;
      candidates.push_back(c);
    }
    std::vector<Decision> out;
    policy->plan({.now = fromSeconds(now),
                  .slots = workers - running,
                  .usedCpu = usedCpu,
                  .outstandingCpu = outstanding,
                  .freeCpu = free,
                  .trust = trust,
                  .candidates = candidates},
                 out);
    for (const Decision &decision : out) {
      if (!decision.start)
        break;
      const KeyId key = decision.key;
      launched[key] = true;
      done[key] = now + cpu[key];
      spent += cpu[key];
      speculative[key] = decision.speculative;
      RC_ASSERT(decision.speculative == !used[key]);
      if (decision.speculative)
        outstanding += cpu[key];
    }
    double wasted = 0;
    for (KeyId key = 0; key < kKeys; ++key)
      if (launched[key] && !used[key])
        wasted += cpu[key];
    RC_ASSERT(wasted <= free + trust * usedCpu + workers * largest + 1e-9);
    RC_ASSERT(spent <= (1 + trust) * usedCpu + free + workers * largest + 1e-9);
  }
}

} // namespace
