// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Generic now, a job at the first miss, first come first served: what a plain
// job queue does.
#include "planner/Policies.h"
#include "planner/Selection.h"

namespace pgkp::rt::planner {
namespace {
class LazyFifo final : public Policy {
public:
  std::string_view name() const override { return "lazy-fifo"; }
  bool blocksOnMiss() const override { return false; }
  bool speculates() const override { return false; }
  void plan(const PlanInput &input, std::vector<Decision> &out) override {
    const size_t first = out.size();
    const size_t eligible = judgeAll(
        input, out, [](const Candidate &candidate, Decision &decision) {
          decision.start = candidate.demanded || candidate.misses > 0;
          decision.reason = candidate.demanded ? "demanded"
                            : decision.start   ? "missed"
                                               : "not missed";
        });
    takeBest(
        input, out, first, eligible,
        demandedFirst(input, [&input](const Decision &a, const Decision &b) {
          return input.candidates[a.candidate].firstMiss <
                 input.candidates[b.candidate].firstMiss;
        }));
  }
};
} // namespace

std::unique_ptr<Policy> makeLazyFifo() { return std::make_unique<LazyFifo>(); }

} // namespace pgkp::rt::planner
