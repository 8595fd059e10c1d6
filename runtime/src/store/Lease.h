// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The right to compile a content key, among threads and processes.
#pragma once

#include "base/Digest.h"
#include "base/Status.h"
#include "store/FileLock.h"

#include <string>

namespace pgkp::rt {

/// A lock file `<locks>/<key>.lease` that says who holds it. It ends with its
/// holder: the kernel lets the lock go, and where a forked child keeps it, the
/// holder's process number and start time tell that it is dead. A live holder
/// is never robbed; whoever waits decides for how long. Thread-compatible.
class Lease {
public:
  Lease() = default;
  Lease(Lease &&other) noexcept
      : path(std::exchange(other.path, {})), lock(std::move(other.lock)),
        owner(other.owner) {}
  Lease &operator=(Lease &&other) noexcept {
    release();
    path = std::exchange(other.path, {});
    lock = std::move(other.lock);
    owner = other.owner;
    return *this;
  }
  ~Lease() { release(); }

  /// Never blocks. unavailable: somebody else holds it; the message says who.
  static Expected<Lease> take(const std::string &locks, const Digest &key);

  explicit operator bool() const { return static_cast<bool>(lock); }
  void release();

private:
  std::string path;
  FileLock lock;
  pid_t owner = 0;
};

} // namespace pgkp::rt
