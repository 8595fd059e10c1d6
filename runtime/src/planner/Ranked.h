// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Policies that differ from lazy by one number: what they expect of a
/// key.
#pragma once

#include "planner/Policies.h"
#include "planner/Selection.h"

#include <optional>

namespace pgkp::rt::planner {

/// What has missed goes first, most used first, as under lazy; then whatever
/// the policy expects, in its order.
class RankedPolicy : public Policy {
public:
  bool blocksOnMiss() const final { return false; }
  bool speculates() const final { return false; }

  void plan(const PlanInput &input, std::vector<Decision> &out) final {
    const size_t first = out.size();
    const size_t eligible = judgeAll(
        input, out, [this](const Candidate &candidate, Decision &decision) {
          const std::optional<double> expected = expectation(candidate);
          decision.speculative = candidate.misses == 0 && !candidate.demanded;
          decision.start = !decision.speculative || expected;
          decision.index = expected.value_or(0);
          decision.reason = candidate.demanded      ? "demanded"
                            : !decision.speculative ? "missed"
                            : decision.start        ? "expected"
                                                    : "not expected";
        });
    takeBest(input, out, first, eligible,
             demandedFirst(input, [&](const Decision &a, const Decision &b) {
               const Candidate &x = input.candidates[a.candidate];
               const Candidate &y = input.candidates[b.candidate];
               if (expectationFirst() && a.index != b.index)
                 return a.index > b.index;
               if (x.misses != y.misses)
                 return x.misses > y.misses;
               return x.misses > 0 ? x.firstMiss < y.firstMiss
                                   : a.index > b.index;
             }));
  }

protected:
  /// Larger goes first; nothing: the key is not prepared before it is used.
  virtual std::optional<double> expectation(const Candidate &candidate) = 0;
  /// The expectation also orders keys that have missed.
  virtual bool expectationFirst() const { return false; }
};

/// Plays a list of keys.
class Playback : public RankedPolicy {
public:
  void keys(std::vector<KeyId> &out) const final {
    out.insert(out.end(), order.begin(), order.end());
  }

protected:
  void play(std::vector<KeyId> list, size_t numKeys) {
    order = std::move(list);
    place.assign(numKeys, 0);
    for (size_t i = 0; i < order.size(); ++i)
      place[order[i]] = order.size() - i;
  }
  std::optional<double> expectation(const Candidate &candidate) final {
    if (candidate.key >= place.size() || place[candidate.key] == 0)
      return std::nullopt;
    return static_cast<double>(place[candidate.key]);
  }

private:
  std::vector<KeyId> order;
  std::vector<size_t> place; ///< by key: from the end, 0: not in the list
};

/// The profile's keys that the module has, in the order of their first use;
/// none of another module's.
std::vector<KeyId> profileOrder(const Module &module,
                                const schema::ProfileT *profile);

} // namespace pgkp::rt::planner
