// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A loaded cubin and how its kernel is launched.
#pragma once

#include "devices/cuda/CudaStream.h"
#include "devices/device/Device.h"
#include "schema/Module.h"

#include <array>
#include <atomic>
#include <vector>

namespace pgkp::rt::cuda {

/// Everything that a launch needs, decided at load: an image's handle.
struct LaunchPlan {
  struct Map {
    uint16_t arg;
    int dataType, swizzle;
    std::vector<Expr> sizes, strides, box;
  };

  std::string kernel; ///< for messages
  FunctionHandle function = nullptr;
  std::array<Expr, 3> grid;
  std::array<unsigned, 3> block{1, 1, 1};
  unsigned sharedBytes = 0;
  bool programmatic = false;
  std::vector<schema::Param> params;
  std::vector<Map> maps;
  size_t leastArgs = 0, leastExtents = 0; ///< that the parameters refer to
  /// A graph holds a launch of it: the code stays for good.
  mutable std::atomic<bool> pinned{false};

  /// Grid and parameters for these arguments, then one launch.
  Status launch(const Driver &driver, CudaStream &stream,
                const LaunchArgs &call) const;
};

class CudaImage final : public Image {
public:
  /// Loads the code into the current context, finds the kernel and does what
  /// its first launch would do.
  static Expected<std::unique_ptr<Image>>
  load(const Driver &driver, ContextHandle context,
       const schema::Artifact &artifact);
  ~CudaImage() override;
  size_t bytes() const override { return size; }

private:
  CudaImage(const Driver &driver, ContextHandle context,
            std::unique_ptr<LaunchPlan> plan, size_t size)
      : Image(plan.get()), driver(driver), context(context),
        plan(std::move(plan)), size(size) {}

  const Driver &driver;
  const ContextHandle context;
  const std::unique_ptr<LaunchPlan> plan;
  const size_t size;
  ModuleHandle module = nullptr;
};

} // namespace pgkp::rt::cuda
