// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/Env.h"
#include "prepare/WorkerPool.h"

#include "base/File.h"

#include <climits>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pgkp::rt {

static constexpr const char *kName = "pgkp-worker";

static bool isProgram(const std::string &path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

static std::string resolved(const char *path) {
  char buffer[PATH_MAX];
  return realpath(path, buffer) ? buffer : "";
}

Expected<std::string> findWorker() {
  if (std::optional<std::string> given = getEnv("PGKP_WORKER")) {
    if (isProgram(*given))
      return *given;
    return makeError(Code::unavailable,
                     "PGKP_WORKER: '{}' is not an executable file", *given);
  }
  std::vector<std::string> directories;
  if (const std::string self = resolved("/proc/self/exe"); !self.empty())
    directories.push_back(directoryOf(self));
  Dl_info library;
  if (dladdr(reinterpret_cast<void *>(&findWorker), &library) != 0 &&
      library.dli_fname)
    if (const std::string path = resolved(library.dli_fname); !path.empty()) {
      directories.push_back(directoryOf(path));
      // An installed or built tree: lib/libpgkp_runtime.so and bin/pgkp-worker.
      directories.push_back(directoryOf(directoryOf(path)) + "/bin");
    }
  for (const std::string &directory : directories)
    if (const std::string path = directory + "/" + kName; isProgram(path))
      return path;
  if (const char *path = std::getenv("PATH")) {
    const std::string list(path);
    for (size_t start = 0; start <= list.size();) {
      const size_t stop = std::min(list.find(':', start), list.size());
      const std::string candidate =
          list.substr(start, stop - start) + "/" + kName;
      // A relative entry would run whatever lies in the working directory.
      if (candidate[0] == '/' && stop > start && isProgram(candidate))
        return candidate;
      start = stop + 1;
    }
  }
  return makeError(Code::unavailable,
                   "no '{}' beside '{}' or on PATH; set PGKP_WORKER", kName,
                   directories.empty() ? "?" : directories.front());
}

} // namespace pgkp::rt
