// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The event log: every run, real or virtual, writes the same events.
#pragma once

#include "base/Clock.h"
#include "base/Status.h"
#include "schema/DispatchReason.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pgkp::rt {

/// One line of the log. Which fields count is in the comment of each kind; the
/// others keep their defaults. `key` is the module's key number, `value`s are
/// seconds unless named otherwise, `t` is when the thing began.
enum class EventKind : uint8_t {
  engineStart,  ///< t = engine creation
  keyInfo,      ///< key, text = description, a = 1 if generic; before the key's
                ///< first event
  requestBegin, ///< id = request, a = entry, value = waited since its arrival
  requestEnd,   ///< id = request, a = 1 if it failed
  announce,     ///< id = request, value = expected begin (s since engineStart)
  dispatch,     ///< t = entry; key (of the class), stream, id = request,
                ///< a = reason (DispatchReason), b = key's variant ready before
                ///< entry (0/1), ran = key whose variant ran where that is not
                ///< `key`, value = entry to launch issued, waiting included
  ///< (negative: not sampled), value2 = waited, value3 = kernel time
  ///< (negative: not measured)
  forecast, ///< key, value = F(600 s), value2 = F(10 s), value4 = F(1 s),
            ///< value5 = F(60 s), all probabilities, value3 = expected time of
            ///< the missing stages: at a plan tick
  nextKey,  ///< key = predicted (kNoKey: none), stream,
            ///< id = number of the dispatch on its stream that it predicts (0 =
            ///< first)
  jobQueued, ///< key, id = job, a = 1 if speculative: waits for a worker
  jobStart,  ///< key, id = job, a = 1 if speculative
  jobEnd, ///< key, id = job, a = JobOutcome (0 = done), value = cpu s, value2 =
          ///< wall s
  storeHit,     ///< key: artifact came from the store, no job
  loadBegin,    ///< key, id = window
  loadEnd,      ///< key, id = window, a = 1 if it failed
  loadDeferred, ///< key
  tune, ///< key, a = launches timed (0: known from a record), value = device s,
        ///< value2 = generic s/use, value3 = variant s/use
  ready, ///< key: dispatchable; id = job that made it (0: the key's last one,
         ///< or none)
  notWorth,    ///< key: measured no better than generic
  failed,      ///< key, text = reason
  workerLost,  ///< a = 0 killed, 1 hung
  workerStart, ///< a = 1 if it replaces a lost one
  buildEnd,    ///< value = module to bundle
  pair, ///< value = steady request s with preparation running, value2 = paused
  engineEnd ///< t = end of the observation; without it the last event is the
            ///< end
};
constexpr size_t kNumEventKinds = static_cast<size_t>(EventKind::engineEnd) + 1;

/// The enumerator's name, as the log spells it.
std::string_view eventKindName(EventKind kind);

struct Event {
  TimeNs t = 0; ///< since engineStart's clock start
  EventKind kind = EventKind::engineStart;
  uint32_t key = ~0u;
  uint32_t ran = ~0u;
  uint32_t stream = 0;
  uint64_t id = 0;
  int64_t a = 0, b = 0;
  double value = 0, value2 = 0, value3 = 0, value4 = 0, value5 = 0;
  std::string text;

  bool operator==(const Event &) const = default;
};

/// One JSON object without a line break; fields that have their default are
/// left out. Numbers are written so that reading gives the same bits back; what
/// is not UTF-8 in `text` becomes U+FFFD.
std::string toJsonLine(const Event &event);
void appendJsonLine(const Event &event, std::string &out);
Expected<Event> parseEvent(const std::string &line);
/// A whole log. Errors name the file and line.
Expected<std::vector<Event>> readEvents(const std::string &path);

/// Run-wide facts that no event carries.
struct RunInfo {
  std::string clock = "real"; ///< or "virtual"
  std::string policy, fallback = "generic", device;
  unsigned workers = 0;
  double leadSeconds = 0, pace = 1;
  uint64_t seed = 0;
  double invocationSampleRate = 1;
};

/// The one function that computes every metric of design section 6 from the
/// log. The order of events with equal times is that of the log.
/// docs/metrics.md says how each is defined. \returns a JSON object; what does
/// not apply is null.
std::string computeMetrics(const RunInfo &info,
                           const std::vector<Event> &events);

} // namespace pgkp::rt
