// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/Log.h"

#include "base/Env.h"

#include <mutex>
#include <shared_mutex>
#include <string>
#include <unistd.h>

namespace pgkp::rt {

namespace {
struct Sink {
  LogSink function = nullptr;
  void *user = nullptr;
};
} // namespace

// Never destroyed: threads may log while the process exits.
static std::shared_mutex &sinkMutex() {
  static auto *mutex = new std::shared_mutex;
  return *mutex;
}
static Sink currentSink;

static constexpr std::string_view kLevelNames[] = {"error", "warning", "info",
                                                   "debug"};

static void writeToStandardError(LogLevel level, std::string_view message) {
  std::string line;
  line.reserve(message.size() + 12);
  line += kLevelNames[static_cast<int>(level)];
  line += ": ";
  for (char c : message)
    line += c == '\n' || c == '\r' ? ' ' : c;
  line += '\n';
  // One call, so that lines of several threads and processes do not mix.
  [[maybe_unused]] ssize_t written =
      write(STDERR_FILENO, line.data(), line.size());
}

static LogLevel levelFromEnvironment() {
  const std::optional<std::string> text = getEnv("PGKP_LOG");
  if (!text)
    return LogLevel::warning;
  for (int i = 0; i < 4; ++i)
    if (*text == kLevelNames[i])
      return static_cast<LogLevel>(i);
  writeToStandardError(
      LogLevel::warning,
      fmt::format("PGKP_LOG: '{}' is not error, warning, info or debug; "
                  "warning is used",
                  *text));
  return LogLevel::warning;
}

bool logEnabled(LogLevel level) {
  static const LogLevel limit = levelFromEnvironment();
  return level <= limit;
}

void logLine(LogLevel level, std::string_view message) {
  std::shared_lock lock(sinkMutex());
  if (currentSink.function)
    currentSink.function(currentSink.user, level, message);
  else
    writeToStandardError(level, message);
}

void setLogSink(LogSink sink, void *user) {
  std::unique_lock lock(sinkMutex());
  currentSink = {sink, user};
}

} // namespace pgkp::rt
