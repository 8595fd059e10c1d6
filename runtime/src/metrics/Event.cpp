// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "metrics/Event.h"

#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

namespace pgkp::rt {

static constexpr std::array<std::string_view, kNumEventKinds> kKindNames = {
    "engineStart", "keyInfo",  "requestBegin", "requestEnd", "announce",
    "dispatch",    "forecast", "nextKey",      "jobQueued",  "jobStart",
    "jobEnd",      "storeHit", "loadBegin",    "loadEnd",    "loadDeferred",
    "tune",        "ready",    "notWorth",     "failed",     "workerLost",
    "workerStart", "buildEnd", "pair",         "engineEnd"};

std::string_view eventKindName(EventKind kind) {
  const auto index = static_cast<size_t>(kind);
  return index < kKindNames.size() ? kKindNames[index] : "unknown";
}

static void appendNumber(double value, std::string &out) {
  // JSON has no spelling for these; a quoted word keeps the round trip exact.
  if (std::isnan(value))
    out += "\"nan\"";
  else if (std::isinf(value))
    out += value < 0 ? "\"-inf\"" : "\"inf\"";
  else if (value ==
           0) // only -0 is written; as "-0" it would be read as an integer
    out += "-0.0";
  else
    fmt::format_to(std::back_inserter(out), "{}", value);
}

void appendJsonLine(const Event &event, std::string &out) {
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{{\"t\":{},\"event\":\"{}\"", event.t,
                 eventKindName(event.kind));
  if (event.key != ~0u)
    fmt::format_to(to, ",\"key\":{}", event.key);
  if (event.ran != ~0u)
    fmt::format_to(to, ",\"ran\":{}", event.ran);
  if (event.stream)
    fmt::format_to(to, ",\"stream\":{}", event.stream);
  if (event.id)
    fmt::format_to(to, ",\"id\":{}", event.id);
  if (event.a)
    fmt::format_to(to, ",\"a\":{}", event.a);
  if (event.b)
    fmt::format_to(to, ",\"b\":{}", event.b);
  const std::pair<const char *, double> values[] = {{"value", event.value},
                                                    {"value2", event.value2},
                                                    {"value3", event.value3},
                                                    {"value4", event.value4},
                                                    {"value5", event.value5}};
  for (auto [name, value] : values)
    if (value != 0 || std::signbit(value)) {
      fmt::format_to(to, ",\"{}\":", name);
      appendNumber(value, out);
    }
  if (!event.text.empty()) {
    out += ",\"text\":";
    out += nlohmann::json(event.text)
               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  out += '}';
}

std::string toJsonLine(const Event &event) {
  std::string out;
  appendJsonLine(event, out);
  return out;
}

namespace {
/// Reads the members of one line and remembers the first that does not fit.
class LineReader {
public:
  explicit LineReader(const nlohmann::json &object) : object(object) {}

  template <typename Int> void integer(const char *name, Int &out) {
    auto it = object.find(name);
    if (it == object.end())
      return;
    ++used;
    if (it->is_number_unsigned()) {
      const auto value = it->get<uint64_t>();
      if (value <= static_cast<uint64_t>(std::numeric_limits<Int>::max())) {
        out = static_cast<Int>(value);
        return;
      }
    } else if (it->is_number_integer() && std::is_signed_v<Int>) {
      out = static_cast<Int>(it->get<int64_t>());
      return;
    }
    reject(name,
           std::is_signed_v<Int> ? "an integer" : "a non-negative integer");
  }

  void number(const char *name, double &out) {
    auto it = object.find(name);
    if (it == object.end())
      return;
    ++used;
    if (it->is_number())
      out = it->get<double>();
    else if (*it == "nan")
      out = std::numeric_limits<double>::quiet_NaN();
    else if (*it == "inf" || *it == "-inf")
      out = *it == "inf" ? HUGE_VAL : -HUGE_VAL;
    else
      reject(name, "a number");
  }

  void text(const char *name, std::string &out) {
    auto it = object.find(name);
    if (it == object.end())
      return;
    ++used;
    if (it->is_string())
      out = it->get_ref<const std::string &>();
    else
      reject(name, "a string");
  }

  void reject(const char *name, const char *expected) {
    if (problem.empty())
      problem = fmt::format("event member '{}' is not {}", name, expected);
  }

  const nlohmann::json &object;
  size_t used = 0;
  std::string problem;
};
} // namespace

Expected<Event> parseEvent(const std::string &line) {
  const auto object =
      nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    return makeError(Code::invalidArgument, "event is not a JSON object");
  LineReader reader(object);
  Event event;
  std::string kind;
  if (!object.contains("t") || !object.contains("event"))
    return makeError(Code::invalidArgument, "event has no 't' or no 'event'");
  reader.integer("t", event.t);
  reader.text("event", kind);
  reader.integer("key", event.key);
  reader.integer("ran", event.ran);
  reader.integer("stream", event.stream);
  reader.integer("id", event.id);
  reader.integer("a", event.a);
  reader.integer("b", event.b);
  reader.number("value", event.value);
  reader.number("value2", event.value2);
  reader.number("value3", event.value3);
  reader.number("value4", event.value4);
  reader.number("value5", event.value5);
  reader.text("text", event.text);
  if (!reader.problem.empty())
    return makeError(Code::invalidArgument, "{}", reader.problem);
  if (reader.used != object.size())
    return makeError(Code::invalidArgument, "event has an unknown member");
  for (size_t i = 0; i < kKindNames.size(); ++i)
    if (kKindNames[i] == kind) {
      event.kind = static_cast<EventKind>(i);
      return event;
    }
  return makeError(Code::invalidArgument, "event kind '{}' is unknown", kind);
}

Expected<std::vector<Event>> readEvents(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    return makeError(Code::notFound, "{}: cannot read the event log", path);
  std::vector<Event> events;
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    if (line.empty())
      continue;
    auto event = parseEvent(line);
    if (!event)
      return makeError(Code::invalidArgument, "{}:{}: {}", path, number,
                       event.error().message);
    events.push_back(std::move(*event));
  }
  if (file.bad())
    return makeError(Code::io, "{}: reading the event log failed", path);
  return events;
}

} // namespace pgkp::rt
