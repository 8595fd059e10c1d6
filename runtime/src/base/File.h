// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Files: owning descriptors, whole-file reads, writes that are seen
/// whole or not at all.
#pragma once

#include "base/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace pgkp::rt {

/// Owns a file descriptor. Thread-compatible.
class UniqueFd {
public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd(fd) {}
  UniqueFd(UniqueFd &&other) noexcept : fd(other.release()) {}
  UniqueFd &operator=(UniqueFd &&other) noexcept {
    if (this != &other)
      reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }
  int release() { return std::exchange(fd, -1); }
  void reset(int next = -1) {
    if (fd >= 0)
      close(fd);
    fd = next;
  }

private:
  int fd = -1;
};

/// The bytes of a regular file. exhausted: longer than `limit`; notFound,
/// permission, io. Failpoints "<failpoints>.open", ".stat" and ".read", each
/// also with ".done".
Expected<std::vector<uint8_t>> readFile(const std::string &path,
                                        uint64_t limit = uint64_t{1} << 32,
                                        std::string_view failpoints = "file");

struct AtomicWriteOptions {
  /// Where the temporary file is made, on the same file system; empty: beside
  /// `path`.
  std::string temporaryDirectory;
  /// Failpoints "<failpoints>.create", ".resize", ".write", ".fsync",
  /// ".rename", ".diropen", ".fsyncdir" and ".discard" (of what was not
  /// published), each also with ".done" for after the call.
  std::string_view failpoints = "file";
  unsigned mode = 0644;
  /// Off: after a failure of the machine the file may be damaged.
  bool sync = true;
};

/// A file that nobody sees before it is whole. Thread-compatible.
class PendingFile {
public:
  /// Makes the temporary file. It gets its size at once, so that whoever adds
  /// up sizes sees what is coming.
  static Expected<PendingFile> create(std::string path, uint64_t size,
                                      const AtomicWriteOptions &options = {});
  PendingFile(PendingFile &&other) noexcept
      : path(std::move(other.path)),
        temporary(std::exchange(other.temporary, {})), fd(std::move(other.fd)),
        failpoints(other.failpoints), sync(other.sync) {}
  /// Removes the temporary file unless it was published.
  ~PendingFile();

  /// Writes all of it, and syncs it to the disk if asked to.
  Status write(std::span<const uint8_t> bytes);
  /// Renames it to its path and syncs the directory. Another process sees the
  /// old content or the new, whole.
  Status publish();

private:
  PendingFile() = default;
  std::string path, temporary;
  UniqueFd fd;
  std::string_view failpoints;
  bool sync = true;
};

/// PendingFile in one step.
Status writeFileAtomically(const std::string &path,
                           std::span<const uint8_t> bytes,
                           const AtomicWriteOptions &options = {});

/// The prefix of the names of temporary files, for whoever cleans up after a
/// crash.
constexpr std::string_view kTemporaryPrefix = ".tmp-";

/// Makes the directory and its parents. Those that exist are left as they are.
Status makeDirectories(const std::string &path, unsigned mode = 0755);

/// Everything before the last '/'; "." if there is none.
std::string directoryOf(const std::string &path);

} // namespace pgkp::rt
