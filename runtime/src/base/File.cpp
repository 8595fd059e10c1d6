// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/File.h"

#include "base/Failpoint.h"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

namespace pgkp::rt {

// An error that a failpoint asks for looks like one of the call that it guards.
static bool injected(std::string_view room, const char *call) {
  if (!detail::failpointsActive.load(std::memory_order_relaxed))
    return false;
  if (const int value = failpoint(fmt::format("{}.{}", room, call))) {
    errno = value;
    return true;
  }
  return false;
}

Expected<std::vector<uint8_t>> readFile(const std::string &path, uint64_t limit,
                                        std::string_view failpoints) {
  UniqueFd fd;
  if (!injected(failpoints, "open"))
    fd.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd)
    return makeErrnoError(errno, "cannot open '" + path + "'");
  struct stat info;
  if (injected(failpoints, "stat") || fstat(fd.get(), &info) != 0)
    return makeErrnoError(errno, "cannot examine '" + path + "'");
  if (!S_ISREG(info.st_mode))
    return makeError(Code::invalidArgument, "'{}' is not a regular file", path);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > limit)
    return makeError(Code::exhausted, "'{}' has {} bytes, at most {} are read",
                     path, size, limit);
  std::vector<uint8_t> bytes(size);
  size_t filled = 0;
  // The file may grow or shrink meanwhile; the bytes read are what counts.
  while (filled < bytes.size()) {
    const ssize_t got =
        injected(failpoints, "read")
            ? -1
            : read(fd.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0) {
      if (errno == EINTR)
        continue;
      return makeErrnoError(errno, "cannot read '" + path + "'");
    }
    if (got == 0)
      break;
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

std::string directoryOf(const std::string &path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

static Status writeAll(int fd, std::span<const uint8_t> bytes,
                       const std::string &path, std::string_view failpoints) {
  do {
    const ssize_t put = injected(failpoints, "write")
                            ? -1
                            : write(fd, bytes.data(), bytes.size());
    if (put < 0) {
      if (errno == EINTR)
        continue;
      return makeErrnoError(errno, "cannot write '" + path + "'");
    }
    bytes = bytes.subspan(static_cast<size_t>(put));
  } while (!bytes.empty());
  return {};
}

static Status syncDirectory(const std::string &directory,
                            std::string_view failpoints) {
  UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (injected(failpoints, "fsyncdir") || !fd)
    return makeErrnoError(errno, "cannot sync '" + directory + "'");
  // Some file systems cannot sync directories, and have no need to.
  if (fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    return makeErrnoError(errno, "cannot sync '" + directory + "'");
  return {};
}

Status writeFileAtomically(const std::string &path,
                           std::span<const uint8_t> bytes,
                           const AtomicWriteOptions &options) {
  static std::atomic<uint64_t> counter{0};
  const std::string directory = directoryOf(path);
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  // Processes in different PID namespaces may share the directory, hence the
  // time.
  const std::string temporary = fmt::format(
      "{}/{}{}-{}-{}",
      options.temporaryDirectory.empty() ? directory
                                         : options.temporaryDirectory,
      kTemporaryPrefix, getpid(), now.tv_sec * 1'000'000'000LL + now.tv_nsec,
      counter.fetch_add(1, std::memory_order_relaxed));
  UniqueFd fd;
  if (!injected(options.failpoints, "create"))
    fd.reset(open(temporary.c_str(),
                  O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                  options.mode));
  if (!fd)
    return makeErrnoError(errno, "cannot create a file for '" + path + "'");

  auto finish = [&]() -> Status {
    PGKP_TRY(writeAll(fd.get(), bytes, path, options.failpoints));
    if (injected(options.failpoints, "fsync") || fsync(fd.get()) != 0)
      return makeErrnoError(errno, "cannot sync '" + path + "'");
    fd.reset();
    if (injected(options.failpoints, "rename") ||
        rename(temporary.c_str(), path.c_str()) != 0)
      return makeErrnoError(errno, "cannot rename a file to '" + path + "'");
    return {};
  };
  if (Status status = finish(); !status) {
    unlink(temporary.c_str());
    return status;
  }
  return syncDirectory(directory, options.failpoints);
}

Status makeDirectories(const std::string &path, unsigned mode) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string prefix = path.substr(0, slash);
    if (mkdir(prefix.c_str(), mode) != 0 && errno != EEXIST) {
      const int failure = errno;
      // A read-only parent reports EROFS or EACCES even where the directory
      // exists.
      struct stat info;
      if (stat(prefix.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
        return makeErrnoError(failure,
                              "cannot make directory '" + prefix + "'");
    }
    if (slash == std::string::npos)
      break;
  }
  struct stat info;
  if (stat(path.c_str(), &info) != 0)
    return makeErrnoError(errno, "cannot make directory '" + path + "'");
  if (!S_ISDIR(info.st_mode))
    return makeErrnoError(ENOTDIR, "cannot make directory '" + path + "'");
  return {};
}

} // namespace pgkp::rt
