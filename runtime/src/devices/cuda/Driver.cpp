// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/cuda/Driver.h"

#include "base/Env.h"

#include <dlfcn.h>
#include <map>
#include <mutex>
#include <vector>

namespace pgkp::rt::cuda {
namespace {

constexpr const char *kDefaultLibrary = "libcuda.so.1";

/// dlerror() repeats the path; the first line is enough.
std::string loaderMessage() {
  const char *text = dlerror();
  std::string line = text ? text : "unknown error";
  return line.substr(0, line.find('\n'));
}

/// "13.0" for 13000.
std::string versionText(const Driver &driver) {
  int version = 0;
  if (!driver.driverVersion || driver.driverVersion(&version) != kSuccess)
    return "of unknown version";
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Status resolve(void *library, const std::string &name, Driver &driver) {
  std::vector<const char *> missing;
#define PGKP_CUDA_SYMBOL(member, symbol, parameters)                           \
  driver.member =                                                              \
      reinterpret_cast<decltype(driver.member)>(dlsym(library, #symbol));      \
  if (!driver.member)                                                          \
    missing.push_back(#symbol);
#define PGKP_CUDA_OPTIONAL(member, symbol, parameters)                         \
  driver.member =                                                              \
      reinterpret_cast<decltype(driver.member)>(dlsym(library, #symbol));
#include "devices/cuda/DriverSymbols.def"
  if (missing.empty())
    return {};
  return makeError(Code::unavailable,
                   "the CUDA driver '{}' ({}) lacks {}; expected a driver for "
                   "CUDA 12.0 or newer",
                   name, versionText(driver), fmt::join(missing, ", "));
}

Expected<std::unique_ptr<Driver>> load(const std::string &name) {
  void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return makeError(Code::unavailable,
                     "no CUDA driver: {}; is NVIDIA's driver installed and "
                     "visible here?",
                     loaderMessage());
  auto driver = std::make_unique<Driver>();
  PGKP_TRY(resolve(library, name, *driver));
  const Result result = driver->init(0);
  if (Status status = driver->check(result, "cuInit"); !status)
    return makeError(Code::unavailable, "CUDA driver '{}': {}", name,
                     status.error().message);
  return driver;
}

} // namespace

Expected<const Driver *> Driver::open(std::string library) {
  if (library.empty())
    library = getEnv("PGKP_CUDA_DRIVER").value_or(kDefaultLibrary);
  // Failures are not kept: a container may get its driver later.
  static std::mutex mutex;
  static auto *drivers = new std::map<std::string, std::unique_ptr<Driver>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<Driver> &known = (*drivers)[library];
  if (!known) {
    PGKP_ASSIGN(known, load(library));
  }
  return known.get();
}

Status Driver::check(Result result, const char *what) const {
  if (result == kSuccess)
    return {};
  const char *name = nullptr, *text = nullptr;
  errorName(result, &name);
  errorString(result, &text);
  Code code = Code::internal;
  switch (result) {
  case kInvalidValue:
    code = Code::invalidArgument;
    break;
  case kOutOfMemory:
    code = Code::exhausted;
    break;
  case kDeinitialized:
  case kNoDevice:
  case kInvalidDevice:
    code = Code::unavailable;
    break;
  case kInvalidImage:
  case kNotFound:
    code = Code::corrupt;
    break;
  case kNoBinaryForGpu:
    code = Code::unsupported;
    break;
  }
  return makeError(code, "{}: {} ({})", what, text ? text : "unknown error",
                   name ? name : fmt::format("{}", result).c_str());
}

} // namespace pgkp::rt::cuda
