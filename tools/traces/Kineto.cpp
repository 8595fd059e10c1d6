// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kineto's JSON (PyTorch profiler), and what else follows the Chrome trace
// format: of its events the device kernels, with grid and block. Streamed: a
// few hundred bytes of state beside what is kept.
#include "JsonStream.h"
#include "KernelTable.h"

#include <array>
#include <cmath>

namespace pgkp::rt {

namespace {

/// Follows the reader to the members of the events and no deeper.
class Handler {
public:
  using Ch = char;
  std::string problem;
  KernelTable table;
  bool sawEvents = false;

  bool Null() { return value(); }
  bool Bool(bool) { return value(); }
  bool Int(int v) { return number(v); }
  bool Uint(unsigned v) { return number(v); }
  bool Int64(int64_t v) { return number(static_cast<double>(v)); }
  bool Uint64(uint64_t v) { return number(static_cast<double>(v)); }
  bool Double(double v) { return number(v); }
  bool RawNumber(const Ch *, rapidjson::SizeType, bool) { return value(); }

  bool String(const Ch *text, rapidjson::SizeType length, bool) {
    const std::string_view view(text, length);
    if (depth == eventDepth) {
      switch (field) {
      case Field::phase:
        event.complete = view == "X";
        break;
      case Field::category:
        event.kernel = view == "kernel" || view == "Kernel";
        break;
      case Field::name:
        name.assign(view);
        event.named = true;
        break;
      default:
        break;
      }
    }
    return value();
  }

  bool Key(const Ch *text, rapidjson::SizeType length, bool) {
    const std::string_view view(text, length);
    if (depth == 1 && !eventDepth) {
      eventsNext = view == "traceEvents";
    } else if (eventDepth && depth == eventDepth) {
      field = memberOf(view);
    } else if (eventDepth && depth == eventDepth + 1 && inArgs) {
      field = argumentOf(view);
    }
    return true;
  }

  bool StartObject() {
    ++depth;
    if (eventDepth && depth == eventDepth) {
      event = {};
      field = Field::other;
    } else if (eventDepth && depth == eventDepth + 1) {
      inArgs = field == Field::args;
      field = Field::other;
    }
    return true;
  }
  bool EndObject(rapidjson::SizeType) {
    const bool ends = eventDepth && depth == eventDepth;
    --depth;
    if (eventDepth && depth == eventDepth)
      inArgs = false;
    field = Field::other;
    return !ends || finishEvent();
  }
  bool StartArray() {
    ++depth;
    // The events are the root array, or the root object's member.
    if (!eventDepth && (depth == 1 || (depth == 2 && eventsNext))) {
      eventDepth = depth + 1;
      sawEvents = true;
    }
    position = 0;
    return true;
  }
  bool EndArray(rapidjson::SizeType) {
    --depth;
    if (eventDepth && depth + 2 == eventDepth) {
      eventDepth = 0;
      eventsNext = false;
    }
    return value();
  }

private:
  enum class Field : uint8_t {
    other,
    phase,
    category,
    name,
    start,
    duration,
    args,
    grid,
    block,
    stream,
    device,
    correlation
  };

  static Field memberOf(std::string_view key) {
    return key == "ph"     ? Field::phase
           : key == "cat"  ? Field::category
           : key == "name" ? Field::name
           : key == "ts"   ? Field::start
           : key == "dur"  ? Field::duration
           : key == "args" ? Field::args
                           : Field::other;
  }
  static Field argumentOf(std::string_view key) {
    return key == "grid"          ? Field::grid
           : key == "block"       ? Field::block
           : key == "stream"      ? Field::stream
           : key == "device"      ? Field::device
           : key == "correlation" ? Field::correlation
                                  : Field::other;
  }

  /// A value ends: members of an event have one each; grid and block have
  /// three, in an array.
  bool value() {
    if (depth <= eventDepth + 1)
      field = Field::other;
    return true;
  }

  bool number(double v) {
    const bool inEvent = eventDepth && depth == eventDepth;
    const bool inArgument = inArgs && depth == eventDepth + 1;
    const bool inArray = inArgs && depth == eventDepth + 2;
    if (inEvent && field == Field::start) {
      event.start = v;
      event.started = true;
    } else if (inEvent && field == Field::duration) {
      event.duration = v;
    } else if (inArgument && field == Field::stream) {
      event.stream = v;
    } else if (inArgument && field == Field::device) {
      event.device = v;
    } else if (inArgument && field == Field::correlation) {
      event.correlation = v;
    } else if (inArray && (field == Field::grid || field == Field::block)) {
      if (position < 3)
        event.geometry[position + (field == Field::block ? 3 : 0)] = v;
      ++position;
    }
    return value();
  }

  bool finishEvent() {
    if (!event.kernel || !event.complete)
      return true;
    if (!event.named || !event.started)
      return reject("a kernel event has no name or no ts");
    if (!std::isfinite(event.start) || !(event.duration >= 0) ||
        !std::isfinite(event.duration))
      return reject(fmt::format("kernel '{:.80}': dur is {} us; expected a "
                                "time, not negative",
                                name, event.duration));
    std::array<int64_t, 6> extents;
    for (size_t i = 0; i < extents.size(); ++i) {
      const double extent = event.geometry[i];
      if (!(extent >= 0 && extent <= static_cast<double>(kMaxExtent)))
        return reject(fmt::format("kernel '{:.80}': {} is {}; expected an "
                                  "extent in [0, {}]",
                                  name, i < 3 ? "grid" : "block", extent,
                                  kMaxExtent));
      extents[i] = static_cast<int64_t>(extent);
    }
    // A stream's number is its device's own. Kineto has -1 for none.
    const auto stream = static_cast<uint32_t>(
                            static_cast<int64_t>(std::max(event.stream, 0.0))) &
                        0xffffff;
    const auto device = static_cast<uint32_t>(
        static_cast<int64_t>(std::clamp(event.device, 0.0, 255.0)));
    table.add(table.key(table.name(name), extents), event.start * 1e-6,
              event.duration * 1e-6, device << 24 | stream,
              event.correlation > 0 ? static_cast<uint64_t>(event.correlation)
                                    : 0);
    return true;
  }

  bool reject(std::string text) {
    problem = std::move(text);
    return false;
  }

  struct Event {
    bool complete = false, kernel = false, named = false, started = false;
    double start = 0, duration = 0, stream = 0, device = 0, correlation = 0;
    std::array<double, 6> geometry{};
  };

  unsigned depth = 0;
  unsigned eventDepth = 0; ///< of an event's members; 0: not among the events
  bool eventsNext = false, inArgs = false;
  Field field = Field::other;
  unsigned position = 0; ///< in the innermost array
  Event event;
  std::string name;
};

} // namespace

Expected<KernelTrace> readKineto(InputFile &file) {
  Handler handler;
  PGKP_TRY(parseJson(file, handler));
  if (!handler.sawEvents)
    return file.fail("no member 'traceEvents'");
  if (handler.table.size() == 0)
    return file.fail("no device kernel among the events (category 'kernel')");
  return handler.table.finish();
}

} // namespace pgkp::rt
