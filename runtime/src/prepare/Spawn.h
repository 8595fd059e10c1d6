// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Starts a worker process that inherits nothing and cannot outlive us.
#pragma once

#include "base/File.h"
#include "base/Status.h"

#include <string>
#include <sys/types.h>
#include <vector>

namespace pgkp::rt {

struct SpawnOptions {
  std::string path;
  std::vector<std::string> environment; ///< "NAME=value", all of it
  uint64_t memoryMib = 0;               ///< address space; 0: no limit
  bool background = true;               ///< idle CPU and I/O class, nice 19
};

struct Child {
  pid_t pid = -1;
  UniqueFd pidfd;  ///< readable when it ended; empty on kernels before 5.2
  UniqueFd socket; ///< our end, not blocking
  UniqueFd errors; ///< its standard error, not blocking
};

/// Runs `<path> --fd=3` with the socket as descriptor 3 and no other but
/// /dev/null and its standard error; in its own process group; no new
/// privileges; behind sandboxFilter() where that is permitted; core dumps off;
/// first to be chosen when memory runs out. It dies with the calling thread,
/// which must outlive it. No fork handler runs. Failpoints "worker.socketpair",
/// "worker.pipe", "worker.spawn".
Expected<Child> spawn(const SpawnOptions &options);

} // namespace pgkp::rt
