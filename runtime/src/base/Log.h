// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Messages to standard error; level from PGKP_LOG. Thread-safe.
#pragma once

#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace pgkp::rt {

enum class LogLevel { error, warning, info, debug };

/// One line "level: message". Applications can redirect it.
void logLine(LogLevel level, std::string_view message);
bool logEnabled(LogLevel level);
/// Replaces the sink (null: standard error). The sink must be thread-safe.
using LogSink = void (*)(void *user, LogLevel level, std::string_view message);
void setLogSink(LogSink sink, void *user);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args &&...args) {
  if (logEnabled(level))
    logLine(level, fmt::format(format, std::forward<Args>(args)...));
}

} // namespace pgkp::rt
