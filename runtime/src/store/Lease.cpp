// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/Lease.h"

#include "base/SystemCall.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace pgkp::rt {

namespace {
/// A process, such that no other one is ever taken for it: the start time tells
/// numbers apart that are used again, the namespace and the boot tell whether
/// the number means anything here.
struct Holder {
  pid_t pid = 0;
  uint64_t start = 0; ///< clock ticks after boot
  std::string space;  ///< PID namespace and boot
  bool operator==(const Holder &) const = default;
};
} // namespace

/// Field 22 of /proc/<pid>/stat; 0: no such process, or /proc does not say.
static uint64_t startOf(pid_t pid) {
  UniqueFd fd(
      open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t got = fd ? read(fd.get(), text, sizeof text - 1) : -1;
  if (got <= 0)
    return 0;
  text[got] = 0;
  // The command's name may hold anything but ends with the last parenthesis.
  const char *at = std::strrchr(text, ')');
  for (int field = 2; at && field < 22; ++field)
    at = std::strchr(at + 1, ' ');
  return at ? std::strtoull(at + 1, nullptr, 10) : 0;
}

static const std::string &spaceHere() {
  static const std::string space = [] {
    char name[64] = "";
    [[maybe_unused]] ssize_t length =
        readlink("/proc/self/ns/pid", name, sizeof name - 1);
    char boot[64] = "";
    UniqueFd fd(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    if (fd && read(fd.get(), boot, 36) != 36)
      boot[0] = 0;
    return std::string(name) + "/" + boot;
  }();
  return space;
}

static Holder self() {
  const pid_t pid = getpid();
  return {pid, startOf(pid), spaceHere()};
}

static std::string describe(const Holder &holder) {
  return fmt::format("{} {} {}\n", holder.pid, holder.start, holder.space);
}

static Holder parse(std::string_view text) {
  Holder holder;
  const char *end = text.data() + text.size();
  auto [pidEnd, pidError] = std::from_chars(text.data(), end, holder.pid);
  if (pidError != std::errc() || pidEnd == end)
    return {};
  auto [startEnd, startError] = std::from_chars(pidEnd + 1, end, holder.start);
  if (startError != std::errc() || startEnd == end)
    return {};
  holder.space.assign(startEnd + 1, end);
  while (!holder.space.empty() && holder.space.back() == '\n')
    holder.space.pop_back();
  return holder;
}

static Holder readHolder(const std::string &path) {
  UniqueFd fd(guarded("store", "leaseopen", [&] {
    return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  }));
  char text[256];
  const ssize_t got =
      fd ? guarded("store", "leaseread",
                   [&] { return read(fd.get(), text, sizeof text); })
         : -1;
  return got > 0 ? parse({text, static_cast<size_t>(got)}) : Holder();
}

/// False where it cannot be told.
static bool isDead(const Holder &holder) {
  if (holder.pid <= 0 || holder.start == 0 || holder.space != spaceHere())
    return false;
  if (kill(holder.pid, 0) != 0 && errno == ESRCH)
    return true;
  const uint64_t start = startOf(holder.pid);
  return start != 0 && start != holder.start;
}

/// Removes the lease of a dead process whose child keeps it locked.
static bool clearDead(const std::string &locks, const std::string &path) {
  if (!isDead(readHolder(path)))
    return false;
  // One at a time, or a successor's fresh lease could be taken for the old one.
  const auto turn = FileLock::take(locks + "/takeover", kNsPerSecond);
  if (!turn || !isDead(readHolder(path)))
    return false;
  return guarded("store", "unlink", [&] { return unlink(path.c_str()); }) == 0;
}

Expected<Lease> Lease::take(const std::string &locks, const Digest &key) {
  Lease lease;
  lease.path = fmt::format("{}/{}.lease", locks, key.hex());
  Expected<FileLock> lock = FileLock::tryTake(lease.path);
  if (!lock && lock.error().code == Code::unavailable &&
      clearDead(locks, lease.path))
    lock = FileLock::tryTake(lease.path);
  if (!lock) {
    if (lock.error().code != Code::unavailable)
      return tl::unexpected<Error>(lock.error());
    return makeError(Code::unavailable, "process {} compiles {}",
                     readHolder(lease.path).pid, key.hex());
  }
  lease.lock = std::move(*lock);
  lease.owner = getpid();
  // Without its name a lease is a lock all the same.
  const std::string text = describe(self());
  if (guarded("store", "leasetruncate",
              [&] { return ftruncate(lease.lock.get(), 0); }) == 0)
    (void)guarded("store", "leasewrite", [&] {
      return pwrite(lease.lock.get(), text.data(), text.size(), 0);
    });
  return lease;
}

void Lease::release() {
  if (!lock)
    return;
  // Before the lock is let go: whoever opened it meanwhile sees that it is
  // gone. A forked child has a copy, but nothing to give.
  if (owner == getpid())
    (void)guarded("store", "unlink", [&] { return unlink(path.c_str()); });
  lock.release();
}

} // namespace pgkp::rt
