// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "schema/FirstUse.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

using namespace pgkp::rt;

namespace {

TEST(FirstUse, NothingIsSaidByDefault) {
  const FirstUse use;
  EXPECT_EQ(use.mass(), 0);
  EXPECT_EQ(use.cdf(1e9), 0);
  EXPECT_EQ(use.expectedUses(0, 600), 0);
  EXPECT_TRUE(use.valid());
}

TEST(FirstUse, WithinHoldsItsPoints) {
  const FirstUse use = FirstUse::within({0.1, 0.4, 0.7, 0.9});
  EXPECT_NEAR(use.cdf(1), 0.1, 1e-12);
  EXPECT_NEAR(use.cdf(10), 0.4, 1e-12);
  EXPECT_NEAR(use.cdf(60), 0.7, 1e-12);
  EXPECT_NEAR(use.cdf(600), 0.9, 1e-12);
  EXPECT_NEAR(use.cdf(1e5), 0.9, 1e-12);
  // Constant hazard in between: half of the way, the geometric mean survives.
  EXPECT_NEAR(use.cdf(35), 1 - std::sqrt(0.6 * 0.3), 1e-12);
  // What is no distribution is made one.
  EXPECT_NEAR(FirstUse::within({0.5, 0.2, 2, -1}).cdf(10), 0.5, 1e-12);
  EXPECT_TRUE(FirstUse::within({0.5, 0.2, 2, -1}).valid());
}

TEST(FirstUse, ExponentialIsExactWithinOneSecondsHazard) {
  const FirstUse use = FirstUse::exponential(1, 0.02);
  for (double x : {0.5, 1.0, 7.0, 30.0, 300.0})
    EXPECT_NEAR(use.cdf(x), 1 - std::exp(-0.02 * x), 1e-9);
}

TEST(FirstUse, TheEarlierOfTwoSourcesCounts) {
  FirstUse use = FirstUse::dated(0.5, 5, 0);
  use.hazard = FirstUse::within({0.2, 0.2, 0.2, 0.2}).hazard;
  EXPECT_NEAR(use.cdf(2), 0.2, 1e-12);
  EXPECT_NEAR(use.cdf(6), 1 - 0.8 * 0.5, 1e-12);
  EXPECT_NEAR(use.mass(), 0.6, 1e-12);
}

rc::Gen<FirstUse> genFirstUse() {
  return rc::gen::exec([] {
    std::array<double, FirstUse::kHorizons> p;
    for (double &x : p)
      x = *rc::gen::inRange(0, 1001) / 1000.0;
    FirstUse use = FirstUse::within(p);
    if (*rc::gen::arbitrary<bool>()) {
      use.dateMass = *rc::gen::inRange(0, 101) / 100.0;
      use.date = *rc::gen::inRange(0, 7000) / 10.0;
      use.sigma = *rc::gen::inRange(0, 50) / 10.0;
    }
    use.useRate = *rc::gen::inRange(0, 50) / 10.0;
    return use;
  });
}

RC_GTEST_PROP(FirstUseProperty, CdfIsOneAndItsIntegralsAreItsOwn, ()) {
  FirstUse use = *genFirstUse();
  RC_ASSERT(use.valid());
  double before = 0;
  for (double x = -1; x < 700; x += 3.7) {
    const double p = use.cdf(x);
    RC_ASSERT(p >= before && p <= 1);
    before = p;
  }
  use.sigma = 0; // the closed form's reading of a date
  const double from = *rc::gen::inRange(0, 100),
               to = from + *rc::gen::inRange(0, 700);
  const int steps = 20000;
  const double step = (to - from) / steps;
  double sum = 0;
  for (int i = 0; i < steps; ++i)
    sum += use.cdf(from + (i + 0.5) * step) * step;
  RC_ASSERT(std::abs(use.timeInUse(from, to) - sum) <= step + 1e-6);
}

RC_GTEST_PROP(FirstUseProperty, DensityIsTheDerivative, ()) {
  FirstUse use = *genFirstUse();
  use.sigma = std::max(use.sigma, 0.5);
  // Off the corners of the piecewise hazard.
  const double x = *rc::gen::element(0.3, 0.7, 4.0, 30.0, 200.0, 599.0);
  const double h = 1e-4;
  const double slope = (use.cdf(x + h) - use.cdf(x - h)) / (2 * h);
  RC_ASSERT(std::abs(use.density(x) - slope) <= 1e-5 + 1e-4 * slope);
}

} // namespace
