// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The event log: every run, real or virtual, writes the same events.
#pragma once

#include "base/Clock.h"
#include "base/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pgkp::rt {

/// One line of the log. Which fields count is in the comment of each kind; the others are 0.
/// `key` is the module's key number, `value`s are seconds unless named otherwise.
enum class EventKind : uint8_t {
  engineStart,   ///< t = engine creation
  keyInfo,       ///< key, text = description, a = 1 if generic; before the key's first event
  requestBegin,  ///< id = request, a = entry
  requestEnd,    ///< id = request, a = 1 if it failed
  announce,      ///< id = request, value = expected begin (s since engineStart)
  dispatch,      ///< key (of the class), id = request, a = reason (DispatchReason),
                 ///< b = key's variant ready before entry (0/1), value = entry to launch issued,
                 ///< value2 = waited, value3 = kernel time
  forecast,      ///< key, value = F(missing stages), value2 = F(10 s): at a plan tick
  nextKey,       ///< key = predicted for the next dispatch (kNoKey: none)
  jobStart,      ///< key, id = job, a = 1 if speculative
  jobEnd,        ///< key, id = job, a = JobOutcome, value = cpu s, value2 = wall s
  storeHit,      ///< key: artifact came from the store, no job
  loadBegin,     ///< key, id = window
  loadEnd,       ///< key, id = window, a = 1 if it failed
  loadDeferred,  ///< key
  tune,          ///< key, a = launches timed, value = device s, value2 = generic s/use,
                 ///< value3 = variant s/use
  ready,         ///< key: dispatchable
  notWorth,      ///< key: measured no better than generic
  failed,        ///< key, text = reason
  workerLost,    ///< a = 0 killed, 1 hung
  workerStart,   ///< a = 1 if it replaces a lost one
  buildEnd,      ///< value = module to bundle
  pair           ///< value = steady request s with preparation running, value2 = paused
};

enum class DispatchReason : uint8_t { exact, classMatch, generic, waited };

struct Event {
  TimeNs t = 0; ///< since engineStart's clock start
  EventKind kind = EventKind::engineStart;
  uint32_t key = ~0u;
  uint32_t stream = 0;
  uint64_t id = 0;
  int64_t a = 0, b = 0;
  double value = 0, value2 = 0, value3 = 0;
  std::string text;
};

/// JSON lines, one event each, readable again.
std::string toJsonLine(const Event &event);
Expected<Event> parseEvent(const std::string &line);

/// Run-wide facts that no event carries.
struct RunInfo {
  std::string clock = "real"; ///< or "virtual"
  std::string policy, fallback = "generic", device;
  unsigned workers = 0;
  double leadSeconds = 0, pace = 1;
  uint64_t seed = 0;
  double invocationSampleRate = 1;
};

/// The one function that computes every metric of design section 6 from the log.
/// \returns a JSON object; what does not apply is null.
std::string computeMetrics(const RunInfo &info, const std::vector<Event> &events);

} // namespace pgkp::rt
