// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The terms of the objective (algorithms.md section 6b) for one
/// candidate.
#pragma once

#include "planner/Planner.h"

#include <algorithm>
#include <cmath>

namespace pgkp::rt::planner {

/// False: some number of it is infinite or none at all, and no order could hold
/// it.
inline bool finite(const Candidate &candidate) {
  return candidate.use.valid() &&
         std::isfinite(candidate.remaining + candidate.cpu + candidate.stall +
                       candidate.delta);
}

/// Expected uses within (from, to] s. A key that has missed already is in use:
/// its rate counts from now.
inline double expectedUses(const Candidate &candidate, double from, double to) {
  if (to <= from)
    return 0;
  const FirstUse &use = candidate.use;
  if (candidate.misses > 0)
    return use.useRate * (to - from);
  return use.expectedUses(from, to);
}

/// S_k (F(to) - F(from)) + Delta_k E[N_k(from, to)]: what is lost in (from, to]
/// if the variant is not there.
inline double expectedLoss(const Candidate &candidate, double from, double to) {
  return candidate.stall * (candidate.use.cdf(to) - candidate.use.cdf(from)) +
         candidate.delta * expectedUses(candidate, from, to);
}

/// I_k: the loss that `delay` seconds of waiting behind another job add, per
/// second of delay and per second of own work. With delay -> 0 this is the
/// index of section 6b, (S f(c) + r Delta) / c. The finite delay is that of the
/// job it would wait for: a dated forecast is a spike that the derivative sees
/// only at the very moment when it is too late.
inline double index(const Candidate &candidate, double delay) {
  const double work = std::max(candidate.remaining, 1e-6);
  const double step = std::max(delay, 1e-6);
  const double result =
      expectedLoss(candidate, work, work + step) / (step * work);
  return std::isfinite(result) ? result : 0;
}

/// V_k: what is saved if the work starts now and no slot is waited for.
inline double value(const Candidate &candidate, double horizon) {
  const double result =
      expectedLoss(candidate, std::max(candidate.remaining, 0.0), horizon);
  return std::isfinite(result) ? result : 0;
}

/// V_k with F at its lower confidence bound: every term of the loss is a
/// multiple of it. A miss that has happened is no forecast.
inline double lowerValue(const Candidate &candidate, double value) {
  return candidate.misses > 0 ? value : value * candidate.use.lowerShare;
}

/// The mean work of those that could start: the delay that one place in the
/// order costs.
inline double typicalDelay(const PlanInput &input) {
  double sum = 0;
  size_t count = 0;
  for (const Candidate &candidate : input.candidates)
    if (candidate.stage <= KeyStage::stored && candidate.remaining > 0 &&
        candidate.remaining < 1e6) {
      sum += candidate.remaining;
      ++count;
    }
  return count ? sum / static_cast<double>(count) : 1e-3;
}

/// The beginning of every policy that goes by forecasts: index, value at the
/// mean, and price of one candidate. \returns false where some number is none,
/// and the decision is made: only a caller that waits is served.
inline bool judgeTerms(const PlanInput &input, const Candidate &candidate,
                       double delay, Decision &decision) {
  decision.speculative = candidate.misses == 0 && !candidate.demanded;
  decision.start = candidate.demanded;
  decision.reason = candidate.demanded ? "demanded" : "not a number";
  if (!finite(candidate))
    return false;
  decision.index = index(candidate, delay);
  decision.value = value(candidate, input.horizon);
  decision.price = input.cpuPrice * std::max(candidate.cpu, 0.0);
  return true;
}

} // namespace pgkp::rt::planner
