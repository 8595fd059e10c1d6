// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "prepare/WorkerOptions.h"

#include "base/Env.h"

#include <algorithm>
#include <cstdlib>

namespace pgkp::rt {

WorkerOptions WorkerOptions::fromEnvironment(unsigned defaultWorkers) {
  WorkerOptions options;
  options.path = getEnv("PGKP_WORKER").value_or("");
  options.workers = defaultWorkers;
  if (auto value = getEnvNumber("PGKP_WORKERS", 0, 1024))
    options.workers = static_cast<unsigned>(*value);
  if (auto value = getEnvNumber("PGKP_JOB_TIMEOUT_S", 0.001, 86400)) {
    options.jobTimeout = fromSeconds(*value);
    options.bundleTimeout = std::max(options.bundleTimeout, options.jobTimeout);
  }
  if (auto value = getEnvNumber("PGKP_WORKER_IDLE_S", 0.001, 86400))
    options.idleTimeout = fromSeconds(*value);
  if (auto value = getEnvNumber("PGKP_WORKER_MEMORY_MIB", 0, 1 << 20))
    options.memoryMib = static_cast<uint64_t>(*value);
  return options;
}

std::vector<std::string> WorkerOptions::workerEnvironment() const {
  static constexpr const char *allowed[] = {
      "PATH",          "LD_LIBRARY_PATH", "TMPDIR",       "CUDA_HOME",
      "CUDA_PATH",     "PGKP_LOG",        "ASAN_OPTIONS", "LSAN_OPTIONS",
      "UBSAN_OPTIONS", "TSAN_OPTIONS"};
  std::vector<std::string> result{"LC_ALL=C"};
  for (const char *name : allowed)
    if (const char *value = std::getenv(name))
      result.push_back(std::string(name) + "=" + value);
  result.insert(result.end(), environment.begin(), environment.end());
  return result;
}

} // namespace pgkp::rt
