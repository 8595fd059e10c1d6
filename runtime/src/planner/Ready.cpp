// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Everything is loaded at time 0: the bound that no order of work can pass. The
// replay loads; there is nothing left to plan.
#include "planner/Policies.h"
#include "planner/Selection.h"

namespace pgkp::rt::planner {
namespace {
class Ready final : public Policy {
public:
  std::string_view name() const override { return "ready"; }
  bool blocksOnMiss() const override { return false; }
  bool speculates() const override { return false; }
  void plan(const PlanInput &input, std::vector<Decision> &out) override {
    judgeAll(input, out, [](const Candidate &, Decision &decision) {
      decision.reason = "not worth it";
    });
  }
};
} // namespace

std::unique_ptr<Policy> makeReady() { return std::make_unique<Ready>(); }

} // namespace pgkp::rt::planner
