// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "governor/Pressure.h"

#include "governor/ProcFile.h"

#include <algorithm>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/vfs.h>

namespace pgkp::rt {

/// Documentation/accounting/psi.rst: "some avg10=... total=<microseconds>".
static std::optional<double> readSome(const std::string &path) {
  const auto text = readText(path);
  if (!text)
    return std::nullopt;
  for (std::string_view line : split(*text, '\n'))
    if (line.starts_with("some "))
      for (std::string_view field : split(line, ' '))
        if (field.starts_with("total="))
          if (const auto total = parseNumber(field.substr(6)))
            return *total * 1e-6;
  return std::nullopt;
}

/// Documentation/scheduler/sched-stats.rst: nanoseconds run, nanoseconds
/// waited, times run.
static std::optional<double> readDelay(const std::string &path) {
  const std::string text = readText(path).value_or("");
  const auto fields = split(text, ' ');
  const auto waited =
      fields.size() >= 2 ? parseNumber(fields[1]) : std::nullopt;
  return waited ? std::optional(*waited * 1e-9) : std::nullopt;
}

Pressure::Pressure(std::string rootFolder, const std::string &group)
    : root(std::move(rootFolder)) {
  for (const std::string &candidate :
       {group.empty() ? std::string() : group + "/cpu.pressure",
        std::string("/proc/pressure/cpu")})
    if (!candidate.empty() && readSome(root + candidate)) {
      source = Source::pressure;
      file = candidate;
      armTrigger(root + candidate);
      return;
    }
  if (readDelay(root + "/proc/self/schedstat"))
    source = Source::ownDelay;
}

void Pressure::armTrigger(const std::string &path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  struct statfs system;
  // A fixture is a file like any other: writing would change it.
  if (!fd || fstatfs(fd.get(), &system) != 0 ||
      (system.f_type != PROC_SUPER_MAGIC &&
       system.f_type != CGROUP2_SUPER_MAGIC))
    return;
  constexpr unsigned window = 2'000'000; // us
  const std::string request = fmt::format(
      "some {} {}", static_cast<unsigned>(kTriggerShare * window), window);
  if (write(fd.get(), request.c_str(), request.size() + 1) > 0)
    trigger = std::move(fd);
}

bool Pressure::triggered() const {
  pollfd poller{trigger.get(), POLLPRI, 0};
  return trigger && poll(&poller, 1, 0) == 1 && (poller.revents & POLLPRI);
}

std::optional<double> Pressure::waitedSeconds() const {
  switch (source) {
  case Source::none:
    return std::nullopt;
  case Source::pressure:
    return readSome(root + file);
  case Source::ownDelay:
    break;
  }
  // The application's first thread, and the one that asks.
  const auto first = readDelay(root + "/proc/self/schedstat");
  const auto own = readDelay(root + "/proc/thread-self/schedstat");
  return first && own ? std::max(*first, *own) : first;
}

double Pressure::sample(TimeNs now) {
  const std::optional<double> waited = waitedSeconds();
  const double seconds = toSeconds(now - lastTime);
  double share = 0;
  if (waited && lastWaited && seconds > 0)
    share = std::clamp((*waited - *lastWaited) / seconds, 0.0, 1.0);
  if (lastWaited && triggered())
    share = std::max(share, kTriggerShare);
  lastWaited = waited;
  lastTime = now;
  return share;
}

std::string Pressure::describe() const {
  switch (source) {
  case Source::none:
    break;
  case Source::pressure:
    return trigger ? file + " by trigger" : file;
  case Source::ownDelay:
    return "own scheduling delay";
  }
  return "none";
}

} // namespace pgkp::rt
