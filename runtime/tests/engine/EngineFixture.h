// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Engines for tests: small bundles, a worker that answers at once.
#pragma once

#include "base/Log.h"
#include "engine/Engine.h"
#include "schema/TestBundle.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace pgkp::rt::testing {

/// The fixtures' bundle with a generic artifact of every kernel. The kernel's
/// name tells the test worker how to behave (tests/prepare/worker).
inline schema::BundleT simBundle(const std::string &kernel = "matmul") {
  schema::BundleT bundle = fixtures::testBundle();
  bundle.module_ = kernel + ".mlir";
  bundle.producer = "test worker 1"; // what the worker says of itself
  bundle.kernels[0]->name = kernel;
  for (const auto &k : bundle.kernels) {
    k->generic.clear();
    k->generic.push_back(
        fixtures::artifact(k->name, toDigest(*k->hash), toDigest(*k->hash)));
  }
  bundle.kernels[1]->dims.clear();
  return bundle;
}

/// The path of a program beside the test's own.
inline std::string besideTest(const std::string &name) {
  return (std::filesystem::canonical("/proc/self/exe").parent_path() / name)
      .string();
}

inline EngineOptions simOptions(const std::string &policy) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  setenv("PGKP_WORKER_MEMORY_MIB", "0", 1); // they reserve terabytes
#endif
  EngineOptions options;
  options.device = "sim";
  options.policy = policy;
  options.cacheDir = "none";
  options.workers = 1;
  options.worker = besideTest("pgkp_test_worker");
  return options;
}

} // namespace pgkp::rt::testing
