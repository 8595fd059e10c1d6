// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Collects what is logged while it lives.
#pragma once

#include "base/Log.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace pgkp::rt {

class LogCapture {
public:
  LogCapture() {
    setLogSink(
        [](void *user, LogLevel, std::string_view message) {
          auto *self = static_cast<LogCapture *>(user);
          std::lock_guard lock(self->mutex);
          self->all.emplace_back(message);
        },
        this);
  }
  ~LogCapture() { setLogSink(nullptr, nullptr); }
  LogCapture(const LogCapture &) = delete;

  std::vector<std::string> lines() const {
    std::lock_guard lock(mutex);
    return all;
  }
  size_t count(std::string_view part) const {
    std::lock_guard lock(mutex);
    return static_cast<size_t>(
        std::count_if(all.begin(), all.end(), [&](const std::string &line) {
          return line.find(part) != std::string::npos;
        }));
  }

private:
  mutable std::mutex mutex;
  std::vector<std::string> all;
};

} // namespace pgkp::rt
