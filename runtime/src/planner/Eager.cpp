// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What Triton and torch.compile do: the caller blocks at a miss, nothing runs
// ahead of it.
#include "planner/Policies.h"
#include "planner/Selection.h"

namespace pgkp::rt::planner {
namespace {
class Eager final : public Policy {
public:
  std::string_view name() const override { return "eager"; }
  bool blocksOnMiss() const override { return true; }
  bool speculates() const override { return false; }
  void plan(const PlanInput &input, std::vector<Decision> &out) override {
    const size_t first = out.size();
    const size_t eligible = judgeAll(
        input, out, [](const Candidate &candidate, Decision &decision) {
          decision.start = candidate.demanded;
          decision.reason = candidate.demanded ? "demanded" : "not demanded";
        });
    takeBest(input, out, first, eligible,
             demandedFirst(input, [](const Decision &, const Decision &) {
               return false;
             }));
  }
};
} // namespace

std::unique_ptr<Policy> makeEager() { return std::make_unique<Eager>(); }

} // namespace pgkp::rt::planner
