// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Locks between processes that end with their holder.
#pragma once

#include "base/Clock.h"
#include "base/File.h"
#include "base/Status.h"

#include <string>

namespace pgkp::rt {

/// flock on a file. The kernel releases it when the holder dies, unless a child
/// that was forked while it was held lives on. Thread-compatible; two threads
/// of one process exclude each other like two processes.
class FileLock {
public:
  FileLock() = default;
  /// Never blocks. unavailable: somebody holds it. unsupported: locks do not
  /// work on this file system. Others: the file cannot be made.
  static Expected<FileLock> tryTake(const std::string &path);
  /// Blocks for at most `limit` of real time: then `deadline`.
  static Expected<FileLock> take(const std::string &path, TimeNs limit);

  explicit operator bool() const { return static_cast<bool>(fd); }
  int get() const { return fd.get(); }
  void release() { fd.reset(); }

private:
  UniqueFd fd;
};

} // namespace pgkp::rt
