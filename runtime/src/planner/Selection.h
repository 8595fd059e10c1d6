// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What every policy does alike: who may start, and taking the best.
#pragma once

#include "planner/Planner.h"

#include <algorithm>

namespace pgkp::rt::planner {

/// Why this candidate cannot start whatever it is worth; null: it can.
inline const char *blocked(const Candidate &candidate) {
  switch (candidate.stage) {
  case KeyStage::queued:
  case KeyStage::compiling:
  case KeyStage::loading:
    return "under way";
  case KeyStage::ready:
    return "ready";
  case KeyStage::notWorth:
    return "not worth it";
  case KeyStage::failed:
    return candidate.mayStart ? nullptr : "backed off";
  case KeyStage::absent:
  case KeyStage::stored:
    break;
  }
  return candidate.mayStart ? nullptr : "backed off";
}

/// Orders by demand, then by the policy's own rule, then by key: never by
/// address or chance.
template <typename Before>
auto demandedFirst(const PlanInput &input, Before before) {
  return [&input, before](const Decision &a, const Decision &b) {
    if (a.demanded != b.demanded)
      return a.demanded;
    const Candidate &x = input.candidates[a.candidate];
    const Candidate &y = input.candidates[b.candidate];
    if (a.demanded && x.firstMiss != y.firstMiss)
      return x.firstMiss < y.firstMiss;
    if (!a.demanded) {
      if (before(a, b))
        return true;
      if (before(b, a))
        return false;
    }
    return a.key < b.key;
  };
}

/// Lazy's order: most used first, ties oldest.
inline bool lazyBefore(const Candidate &x, const Candidate &y) {
  return x.misses != y.misses ? x.misses > y.misses : x.firstMiss < y.firstMiss;
}

/// Appends `judge(candidate)`'s decision for each candidate and moves those
/// whose `start` it set to the front of what was appended. \returns how many
/// these are. `judge` is asked only about candidates that can start.
template <typename Judge>
size_t judgeAll(const PlanInput &input, std::vector<Decision> &out,
                Judge judge) {
  const size_t first = out.size();
  size_t eligible = 0;
  for (uint32_t i = 0; i < input.candidates.size(); ++i) {
    const Candidate &candidate = input.candidates[i];
    Decision decision{
        .key = candidate.key, .candidate = i, .demanded = candidate.demanded};
    if (const char *why = blocked(candidate))
      decision.reason = why;
    else
      judge(candidate, decision);
    out.push_back(decision);
    if (decision.start)
      std::swap(out[first + eligible++], out.back());
  }
  return eligible;
}

/// Keeps `start` for the best `input.slots` of the first `eligible` decisions
/// at `first`, in order. Linear in their number.
template <typename Before>
void takeBest(const PlanInput &input, std::vector<Decision> &out, size_t first,
              size_t eligible, Before before) {
  const size_t taken = std::min<size_t>(input.slots, eligible);
  auto begin = out.begin() + static_cast<ptrdiff_t>(first);
  std::partial_sort(begin, begin + static_cast<ptrdiff_t>(taken),
                    begin + static_cast<ptrdiff_t>(eligible), before);
  for (size_t i = taken; i < eligible; ++i) {
    out[first + i].start = false;
    out[first + i].reason = "no slot";
  }
}

} // namespace pgkp::rt::planner
