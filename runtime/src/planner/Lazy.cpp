// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What TensorRT-RTX documents: generic now, a job at the first miss, most used
// first, ties oldest. The baseline to beat.
#include "planner/Policies.h"
#include "planner/Selection.h"

namespace pgkp::rt::planner {
namespace {
class Lazy final : public Policy {
public:
  std::string_view name() const override { return "lazy"; }
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
          decision.index = static_cast<double>(candidate.misses);
        });
    takeBest(
        input, out, first, eligible,
        demandedFirst(input, [&input](const Decision &a, const Decision &b) {
          return lazyBefore(input.candidates[a.candidate],
                            input.candidates[b.candidate]);
        }));
  }
};
} // namespace

std::unique_ptr<Policy> makeLazy() { return std::make_unique<Lazy>(); }

} // namespace pgkp::rt::planner
