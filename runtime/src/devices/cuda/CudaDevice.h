// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file One NVIDIA GPU through the driver API.
#pragma once

#include "devices/device/Device.h"

#include <memory>
#include <string>

namespace pgkp::rt {

struct CudaOptions {
  /// The driver library; empty: PGKP_CUDA_DRIVER, then libcuda.so.1.
  std::string library;
  int ordinal = 0;
  /// A CUcontext of the caller's, which must outlive the device; its device
  /// then counts, not `ordinal`. Null: the primary context, which the CUDA
  /// runtime API and every framework on it use, too.
  void *context = nullptr;
};

/// Images and streams must be gone before the device is destroyed. Several
/// devices of one process do not know of each other: each has its own images
/// and memory; artifacts are for an architecture and serve all. unavailable: no
/// driver, no such device; unsupported: a device before compute capability 7.0.
Expected<std::unique_ptr<Device>>
makeCudaDevice(const CudaOptions &options = {});

} // namespace pgkp::rt
