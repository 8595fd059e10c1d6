// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Generic variants only.
#include "planner/Policies.h"
#include "planner/Selection.h"

namespace pgkp::rt::planner {
namespace {
class Off final : public Policy {
public:
  std::string_view name() const override { return "off"; }
  bool blocksOnMiss() const override { return false; }
  bool speculates() const override { return false; }
  void plan(const PlanInput &input, std::vector<Decision> &out) override {
    judgeAll(input, out, [](const Candidate &, Decision &decision) {
      decision.reason = "off";
    });
  }
};
} // namespace

std::unique_ptr<Policy> makeOff() { return std::make_unique<Off>(); }

} // namespace pgkp::rt::planner
