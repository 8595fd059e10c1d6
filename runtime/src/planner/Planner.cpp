// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/Planner.h"
#include "planner/Policies.h"

#include <array>
#include <fmt/format.h>

namespace pgkp::rt {

namespace {
struct Row : PolicyInfo {
  std::unique_ptr<Policy> (*make)();
};
constexpr std::array kRows = {
    Row{{"off", "generic variants only", false}, planner::makeOff},
    Row{{"eager", "the caller waits for the variant; nothing runs ahead",
         false},
        planner::makeEager},
    Row{{"lazy-fifo", "generic now, a job at the first miss, oldest first",
         false},
        planner::makeLazyFifo},
    Row{{"lazy", "generic now, a job at the first miss, most used first",
         false},
        planner::makeLazy},
    Row{{"profile", "keys of earlier runs in the order of their first use",
         false},
        planner::makeProfileForward},
    Row{{"profile-reversed",
         "the same in batches, each back to front (.NET multicore JIT)", false},
        planner::makeProfileReversed},
    Row{{"lattice", "every class of the module, in the module's order", false},
        planner::makeLattice},
    Row{{"cycle",
         "what a repeat or the shortest cycle says comes next, where "
         "confidence "
         "x miss cost exceeds the compile cost (vyre-driver)",
         false},
        planner::makeCycle},
    Row{{"markov", "the likeliest successors of the last key", false},
        planner::makeMarkov},
    Row{{"predictive",
         "forecasts, prices and deadlines: the product's own policy", false},
        planner::makePredictive},
    Row{{"oracle", "the future is known (recorded in a first pass)", false},
        planner::makeOracle},
    Row{{"announced", "the future is known as far as it is announced", true},
        planner::makeAnnounced},
    Row{{"ready", "every variant is loaded at time 0, at no cost", true},
        planner::makeReady}};
constexpr auto kInfos = [] {
  std::array<PolicyInfo, kRows.size()> infos{};
  for (size_t i = 0; i < kRows.size(); ++i)
    infos[i] = kRows[i];
  return infos;
}();
} // namespace

std::unique_ptr<Policy> makePolicy(std::string_view name) {
  for (const Row &row : kRows)
    if (row.name == name)
      return row.make();
  return nullptr;
}

std::span<const PolicyInfo> policies() { return kInfos; }

std::vector<std::string> policyNames(bool replay) {
  std::vector<std::string> names;
  for (const PolicyInfo &info : kInfos)
    if (replay || !info.replayOnly)
      names.emplace_back(info.name);
  return names;
}

std::string explain(const Decision &decision, const Candidate &candidate) {
  const FirstUse &use = candidate.use;
  std::string when =
      use.dated() ? fmt::format("date {:.3g} s +- {:.2g}", use.date, use.sigma)
                  : fmt::format("F(10 s) {:.3g}", use.cdf(10));
  return fmt::format(
      "{}, {}; index {:.3g}, value {:.3g} s, price {:.3g} s; mass {:.3g} "
      "(at least {:.3g}, {}), {}, rate {:.3g}/s; work {:.3g} s, stall {:.3g} "
      "s, "
      "{:.3g} s a use, {} misses, {:.3g} s lost so far",
      decision.start    ? "start"
      : decision.cancel ? "stop"
                        : "not now",
      decision.reason, decision.index, decision.value, decision.price,
      use.mass(), use.lower(), schema::EnumNameProvenance(use.provenance), when,
      use.useRate, candidate.remaining, candidate.stall, candidate.delta,
      candidate.misses, candidate.regret);
}

} // namespace pgkp::rt
