// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The future is known (forecasts are exact dates): each plan takes the better
// of earliest deadline first and the index, by what either would lose on the
// free slots.
#include "planner/Policies.h"
#include "planner/Selection.h"
#include "planner/Worth.h"

#include <array>

namespace pgkp::rt::planner {
namespace {
/// Machines that the comparison models; with more free slots the orders hardly
/// differ.
constexpr size_t kMaxMachines = 64;

class Oracle final : public Policy {
public:
  explicit Oracle(std::string_view name) : title(name) {}
  std::string_view name() const override { return title; }
  bool blocksOnMiss() const override { return false; }
  bool speculates() const override { return true; }

  void plan(const PlanInput &input, std::vector<Decision> &out) override {
    const double delay = typicalDelay(input);
    const size_t first = out.size();
    const size_t eligible = judgeAll(
        input, out, [&](const Candidate &candidate, Decision &decision) {
          if (!judgeTerms(input, candidate, delay, decision) ||
              candidate.demanded)
            return;
          decision.reason = "no use ahead";
          if (candidate.use.mass() > 0) {
            // What comes too late to save anything would only be in the way.
            decision.start = decision.value > 0;
            decision.reason = decision.start ? "known use" : "too late";
          }
        });

    auto byIndex =
        demandedFirst(input, [&input](const Decision &a, const Decision &b) {
          return a.index != b.index ? a.index > b.index : earlier(input, a, b);
        });
    auto byDeadline =
        demandedFirst(input, [&input](const Decision &a, const Decision &b) {
          return earlier(input, a, b) ||
                 (!earlier(input, b, a) && a.index > b.index);
        });
    auto begin = out.begin() + static_cast<ptrdiff_t>(first);
    auto end = begin + static_cast<ptrdiff_t>(eligible);
    std::sort(begin, end, byIndex);
    const double indexLoses = lossOf(input, begin, end);
    std::sort(begin, end, byDeadline);
    if (lossOf(input, begin, end) <= indexLoses)
      takeBest(input, out, first, eligible, byDeadline);
    else
      takeBest(input, out, first, eligible, byIndex);
  }

private:
  const std::string_view title;

  static double date(const PlanInput &input, const Decision &decision) {
    const FirstUse &use = input.candidates[decision.candidate].use;
    return use.dated() ? use.date : input.horizon;
  }
  static bool earlier(const PlanInput &input, const Decision &a,
                      const Decision &b) {
    return date(input, a) < date(input, b);
  }

  /// Lost seconds if the jobs run in this order, each on the machine that is
  /// free first.
  template <typename It>
  static double lossOf(const PlanInput &input, It begin, It end) {
    std::array<double, kMaxMachines> freeAt{};
    const size_t machines = std::clamp<size_t>(input.slots, 1, kMaxMachines);
    double loss = 0;
    for (It it = begin; it != end; ++it) {
      const Candidate &candidate = input.candidates[it->candidate];
      auto machine =
          std::min_element(freeAt.begin(), freeAt.begin() + machines);
      *machine += std::max(0.0, candidate.remaining);
      loss += expectedLoss(candidate, 0, std::min(*machine, input.horizon));
    }
    return loss;
  }
};
} // namespace

std::unique_ptr<Policy> makeOracle() {
  return std::make_unique<Oracle>("oracle");
}

// The same, fed with forecasts that end where the announcements do.
std::unique_ptr<Policy> makeAnnounced() {
  return std::make_unique<Oracle>("announced");
}

} // namespace pgkp::rt::planner
