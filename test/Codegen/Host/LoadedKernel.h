// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A kernel compiled through the driver and loaded as the runtime does:
/// what tests and benchmarks of host code share.
#pragma once

#include "pgkp/Codegen/Driver.h"

#include "pgkp-c/program.h"

#include <string>
#include <utility>
#include <vector>

namespace pgkp::test {

/// The class, the configuration (integers are told by their digits) and the
/// pipeline of one variant.
struct Variant {
  std::vector<schema::Fact> facts;
  std::vector<std::pair<std::string, std::string>> config;
  schema::Pipeline pipeline = schema::Pipeline::lean;
};

std::string describe(const Variant &variant);

int64_t evaluate(const schema::ExprT &expr,
                 const std::vector<int64_t> &extents);

/// {allocated, aligned, offset, sizes, strides} of a dense tensor.
std::vector<int64_t> makeHeader(void *data, const std::vector<int64_t> &shape);

class LoadedKernel {
public:
  static rt::Expected<LoadedKernel> create(mlir::pgkp::HostCompiler &compiler,
                                           const std::string &source,
                                           const Variant &variant);
  LoadedKernel(LoadedKernel &&other);
  ~LoadedKernel();

  /// Bytes of scratch at these extents.
  int64_t workspaceBytes(const std::vector<int64_t> &extents) const;

  schema::ArtifactT artifact;
  pgkp_host_kernel_fn function = nullptr;

private:
  LoadedKernel() = default;
  void *handle = nullptr;
};

} // namespace pgkp::test
