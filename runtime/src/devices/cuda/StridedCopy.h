// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Copies between strided memrefs on the device, by the copy engine.
#pragma once

#include "devices/cuda/Driver.h"

namespace pgkp::rt::cuda {

bool sameShape(uint32_t rank, const void *srcHeader, const void *dstHeader);

/// One driver call for each index of the dimensions that do not fit into a
/// copy with two. Of equal shape; strides must not be negative.
Result copyDevice(const Driver &driver, StreamHandle stream, uint32_t rank,
                  uint32_t elementBytes, const void *srcHeader,
                  const void *dstHeader);

} // namespace pgkp::rt::cuda
