// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Series.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cmath>

namespace pgkp::rt {

namespace {
constexpr size_t kLostBins = 240, kCalibrationBins = 20;
constexpr TimeNs kHorizon = 10 * kNsPerSecond;

struct KeyState {
  Series::Key key;
  bool generic = false;
  double share = 1; ///< variant time over generic time
  size_t order = 0;
  std::vector<TimeNs> uses;
};
using States = boost::unordered_flat_map<uint32_t, KeyState>;

States collect(const std::vector<Event> &events) {
  States states;
  const auto state = [&](const Event &event) -> KeyState & {
    auto [it, added] = states.try_emplace(event.key);
    if (added)
      it->second.order = states.size();
    return it->second;
  };
  for (const Event &event : events) {
    const double t = toSeconds(event.t);
    switch (event.kind) {
    case EventKind::keyInfo:
      state(event).key.name = event.text;
      state(event).generic = event.a == 1;
      break;
    case EventKind::tune:
      if (event.value2 > 0)
        state(event).share = std::min(1.0, event.value3 / event.value2);
      break;
    case EventKind::jobStart:
      state(event).key.jobStart = t;
      state(event).key.speculative = event.a == 1;
      break;
    case EventKind::jobEnd:
      state(event).key.cpu += event.value;
      break;
    case EventKind::ready:
      state(event).key.ready = t;
      break;
    case EventKind::dispatch: {
      KeyState &used = state(event);
      if (used.key.uses++ == 0)
        used.key.firstUse = t;
      used.uses.push_back(event.t);
      break;
    }
    default:
      break;
    }
  }
  return states;
}

double lostBy(const Event &dispatch, const KeyState &state) {
  double lost = std::max(0.0, dispatch.value2);
  const bool generic =
      dispatch.a == static_cast<int64_t>(DispatchReason::generic);
  if (generic && !state.generic)
    lost += std::max(0.0, dispatch.value3) * (1 - state.share);
  return lost;
}
} // namespace

Series makeSeries(const std::vector<Event> &events) {
  Series series;
  States states = collect(events);
  TimeNs end = 1;
  for (const Event &event : events)
    end = std::max(end, event.t);
  series.end = toSeconds(end);
  series.binSeconds = series.end / kLostBins;
  series.lost.assign(kLostBins, 0);
  series.calibration.assign(kCalibrationBins, {});
  for (auto &[key, state] : states)
    std::sort(state.uses.begin(), state.uses.end());
  for (const Event &event : events) {
    if (event.kind == EventKind::dispatch) {
      const auto bin =
          static_cast<size_t>(toSeconds(event.t) / series.binSeconds);
      series.lost[std::min(bin, kLostBins - 1)] +=
          lostBy(event, states[event.key]);
    } else if (event.kind == EventKind::forecast && event.t + kHorizon <= end &&
               event.value2 >= 0 && event.value2 <= 1) {
      const auto &uses = states[event.key].uses;
      const auto next = std::upper_bound(uses.begin(), uses.end(), event.t);
      auto &bin = series.calibration[std::min(
          static_cast<size_t>(event.value2 * kCalibrationBins),
          kCalibrationBins - 1)];
      bin.forecast += event.value2;
      ++bin.total;
      bin.used += next != uses.end() && *next <= event.t + kHorizon;
    }
  }
  for (size_t i = 1; i < kLostBins; ++i)
    series.lost[i] += series.lost[i - 1];
  std::vector<const KeyState *> order;
  for (const auto &[key, state] : states)
    if (!state.generic && (state.key.uses > 0 || state.key.jobStart >= 0))
      order.push_back(&state);
  std::sort(order.begin(), order.end(),
            [](const auto *a, const auto *b) { return a->order < b->order; });
  for (const KeyState *state : order)
    series.keys.push_back(state->key);
  return series;
}

} // namespace pgkp::rt
