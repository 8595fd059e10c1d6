// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Tensors as NumPy files.
#pragma once

#include "Tensor.h"

#include <string>

namespace pgkp::rt {

/// Writes the tensor in NumPy's format 1.0 (little endian, C order); bf16,
/// which NumPy does not know, as its bits in uint16.
Status writeNpy(const std::string &path, const Tensor &tensor);

} // namespace pgkp::rt
