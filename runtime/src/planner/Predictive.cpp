// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expected benefit per cost, admitted at its price, within the waste bound
// (algorithms.md sections 6b and 6c).
#include "planner/Policies.h"
#include "planner/Selection.h"
#include "planner/Worth.h"

namespace pgkp::rt::planner {
namespace {
/// The margin by which value must exceed price.
constexpr double kMargin = 0.1;
/// A first use this likely to come before the work is done will be missed
/// anyway.
constexpr double kHopeless = 0.9;

class Predictive final : public Policy {
public:
  std::string_view name() const override { return "predictive"; }
  bool blocksOnMiss() const override { return false; }
  bool speculates() const override { return true; }

  void plan(const PlanInput &input, std::vector<Decision> &out) override {
    const double delay = typicalDelay(input);
    const size_t first = out.size();
    const size_t eligible = judgeAll(
        input, out, [&](const Candidate &candidate, Decision &decision) {
          judge(input, candidate, delay, decision);
        });
    auto before =
        demandedFirst(input, [&input](const Decision &a, const Decision &b) {
          const Candidate &x = input.candidates[a.candidate];
          const Candidate &y = input.candidates[b.candidate];
          if (input.restrained)
            return lazyBefore(x, y);
          if (a.index != b.index)
            return a.index > b.index;
          // No loss in sight for either: what is worth more per second of work,
          // then the sooner.
          const double density = a.value * std::max(y.remaining, 1e-6);
          const double other = b.value * std::max(x.remaining, 1e-6);
          return density != other ? density > other : x.use.date < y.use.date;
        });
    chargeSpeculation(input, out, first, eligible, before);
    giveWay(input, out, first);
  }

private:
  static void judge(const PlanInput &input, const Candidate &candidate,
                    double delay, Decision &decision) {
    if (!judgeTerms(input, candidate, delay, decision))
      return;
    decision.value = lowerValue(candidate, decision.value);
    if (candidate.demanded)
      return;
    if (input.restrained) {
      decision.start = !decision.speculative;
      decision.reason = decision.start ? "missed" : "restrained";
      return;
    }
    if (decision.speculative && candidate.use.mass() <= 0) {
      decision.reason = "no forecast";
      return;
    }
    // Ski rental: what has been lost on generic so far has paid for it,
    // whatever the forecast says (2-competitive, algorithms.md section 6c).
    const bool paid = !decision.speculative && candidate.regret > 0 &&
                      candidate.regret >= decision.price;
    if (!paid && decision.value <= (1 + kMargin) * decision.price) {
      decision.reason = "below price";
      return;
    }
    if (candidate.misses == 0 &&
        candidate.use.cdf(candidate.remaining) >= kHopeless &&
        !laterUsesPay(input, candidate, decision.price)) {
      decision.reason = "too late";
      return;
    }
    decision.start = true;
    decision.reason = decision.speculative ? "likely" : "missed";
  }

  /// Past its date a job can pay only by the uses that follow.
  static bool laterUsesPay(const PlanInput &input, const Candidate &candidate,
                           double price) {
    const double later =
        candidate.delta *
        expectedUses(candidate, candidate.remaining, input.horizon);
    return lowerValue(candidate, later) > (1 + kMargin) * price;
  }

  /// Takes the best; a speculative one only while what speculation owes is
  /// within B0 + theta D. Each start is charged at once, so that one plan
  /// overdraws by its last job at most.
  template <typename Before>
  static void chargeSpeculation(const PlanInput &input,
                                std::vector<Decision> &out, size_t first,
                                size_t eligible, Before before) {
    const double limit = input.freeCpu + input.trust * input.usedCpu;
    double owed = input.outstandingCpu;
    auto begin = out.begin() + static_cast<ptrdiff_t>(first);
    const auto end = begin + static_cast<ptrdiff_t>(eligible);
    auto taken =
        begin + static_cast<ptrdiff_t>(std::min<size_t>(input.slots, eligible));
    std::partial_sort(begin, taken, end, before);
    const auto broke =
        std::find_if(begin, taken, [&](const Decision &decision) {
          if (!decision.speculative)
            return false;
          if (!(owed <= limit))
            return true;
          owed += std::max(0.0, input.candidates[decision.candidate].cpu);
          return false;
        });
    if (broke != taken) {
      // Nothing speculative starts any more; the others move up.
      const auto left = input.slots - static_cast<size_t>(broke - begin);
      begin = broke;
      const auto rest =
          std::partition(begin, end, [](const Decision &decision) {
            return !decision.speculative;
          });
      for (auto it = rest; it != end; ++it)
        reject(*it, "out of credit");
      const size_t count =
          std::min<size_t>(left, static_cast<size_t>(rest - begin));
      taken = begin + static_cast<ptrdiff_t>(count);
      std::partial_sort(begin, taken, rest, before);
      for (auto it = taken; it != rest; ++it)
        reject(*it, "no slot");
      return;
    }
    for (auto it = taken; it != end; ++it)
      reject(*it, "no slot");
  }

  /// A speculative job gives its worker to what is needed now and found no
  /// slot: always to a caller that waits, else where the delay until the job
  /// ends costs more than starting the job again. So speculation never holds
  /// up what lazy would do for longer than it is worth.
  static void giveWay(const PlanInput &input, std::vector<Decision> &out,
                      size_t first) {
    Decision *victim = nullptr;
    const Decision *waiting = nullptr;
    double left = 0;
    for (size_t i = first; i < out.size(); ++i) {
      const Decision &decision = out[i];
      const Candidate &candidate = input.candidates[decision.candidate];
      if (candidate.speculated && !candidate.demanded &&
          candidate.misses == 0 && std::isfinite(candidate.remaining)) {
        // The one that has most to do.
        const double rest =
            std::max(0.0, candidate.remaining - candidate.elapsed);
        if (!victim || rest > left) {
          victim = &out[i];
          left = rest;
        }
      } else if (!decision.start && noSlot(decision) && !decision.speculative) {
        if (!waiting || (decision.demanded && !waiting->demanded) ||
            (decision.demanded == waiting->demanded &&
             decision.index > waiting->index))
          waiting = &decision;
      }
    }
    if (!victim || !waiting)
      return;
    if (!waiting->demanded) {
      const Candidate &late = input.candidates[waiting->candidate];
      const Candidate &early = input.candidates[victim->candidate];
      const double gain = expectedLoss(late, 0, left);
      const double cost =
          input.restrained
              ? 0
              : early.use.lowerShare *
                    expectedLoss(early, left,
                                 early.elapsed + left + late.remaining);
      if (!(gain > (1 + kMargin) * (cost + input.cpuPrice * early.elapsed)))
        return;
    }
    victim->cancel = true;
    victim->reason = "gives way";
  }
  static bool noSlot(const Decision &decision) {
    return std::string_view(decision.reason) == "no slot";
  }

  static void reject(Decision &decision, const char *reason) {
    decision.start = false;
    decision.reason = reason;
  }
};
} // namespace

std::unique_ptr<Policy> makePredictive() {
  return std::make_unique<Predictive>();
}

} // namespace pgkp::rt::planner
