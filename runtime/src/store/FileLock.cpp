// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/FileLock.h"

#include "base/SystemCall.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

namespace pgkp::rt {

static bool isStillAt(int fd, const std::string &path) {
  struct stat held, named;
  return guarded("store", "lockstat", [&] { return fstat(fd, &held); }) == 0 &&
         guarded("store", "namestat",
                 [&] { return stat(path.c_str(), &named); }) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

Expected<FileLock> FileLock::tryTake(const std::string &path) {
  // Bounded: each round needs somebody who removed the file in between.
  for (int round = 0; round < 100; ++round) {
    FileLock lock;
    lock.fd.reset(guarded("store", "lockfile", [&] {
      return open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                  0600);
    }));
    if (!lock.fd)
      return makeErrnoError(errno, "cannot make lock file '" + path + "'");
    if (guarded("store", "flock",
                [&] { return flock(lock.fd.get(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno == EINTR)
        continue;
      if (errno == EWOULDBLOCK)
        return makeError(Code::unavailable, "'{}' is locked", path);
      return makeError(Code::unsupported, "'{}' cannot be locked (error {})",
                       path, errno);
    }
    // A holder removes its file before it lets go: this may be the old one.
    if (isStillAt(lock.fd.get(), path))
      return lock;
  }
  return makeError(Code::unavailable, "'{}' changes hands all the time", path);
}

Expected<FileLock> FileLock::take(const std::string &path, TimeNs limit) {
  const SteadyClock clock;
  const TimeNs end = clock.now() + limit;
  for (TimeNs nap = kNsPerMs / 10;; nap = std::min(2 * nap, 10 * kNsPerMs)) {
    Expected<FileLock> lock = tryTake(path);
    if (lock || lock.error().code != Code::unavailable)
      return lock;
    if (clock.now() >= end)
      return makeError(Code::deadline, "'{}' was locked for {:.1f} s", path,
                       toSeconds(limit));
    const timespec pause{0, static_cast<long>(nap)};
    nanosleep(&pause, nullptr);
  }
}

} // namespace pgkp::rt
