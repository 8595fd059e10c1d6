// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A module for kernel traces, which come without a bundle.
#pragma once

#include "Trace.h"

#include "engine/Replay.h"

namespace pgkp::rt {

/// A kernel for each name, a class for each of its extent vectors, with no
/// prior probability: that a key exists, history alone can tell. Kernels whose
/// names say so are matrix products. Keys are the same for every trace of the
/// same program, so that profiles fit. exhausted: more keys than a module has.
Expected<ReplayWorkload> workloadOf(const KernelTrace &trace);

/// Whether a kernel's or operator's name says that it is a product: those have
/// the larger slowdown on a generic variant.
bool isProduct(std::string_view name);

} // namespace pgkp::rt
