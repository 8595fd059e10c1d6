// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/Failpoint.h"

#include "base/Env.h"
#include "base/Log.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <mutex>
#include <unistd.h>

namespace pgkp::rt {

namespace {
struct Armed {
  std::string name;
  FailpointAction action;
  int value;
  unsigned nth, hits = 0;
};

struct Registry {
  std::mutex mutex;
  std::vector<Armed> armed;
  std::vector<std::string> seen;
  bool recording = false, environmentRead = false;

  void refresh() {
    detail::failpointsActive.store(!environmentRead || recording ||
                                       !armed.empty(),
                                   std::memory_order_relaxed);
  }
};
} // namespace

std::atomic<bool> detail::failpointsActive{true};

// Never destroyed: threads may pass failpoints while the process exits.
static Registry &registry() {
  static auto *instance = new Registry;
  return *instance;
}

static std::optional<int> parseNumber(std::string_view text) {
  int value = 0;
  auto [stop, failure] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || stop != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

static std::optional<int> parseErrno(std::string_view text) {
  static constexpr std::pair<std::string_view, int> names[] = {
      {"EACCES", EACCES}, {"EAGAIN", EAGAIN}, {"EDQUOT", EDQUOT},
      {"EINTR", EINTR},   {"EIO", EIO},       {"EMFILE", EMFILE},
      {"ENOENT", ENOENT}, {"ENOMEM", ENOMEM}, {"ENOSPC", ENOSPC},
      {"EPERM", EPERM},   {"EPIPE", EPIPE},   {"EROFS", EROFS}};
  for (auto [name, value] : names)
    if (name == text)
      return value;
  return parseNumber(text);
}

static Expected<Armed> parseOne(std::string_view item) {
  const std::string_view whole = item;
  auto fail = [&] {
    return makeError(Code::invalidArgument,
                     "failpoint '{}': expected name=action[:value][@n] with "
                     "action error, kill or delay",
                     whole);
  };
  const size_t equals = item.find('=');
  if (equals == 0 || equals == std::string_view::npos)
    return fail();
  Armed armed{std::string(item.substr(0, equals)), FailpointAction::none, 0, 1};
  item.remove_prefix(equals + 1);
  if (const size_t at = item.find('@'); at != std::string_view::npos) {
    const std::optional<int> n = parseNumber(item.substr(at + 1));
    if (!n)
      return fail();
    armed.nth = static_cast<unsigned>(*n);
    item = item.substr(0, at);
  }
  std::string_view value;
  if (const size_t colon = item.find(':'); colon != std::string_view::npos) {
    value = item.substr(colon + 1);
    item = item.substr(0, colon);
  }
  if (item == "error") {
    armed.action = FailpointAction::error;
    const std::optional<int> number =
        value.empty() ? std::optional<int>(EIO) : parseErrno(value);
    if (!number || *number == 0)
      return fail();
    armed.value = *number;
  } else if (item == "kill" && value.empty()) {
    armed.action = FailpointAction::kill;
  } else if (item == "delay") {
    armed.action = FailpointAction::delay;
    const std::optional<int> number = parseNumber(value);
    if (!number)
      return fail();
    armed.value = *number;
  } else {
    return fail();
  }
  return armed;
}

static Expected<std::vector<Armed>> parseList(std::string_view list) {
  std::vector<Armed> result;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) {
      PGKP_ASSIGN(Armed armed, parseOne(list.substr(0, comma)));
      result.push_back(std::move(armed));
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return result;
}

// Needs the registry's mutex.
static void readEnvironment(Registry &r) {
  if (r.environmentRead)
    return;
  r.environmentRead = true;
  if (const std::optional<std::string> list = getEnv("PGKP_FAILPOINTS")) {
    Expected<std::vector<Armed>> armed = parseList(*list);
    if (armed)
      r.armed = std::move(*armed);
    else
      log(LogLevel::warning, "PGKP_FAILPOINTS: {}", armed.error().message);
  }
  r.refresh();
}

int detail::failpointSlow(std::string_view name) {
  Registry &r = registry();
  FailpointAction action = FailpointAction::none;
  int value = 0;
  {
    std::lock_guard lock(r.mutex);
    readEnvironment(r);
    if (r.recording &&
        std::find(r.seen.begin(), r.seen.end(), name) == r.seen.end())
      r.seen.emplace_back(name);
    for (auto it = r.armed.begin(); it != r.armed.end(); ++it) {
      if (it->name != name)
        continue;
      ++it->hits;
      if (it->nth != 0 && it->hits != it->nth)
        continue;
      action = it->action;
      value = it->value;
      if (it->nth != 0) {
        r.armed.erase(it);
        r.refresh();
      }
      break;
    }
  }
  switch (action) {
  case FailpointAction::none:
    return 0;
  case FailpointAction::error:
    return value;
  case FailpointAction::kill:
    kill(getpid(), SIGKILL);
    return 0;
  case FailpointAction::delay: {
    timespec left{value / 1000, (value % 1000) * 1'000'000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
      ;
    return 0;
  }
  }
  return 0;
}

void setFailpoint(std::string_view name, FailpointAction action, int value,
                  unsigned nth) {
  Registry &r = registry();
  std::lock_guard lock(r.mutex);
  readEnvironment(r);
  r.armed.push_back({std::string(name), action, value, nth});
  r.refresh();
}

Status setFailpoints(std::string_view list) {
  PGKP_ASSIGN(std::vector<Armed> armed, parseList(list));
  for (const Armed &a : armed)
    setFailpoint(a.name, a.action, a.value, a.nth);
  return {};
}

void clearFailpoints() {
  Registry &r = registry();
  std::lock_guard lock(r.mutex);
  r.environmentRead = true;
  r.armed.clear();
  r.seen.clear();
  r.refresh();
}

void recordFailpoints(bool on) {
  Registry &r = registry();
  std::lock_guard lock(r.mutex);
  readEnvironment(r);
  r.recording = on;
  r.refresh();
}

std::vector<std::string> failpointsSeen() {
  Registry &r = registry();
  std::lock_guard lock(r.mutex);
  return r.seen;
}

} // namespace pgkp::rt
