// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every number of design section 6, each in one function over the sorted log.
#include "metrics/Event.h"
#include "metrics/Percentile.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace pgkp::rt {

using Json = nlohmann::ordered_json;
template <typename K, typename V> using Map = boost::unordered_flat_map<K, V>;
template <typename K> using Set = boost::unordered_flat_set<K>;

/// The horizon of prediction.ece, and its number of bins.
static constexpr size_t kEceBins = 20;
/// Waiting ends a little after the publication that ended it; logs hold seconds
/// as doubles.
static constexpr TimeNs kWaitSlack = kNsPerUs;

static TimeNs addSaturating(TimeNs t, TimeNs delta) {
  TimeNs sum;
  return __builtin_add_overflow(t, delta, &sum)
             ? (delta < 0 ? -kForever : kForever)
             : sum;
}

/// Seconds to nanoseconds for values that a log may hold, sane or not.
static TimeNs clampedNs(double seconds) {
  if (!(std::abs(seconds) < 9e9))
    return seconds > 0 ? kForever : 0;
  return fromSeconds(seconds);
}

static double secondsBetween(TimeNs from, TimeNs to) {
  return (static_cast<double>(to) - static_cast<double>(from)) * 1e-9;
}

static Json ratio(size_t part, size_t whole) {
  if (whole == 0)
    return nullptr;
  return static_cast<double>(part) / static_cast<double>(whole);
}

static Json orNull(std::optional<double> value) {
  if (!value || !std::isfinite(*value))
    return nullptr;
  return *value;
}

/// {"p50", "p99", "max"} of samples times `unit`.
static Json percentiles(std::vector<double> samples, double unit) {
  Json out;
  std::sort(samples.begin(), samples.end());
  auto at = [&](double percent) {
    return samples.empty() ? Json(nullptr)
                           : Json(nearestRank(samples, percent) * unit);
  };
  out["p50"] = at(50);
  out["p99"] = at(99);
  out["max"] = at(100);
  return out;
}

namespace {
class Computation {
public:
  Computation(const RunInfo &info, const std::vector<Event> &events);
  Json run() const;

private:
  struct KeyState {
    bool generic = false;
    const Event *firstUse = nullptr;
    std::vector<TimeNs> uses;   ///< ascending
    TimeNs notWorth = kForever; ///< when it became known
    std::vector<std::pair<TimeNs, uint64_t>>
        made; ///< publications: time, job (0: no job)
    std::vector<std::pair<TimeNs, double>>
        tuned;       ///< time, variant time / generic time
    double best = 1; ///< least of `tuned` and 1
  };

  const KeyState *find(uint32_t key) const {
    auto it = keys.find(key);
    return it == keys.end() ? nullptr : &it->second;
  }
  /// Keys that preparation can do something for: with facts, so not generic.
  bool preparable(uint32_t key) const {
    const KeyState *state = find(key);
    return !state || !state->generic;
  }
  bool knownNotWorth(uint32_t key, TimeNs t) const {
    const KeyState *state = find(key);
    return state && state->notWorth <= t;
  }
  static bool ranVariant(const Event &dispatch) {
    return dispatch.a != static_cast<int64_t>(DispatchReason::generic);
  }
  static uint32_t ranKey(const Event &dispatch) {
    return dispatch.ran == ~0u ? dispatch.key : dispatch.ran;
  }

  Json nextAccuracy() const;
  Json firstUseRecall() const;
  class Score;
  Json calibration(Json &ece) const;
  Json preparation() const;
  Json lost() const;
  Json compile() const;
  Json load() const;
  Json foregroundSlowdown() const;
  std::optional<double> coldStartMs() const;
  std::optional<double> completionSeconds() const;
  size_t lateFirstUses() const;

  size_t count(EventKind kind) const { return of(kind).size(); }
  const std::vector<const Event *> &of(EventKind kind) const {
    return byKind[static_cast<size_t>(kind)];
  }

  const RunInfo &info;
  std::vector<const Event *>
      byKind[kNumEventKinds];     ///< by time, then as logged
  std::vector<const Event *> all; ///< the same order
  Map<uint32_t, KeyState> keys;
  TimeNs start = 0, end = 0;
};
} // namespace

Computation::Computation(const RunInfo &info, const std::vector<Event> &events)
    : info(info) {
  all.reserve(events.size());
  for (const Event &event : events)
    if (static_cast<size_t>(event.kind) < kNumEventKinds)
      all.push_back(&event);
  std::stable_sort(all.begin(), all.end(),
                   [](const Event *a, const Event *b) { return a->t < b->t; });
  Map<uint32_t, uint64_t> lastJob;
  for (const Event *event : all) {
    byKind[static_cast<size_t>(event->kind)].push_back(event);
    switch (event->kind) {
    case EventKind::keyInfo:
      keys[event->key].generic = event->a == 1;
      break;
    case EventKind::dispatch: {
      KeyState &key = keys[event->key];
      if (!key.firstUse)
        key.firstUse = event;
      key.uses.push_back(event->t);
      break;
    }
    case EventKind::notWorth:
      keys[event->key].notWorth = std::min(keys[event->key].notWorth, event->t);
      break;
    case EventKind::jobEnd:
      if (event->a == 0)
        lastJob[event->key] = event->id;
      break;
    case EventKind::storeHit:
      lastJob.erase(event->key);
      break;
    case EventKind::ready: {
      uint64_t job = event->id;
      if (auto it = lastJob.find(event->key); job == 0 && it != lastJob.end())
        job = it->second;
      keys[event->key].made.emplace_back(event->t, job);
      break;
    }
    case EventKind::tune: {
      const double share = event->value3 / event->value2;
      if (event->value2 > 0 && event->value3 > 0 && std::isfinite(share)) {
        KeyState &key = keys[event->key];
        key.tuned.emplace_back(event->t, share);
        key.best = std::min(key.best, share);
      }
      break;
    }
    default:
      break;
    }
  }
  if (!all.empty())
    end = all.back()->t;
  if (!of(EventKind::engineEnd).empty())
    end = of(EventKind::engineEnd).back()->t;
  if (!of(EventKind::engineStart).empty())
    start = of(EventKind::engineStart).front()->t;
}

/// prediction.next_accuracy. A prediction names its dispatch by number, so it
/// does not matter when the log got it; of several for one dispatch the last
/// counts.
Json Computation::nextAccuracy() const {
  Map<uint32_t, Map<uint64_t, uint32_t>> predicted; // stream -> number -> key
  for (const Event *event : of(EventKind::nextKey))
    predicted[event->stream][event->id] = event->key;
  Map<uint32_t, uint64_t> seen;
  size_t right = 0, asked = 0;
  for (const Event *dispatch : of(EventKind::dispatch)) {
    const uint64_t number = seen[dispatch->stream]++;
    if (number == 0)
      continue;
    ++asked;
    const auto &stream = predicted[dispatch->stream];
    auto it = stream.find(number);
    right +=
        it != stream.end() && it->second != ~0u && it->second == dispatch->key;
  }
  // A run whose forecaster names no next key has no accuracy.
  return predicted.empty() || count(EventKind::nextKey) == 0
             ? Json(nullptr)
             : ratio(right, asked);
}

/// prediction.first_use_recall: x is the planning horizon.
Json Computation::firstUseRecall() const {
  Map<uint32_t, bool> foreseen; // by key, forecasts that came in time only
  for (const Event *forecast : of(EventKind::forecast)) {
    const KeyState *key = find(forecast->key);
    if (!key || !key->firstUse || !(forecast->value >= 0.5))
      continue;
    const TimeNs needed = clampedNs(std::max(forecast->value3, 0.0));
    if (forecast->t < key->firstUse->t &&
        addSaturating(forecast->t, needed) <= key->firstUse->t)
      foreseen[forecast->key] = true;
  }
  size_t hits = 0, total = 0;
  for (const auto &[key, state] : keys) {
    if (!state.firstUse || state.generic)
      continue;
    ++total;
    hits += foreseen.contains(key);
  }
  return count(EventKind::forecast) == 0 ? Json(nullptr) : ratio(hits, total);
}

/// How good the forecasts of one horizon were.
class Computation::Score {
public:
  void add(double forecast, bool used) {
    Bin &bin =
        bins[std::min(static_cast<size_t>(forecast * kEceBins), kEceBins - 1)];
    bin.forecast += forecast;
    bin.used += used;
    ++total;
    squares += (forecast - used) * (forecast - used);
  }
  /// Sum over bins of share * |mean forecast - share that came true|.
  Json ece() const {
    if (total == 0)
      return nullptr;
    double error = 0;
    for (const Bin &bin : bins)
      error += std::abs(bin.forecast - static_cast<double>(bin.used));
    return error / static_cast<double>(total);
  }
  Json json() const {
    Json out;
    const auto n = static_cast<double>(total);
    size_t used = 0;
    for (const Bin &bin : bins)
      used += bin.used;
    const double base = total ? static_cast<double>(used) / n : 0;
    out["forecasts"] = total;
    out["base_rate"] = ratio(used, total);
    out["brier"] = total ? Json(squares / n) : Json(nullptr);
    // Of the constant forecast that knows the base rate.
    out["base_brier"] = total ? Json(base * (1 - base)) : Json(nullptr);
    out["ece"] = ece();
    return out;
  }

private:
  struct Bin {
    double forecast = 0;
    size_t used = 0;
  } bins[kEceBins];
  size_t total = 0;
  double squares = 0;
};

/// prediction.horizons and, of the horizon of 10 s, prediction.ece.
Json Computation::calibration(Json &ece) const {
  struct Horizon {
    int seconds;
    double Event::*forecast;
  };
  static constexpr Horizon kHorizons[] = {{1, &Event::value4},
                                          {10, &Event::value2},
                                          {60, &Event::value5},
                                          {600, &Event::value}};
  Json out = Json::array();
  for (const Horizon &horizon : kHorizons) {
    Score all, inUse;
    for (const Event *forecast : of(EventKind::forecast)) {
      const TimeNs until =
          addSaturating(forecast->t, horizon.seconds * kNsPerSecond);
      const double p = forecast->*horizon.forecast;
      if (until > end || !(p >= 0 && p <= 1))
        continue;
      bool used = false, before = false;
      if (const KeyState *key = find(forecast->key)) {
        auto next =
            std::upper_bound(key->uses.begin(), key->uses.end(), forecast->t);
        used = next != key->uses.end() && *next <= until;
        before = next != key->uses.begin();
      }
      all.add(p, used);
      if (before)
        inUse.add(p, used);
    }
    Json row = all.json();
    row["horizon_s"] = horizon.seconds;
    row["in_use"] = inUse.json();
    out.push_back(std::move(row));
    if (horizon.seconds == 10)
      ece = all.ece();
  }
  return count(EventKind::forecast) == 0 ? Json(nullptr) : out;
}

/// First uses while a speculative job was queued, running, or done but not yet
/// loaded.
size_t Computation::lateFirstUses() const {
  struct Pending {
    Set<uint64_t> jobs; ///< queued or running
    bool unloaded = false;
  };
  Map<uint32_t, Pending> pending;
  Set<uint64_t> speculative;
  size_t late = 0;
  for (const Event *event : all) {
    switch (event->kind) {
    case EventKind::jobQueued:
    case EventKind::jobStart:
      if (event->a == 1) {
        speculative.insert(event->id);
        pending[event->key].jobs.insert(event->id);
      }
      break;
    case EventKind::jobEnd:
      if (pending[event->key].jobs.erase(event->id) && event->a == 0)
        pending[event->key].unloaded = true;
      break;
    case EventKind::ready:
    case EventKind::notWorth:
    case EventKind::failed:
      pending[event->key].unloaded = false;
      break;
    case EventKind::dispatch: {
      const KeyState *key = find(event->key);
      if (key->firstUse != event || event->b == 1)
        break;
      auto it = pending.find(event->key);
      late += it != pending.end() &&
              (it->second.unloaded || !it->second.jobs.empty());
      break;
    }
    default:
      break;
    }
  }
  return late;
}

Json Computation::preparation() const {
  size_t ready = 0, firstUses = 0, notWorth = 0;
  for (const auto &[id, key] : keys) {
    notWorth += key.notWorth != kForever;
    if (!key.firstUse || key.generic || key.notWorth <= key.firstUse->t)
      continue;
    ++firstUses;
    ready += key.firstUse->b == 1;
  }
  Map<uint64_t, bool> requests; // id -> every key ready so far
  for (const Event *begin : of(EventKind::requestBegin))
    requests[begin->id] = true;
  for (const Event *dispatch : of(EventKind::dispatch)) {
    auto it = requests.find(dispatch->id);
    if (it != requests.end() && dispatch->b != 1 && preparable(dispatch->key) &&
        !knownNotWorth(dispatch->key, dispatch->t))
      it->second = false;
  }
  size_t readyRequests = 0;
  for (const auto &[id, allReady] : requests)
    readyRequests += allReady;
  Json out;
  out["hit_rate"] = ratio(ready, firstUses);
  out["request_hit_rate"] = ratio(readyRequests, requests.size());
  out["late"] = lateFirstUses();
  out["not_worth"] = notWorth;
  return out;
}

/// lost.*: what a dispatch took beyond the key's best known time. A class spans
/// extents, so times are compared as shares of the generic variant's time,
/// which tuning measured side by side; for one extent that is the same as
/// comparing seconds.
Json Computation::lost() const {
  double wait = 0, slow = 0;
  size_t unknown = 0, known = 0;
  Set<uint32_t> unmeasured;
  for (const Event *dispatch : of(EventKind::dispatch)) {
    if (dispatch->value2 > 0 && std::isfinite(dispatch->value2))
      wait += dispatch->value2;
    const KeyState *key = find(dispatch->key);
    if (key->generic)
      continue;
    if (key->tuned.empty()) {
      // Never measured: on the generic variant nobody knows what was lost.
      if (ranVariant(*dispatch)) {
        ++known;
      } else {
        ++unknown;
        unmeasured.insert(dispatch->key);
      }
      continue;
    }
    ++known;
    double used = 1;
    if (ranVariant(*dispatch)) {
      const KeyState *ran = find(ranKey(*dispatch));
      used = key->best;
      if (ran && !ran->tuned.empty()) {
        used = ran->tuned.front().second;
        for (const auto &[t, share] : ran->tuned)
          if (t <= dispatch->t)
            used = share;
      }
    }
    if (dispatch->value3 > 0 && std::isfinite(dispatch->value3))
      slow += std::max(0.0, dispatch->value3 * (1 - key->best / used));
  }
  const bool applies = count(EventKind::dispatch) > 0;
  const bool measured = applies && (known > 0 || unknown == 0);
  Json out;
  out["wait_s"] = applies ? Json(wait) : Json(nullptr);
  out["slow_s"] = measured ? Json(slow) : Json(nullptr);
  out["total_s"] = measured ? Json(wait + slow) : Json(nullptr);
  out["unmeasured_keys"] = unmeasured.size();
  return out;
}

/// compile.*: a job is of use if a dispatch ran what it made.
Json Computation::compile() const {
  Set<uint64_t> useful;
  for (const Event *dispatch : of(EventKind::dispatch)) {
    if (!ranVariant(*dispatch))
      continue;
    const KeyState *key = find(ranKey(*dispatch));
    if (!key || key->made.empty())
      continue;
    const TimeNs launch = addSaturating(
        addSaturating(dispatch->t, clampedNs(std::max(dispatch->value2, 0.0))),
        kWaitSlack);
    auto after = std::upper_bound(
        key->made.begin(), key->made.end(), launch,
        [](TimeNs t, const auto &made) { return t < made.first; });
    useful.insert(after == key->made.begin() ? after->second
                                             : std::prev(after)->second);
  }
  double cpu = 0, wasted = 0;
  for (const Event *job : of(EventKind::jobEnd)) {
    if (!(job->value > 0) || !std::isfinite(job->value))
      continue;
    cpu += job->value;
    if (job->a != 0 || !useful.contains(job->id))
      wasted += job->value;
  }
  Json out;
  out["jobs"] = count(EventKind::jobStart);
  out["cpu_s"] = cpu;
  out["wasted_cpu_s"] = wasted;
  return out;
}

Json Computation::load() const {
  size_t loaded = 0;
  Set<uint64_t> windows;
  std::set<std::pair<uint32_t, uint64_t>> open;
  std::vector<std::pair<TimeNs, TimeNs>> intervals; // disjoint, ascending
  TimeNs since = 0;
  for (const Event *event : all) {
    if (event->kind == EventKind::loadBegin) {
      windows.insert(event->id);
      if (open.empty())
        since = event->t;
      open.emplace(event->key, event->id);
    } else if (event->kind == EventKind::loadEnd) {
      loaded += event->a == 0;
      if (open.erase({event->key, event->id}) && open.empty())
        intervals.emplace_back(since, event->t);
    }
  }
  if (!open.empty())
    intervals.emplace_back(since, end);

  struct Launch {
    TimeNs begin, end;
    double seconds;
  };
  std::vector<Launch> launches;
  std::vector<double> seconds;
  for (const Event *dispatch : of(EventKind::dispatch)) {
    if (!(dispatch->value >= 0) || !std::isfinite(dispatch->value))
      continue;
    // Waiting for a key's own preparation is lost.wait_s, not a load's
    // blocking.
    const double waited =
        dispatch->value2 > 0 ? std::min(dispatch->value2, dispatch->value) : 0;
    launches.push_back({addSaturating(dispatch->t, clampedNs(waited)),
                        addSaturating(dispatch->t, clampedNs(dispatch->value)),
                        dispatch->value - waited});
    seconds.push_back(launches.back().seconds);
  }
  std::optional<double> blocked;
  if (!intervals.empty() && !seconds.empty()) {
    std::sort(seconds.begin(), seconds.end());
    const double median = nearestRank(seconds, 50);
    blocked = 0;
    for (const Launch &launch : launches) {
      auto it = std::lower_bound(
          intervals.begin(), intervals.end(), launch.begin,
          [](const auto &interval, TimeNs t) { return interval.second < t; });
      if (it != intervals.end() && it->first <= launch.end)
        *blocked += std::max(0.0, launch.seconds - median) * 1e3;
    }
  }
  Json out;
  out["count"] = loaded;
  out["windows"] = windows.size();
  out["deferred"] = count(EventKind::loadDeferred);
  out["blocked_ms"] = orNull(blocked);
  return out;
}

/// Median over median, and p99 over p99, of the paired request times.
Json Computation::foregroundSlowdown() const {
  std::vector<double> running, paused;
  for (const Event *pair : of(EventKind::pair))
    if (pair->value > 0 && pair->value2 > 0 && std::isfinite(pair->value) &&
        std::isfinite(pair->value2)) {
      running.push_back(pair->value);
      paused.push_back(pair->value2);
    }
  std::sort(running.begin(), running.end());
  std::sort(paused.begin(), paused.end());
  auto at = [&](double percent) {
    return running.empty() ? Json(nullptr)
                           : Json(nearestRank(running, percent) /
                                  nearestRank(paused, percent));
  };
  Json out;
  out["ratio"] = at(50);
  out["p99"] = at(99);
  out["modelled"] =
      running.empty() ? Json(nullptr) : Json(info.clock == "virtual");
  return out;
}

std::optional<double> Computation::coldStartMs() const {
  for (const Event *done : of(EventKind::requestEnd)) {
    if (done->a == 1)
      continue;
    double lead = std::max(info.leadSeconds, 0.0);
    if (!of(EventKind::requestBegin).empty())
      lead = std::min(
          lead,
          std::max(0.0, secondsBetween(
                            start, of(EventKind::requestBegin).front()->t)));
    return (secondsBetween(start, done->t) - lead) * 1e3;
  }
  return std::nullopt;
}

std::optional<double> Computation::completionSeconds() const {
  if (of(EventKind::requestBegin).empty() || of(EventKind::requestEnd).empty())
    return std::nullopt;
  TimeNs arrival = kForever;
  for (const Event *begin : of(EventKind::requestBegin))
    arrival = std::min(
        arrival,
        addSaturating(begin->t, -clampedNs(std::max(begin->value, 0.0))));
  return secondsBetween(arrival, of(EventKind::requestEnd).back()->t);
}

Json Computation::run() const {
  Json out;
  out["schema"] = 1;
  out["clock"] = info.clock;
  out["policy"] = info.policy;
  out["fallback"] = info.fallback;
  out["lead_s"] = info.leadSeconds;
  out["pace"] = info.pace;
  out["seed"] = info.seed;
  out["device"] = info.device;

  out["prediction"]["next_accuracy"] = nextAccuracy();
  out["prediction"]["first_use_recall"] = firstUseRecall();
  Json ece;
  Json horizons = calibration(ece);
  out["prediction"]["ece"] = std::move(ece);
  out["prediction"]["horizons"] = std::move(horizons);
  out["preparation"] = preparation();
  out["lost"] = lost();

  std::optional<double> build, kernel;
  for (const Event *event : of(EventKind::buildEnd))
    build = build.value_or(0) + event->value;
  out["build_s"] = orNull(build);
  out["cold_start_ms"] = orNull(coldStartMs());

  std::vector<double> first, every;
  for (const Event *dispatch : of(EventKind::dispatch)) {
    if (dispatch->value3 >= 0)
      kernel = kernel.value_or(0) + dispatch->value3;
    if (!(dispatch->value >= 0) || !std::isfinite(dispatch->value))
      continue;
    every.push_back(dispatch->value);
    if (find(dispatch->key)->firstUse == dispatch)
      first.push_back(dispatch->value);
  }
  out["first_invocation_ms"] = percentiles(std::move(first), 1e3);
  out["invocation_us"] = percentiles(std::move(every), 1e6);
  out["invocation_us"]["sample_rate"] = info.invocationSampleRate;

  out["compile"] = compile();
  double evaluations = 0, device = 0;
  for (const Event *tune : of(EventKind::tune)) {
    evaluations += static_cast<double>(std::max<int64_t>(tune->a, 0));
    if (tune->value > 0 && std::isfinite(tune->value))
      device += tune->value;
  }
  out["tuning"]["evaluations"] =
      static_cast<uint64_t>(std::min(evaluations, 9e18));
  out["tuning"]["device_s"] = device;
  out["load"] = load();
  out["kernel_s"] = orNull(kernel);
  out["completion_s"] = orNull(completionSeconds());
  out["foreground_slowdown"] = foregroundSlowdown();

  size_t killed = 0, hung = 0, restarts = 0;
  for (const Event *lostWorker : of(EventKind::workerLost))
    ++(lostWorker->a == 1 ? hung : killed);
  for (const Event *started : of(EventKind::workerStart))
    restarts += started->a == 1;
  // One name for two things in the contract: the root's `workers` is
  // `workers.count` here.
  out["workers"]["count"] = info.workers;
  out["workers"]["killed"] = killed;
  out["workers"]["hung"] = hung;
  out["workers"]["restarts"] = restarts;
  return out;
}

std::string computeMetrics(const RunInfo &info,
                           const std::vector<Event> &events) {
  return Computation(info, events)
      .run()
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace pgkp::rt
