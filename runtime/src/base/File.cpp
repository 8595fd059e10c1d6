// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/File.h"

#include "base/SystemCall.h"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

namespace pgkp::rt {

Expected<std::vector<uint8_t>> readFile(const std::string &path, uint64_t limit,
                                        std::string_view failpoints) {
  UniqueFd fd(guarded(failpoints, "open", [&] {
    return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  }));
  if (!fd)
    return makeErrnoError(errno, "cannot open '" + path + "'");
  struct stat info;
  if (guarded(failpoints, "stat", [&] { return fstat(fd.get(), &info); }) != 0)
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
    const ssize_t got = guarded(failpoints, "read", [&] {
      return read(fd.get(), bytes.data() + filled, bytes.size() - filled);
    });
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
    const ssize_t put = guarded(failpoints, "write", [&] {
      return write(fd, bytes.data(), bytes.size());
    });
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
  UniqueFd fd(guarded(failpoints, "diropen", [&] {
    return open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }));
  const int synced =
      fd ? guarded(failpoints, "fsyncdir", [&] { return fsync(fd.get()); })
         : -1;
  // Some file systems cannot sync directories, and have no need to.
  if (synced != 0 && errno != EINVAL && errno != ENOTSUP)
    return makeErrnoError(errno, "cannot sync '" + directory + "'");
  return {};
}

// Processes in different PID namespaces may share the directory, hence the
// time.
static std::string temporaryName(const std::string &directory) {
  static std::atomic<uint64_t> counter{0};
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return fmt::format("{}/{}{}-{}-{}", directory, kTemporaryPrefix, getpid(),
                     now.tv_sec * 1'000'000'000LL + now.tv_nsec,
                     counter.fetch_add(1, std::memory_order_relaxed));
}

Expected<PendingFile> PendingFile::create(std::string path, uint64_t size,
                                          const AtomicWriteOptions &options) {
  PendingFile file;
  file.failpoints = options.failpoints;
  file.sync = options.sync;
  file.path = std::move(path);
  std::string name = temporaryName(options.temporaryDirectory.empty()
                                       ? directoryOf(file.path)
                                       : options.temporaryDirectory);
  file.fd.reset(guarded(options.failpoints, "create", [&] {
    return open(name.c_str(),
                O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                options.mode);
  }));
  if (!file.fd)
    return makeErrnoError(errno,
                          "cannot create a file for '" + file.path + "'");
  file.temporary = std::move(name);
  if (guarded(options.failpoints, "resize", [&] {
        return ftruncate(file.fd.get(), static_cast<off_t>(size));
      }) != 0)
    return makeErrnoError(errno,
                          "cannot resize a file for '" + file.path + "'");
  return file;
}

PendingFile::~PendingFile() {
  if (!temporary.empty())
    (void)guarded(failpoints, "discard",
                  [&] { return unlink(temporary.c_str()); });
}

Status PendingFile::write(std::span<const uint8_t> bytes) {
  PGKP_TRY(writeAll(fd.get(), bytes, path, failpoints));
  if (sync &&
      guarded(failpoints, "fsync", [&] { return fsync(fd.get()); }) != 0)
    return makeErrnoError(errno, "cannot sync '" + path + "'");
  return {};
}

Status PendingFile::publish() {
  fd.reset();
  if (guarded(failpoints, "rename",
              [&] { return rename(temporary.c_str(), path.c_str()); }) != 0)
    return makeErrnoError(errno, "cannot rename a file to '" + path + "'");
  temporary.clear();
  return !sync ? Status() : syncDirectory(directoryOf(path), failpoints);
}

Status writeFileAtomically(const std::string &path,
                           std::span<const uint8_t> bytes,
                           const AtomicWriteOptions &options) {
  PGKP_ASSIGN(PendingFile file,
              PendingFile::create(path, bytes.size(), options));
  PGKP_TRY(file.write(bytes));
  return file.publish();
}

Status makeDirectories(const std::string &path, unsigned mode) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string prefix = path.substr(0, slash);
    if (guarded("file", "mkdir", [&] { return mkdir(prefix.c_str(), mode); }) !=
            0 &&
        errno != EEXIST) {
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
