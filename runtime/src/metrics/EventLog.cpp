// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "metrics/EventLog.h"

#include <cerrno>

namespace pgkp::rt {

namespace {
class JsonLinesSink final : public EventSink {
public:
  JsonLinesSink(std::FILE *file, std::string path)
      : file(file), path(std::move(path)) {}
  ~JsonLinesSink() override { std::fclose(file); }

  Status write(std::span<const Event> events) override {
    buffer.clear();
    for (const Event &event : events) {
      appendJsonLine(event, buffer);
      buffer += '\n';
    }
    if (std::fwrite(buffer.data(), 1, buffer.size(), file) != buffer.size())
      return makeErrnoError(errno, path);
    return {};
  }

  Status flush() override {
    if (std::fflush(file) != 0)
      return makeErrnoError(errno, path);
    return {};
  }

private:
  std::FILE *file;
  std::string path, buffer;
};
} // namespace

Expected<std::unique_ptr<EventSink>> openJsonLines(const std::string &path) {
  std::FILE *file = std::fopen(path.c_str(), "we");
  if (!file)
    return makeErrnoError(errno, path);
  return std::make_unique<JsonLinesSink>(file, path);
}

Status TeeSink::write(std::span<const Event> events) {
  Status result;
  for (EventSink *sink : sinks)
    if (auto status = sink->write(events); !status && result)
      result = std::move(status);
  return result;
}

Status TeeSink::flush() {
  Status result;
  for (EventSink *sink : sinks)
    if (auto status = sink->flush(); !status && result)
      result = std::move(status);
  return result;
}

bool EventLog::record(Event event) {
  if (ring.push(std::move(event)))
    return true;
  drops.fetch_add(1, std::memory_order_relaxed);
  return false;
}

bool EventLog::append(Event event) {
  while (!ring.push(std::move(event))) {
    std::lock_guard lock(mutex);
    if (pending.size() >= maxPending) {
      drops.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    collect();
  }
  return true;
}

void EventLog::collect() {
  Event event;
  // One round of the ring at most: producers may go on for ever.
  for (size_t n = ring.capacity(); n > 0 && ring.pop(event); --n)
    pending.push_back(std::move(event));
}

Status EventLog::drain(EventSink &sink) {
  {
    std::lock_guard lock(mutex);
    collect();
    batch.swap(pending);
  }
  if (batch.empty())
    return {};
  auto status = sink.write(batch);
  batch.clear();
  return status;
}

} // namespace pgkp::rt
