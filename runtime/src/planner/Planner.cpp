// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/Planner.h"
#include "planner/Policies.h"

#include <array>
#include <fmt/format.h>

namespace pgkp::rt {

static constexpr std::array<std::string_view, 5> kNames = {
    "off", "eager", "lazy", "predictive", "oracle"};
static constexpr std::array<std::unique_ptr<Policy> (*)(), kNames.size()>
    kMakers = {planner::makeOff, planner::makeEager, planner::makeLazy,
               planner::makePredictive, planner::makeOracle};

std::unique_ptr<Policy> makePolicy(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name)
      return kMakers[i]();
  return nullptr;
}

std::span<const std::string_view> policyNames() { return kNames; }

std::string explain(const Decision &decision, const Candidate &candidate,
                    std::string_view name) {
  const FirstUse &use = candidate.use;
  std::string when =
      use.dated() ? fmt::format("date {:.3g} s +- {:.2g}", use.date, use.sigma)
                  : fmt::format("hazard {:.3g}/s", use.hazard);
  return fmt::format(
      "{}: {}, {}; index {:.3g}, value {:.3g} s, price {:.3g} s; mass {:.3g} "
      "(at least {:.3g}, {}), {}, rate {:.3g}/s; work {:.3g} s, stall {:.3g} "
      "s, "
      "{:.3g} s a use, {} misses",
      name, decision.start ? "start" : "not now", decision.reason,
      decision.index, decision.value, decision.price, use.mass, use.lower,
      schema::EnumNameProvenance(use.provenance), when, use.useRate,
      candidate.remaining, candidate.stall, candidate.delta, candidate.misses);
}

} // namespace pgkp::rt
