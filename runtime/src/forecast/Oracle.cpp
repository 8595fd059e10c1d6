// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast/Forecaster.h"

#include <algorithm>

namespace pgkp::rt {

namespace {
constexpr double kHorizon = 600; ///< s over which known uses make a rate

class Oracle final : public Forecaster {
public:
  Oracle(std::shared_ptr<const Module> m, std::vector<FutureUse> uses,
         TimeNs start)
      : module(std::move(m)), future(std::move(uses)), start(start),
        dates(module->keys().size()), knownAt(module->keys().size()),
        next(module->keys().size()) {
    std::erase_if(
        future, [&](const FutureUse &use) { return use.key >= dates.size(); });
    std::stable_sort(
        future.begin(), future.end(),
        [](const FutureUse &a, const FutureUse &b) { return a.at < b.at; });
    for (const FutureUse &use : future) {
      if (dates[use.key].empty() && !module->isGeneric(use.key))
        list.push_back(use.key);
      dates[use.key].push_back(use.at);
      // A use is not known before those in front of it.
      auto &known = knownAt[use.key];
      known.push_back(known.empty() ? use.known
                                    : std::max(known.back(), use.known));
    }
  }

  void onRequest(uint32_t, std::span<const int64_t>, TimeNs) override {}
  void onAnnounce(uint32_t, std::span<const int64_t>, TimeNs, TimeNs) override {
  }
  void onPrepareHint(KeyId, double, double, TimeNs) override {}
  void onTick(TimeNs) override {}

  void onUse(KeyId key, TimeNs now, uint32_t) override {
    if (key >= dates.size())
      return;
    ++position;
    if (next[key] < dates[key].size())
      drift = now - start - dates[key][next[key]++];
  }

  FirstUse forecast(KeyId key, TimeNs now) const override {
    FirstUse use;
    if (key >= dates.size() || next[key] == dates[key].size() ||
        knownAt[key][next[key]] > now - start)
      return use;
    const auto &at = dates[key];
    const auto heard =
        at.begin() + (std::upper_bound(knownAt[key].begin(), knownAt[key].end(),
                                       now - start) -
                      knownAt[key].begin());
    const TimeNs offset = start + drift - now;
    const TimeNs first = at[next[key]] + offset;
    use = FirstUse::dated(1, std::max(0.0, toSeconds(first)), 0);
    use.provenance = schema::Provenance::user;
    // Uses after the first within the horizon, as a rate from the first on.
    const auto end =
        std::upper_bound(at.begin() + static_cast<ptrdiff_t>(next[key]), heard,
                         fromSeconds(kHorizon) - offset);
    const auto uses =
        static_cast<double>(end - at.begin()) - static_cast<double>(next[key]);
    use.useRate = std::max(0.0, uses - 1) / std::max(1e-3, kHorizon - use.date);
    return use;
  }

  KeyId nextKey(double *probability, uint32_t) const override {
    const bool known = position < future.size();
    if (probability)
      *probability = known ? 1 : 0;
    return known ? future[position].key : kNoKey;
  }

  void keys(std::vector<KeyId> &out) const override {
    out.insert(out.end(), list.begin(), list.end());
  }

private:
  const std::shared_ptr<const Module> module;
  std::vector<FutureUse> future; ///< by time
  const TimeNs start;
  std::vector<std::vector<TimeNs>> dates;   ///< by key, ascending
  std::vector<std::vector<TimeNs>> knownAt; ///< likewise
  std::vector<size_t> next;                 ///< by key: uses that have happened
  std::vector<KeyId> list;
  size_t position = 0;
  TimeNs drift = 0; ///< how much later than recorded things happen
};
} // namespace

std::unique_ptr<Forecaster> makeOracle(std::shared_ptr<const Module> module,
                                       std::vector<FutureUse> future,
                                       TimeNs start) {
  return std::make_unique<Oracle>(std::move(module), std::move(future), start);
}

} // namespace pgkp::rt
