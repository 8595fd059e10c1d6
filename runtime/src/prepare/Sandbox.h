// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What a compiler process is not allowed to ask of the kernel.
#pragma once

#include <linux/filter.h>
#include <vector>

namespace pgkp::rt {

/// A seccomp filter by which the calls that no compiler needs fail with EPERM:
/// sockets other than local ones, other processes' memory, mounts, modules,
/// keys, clocks. A list of what is denied, not of what is allowed: the C
/// library and the assembler that a worker starts may use any other call.
std::vector<sock_filter> sandboxFilter();

} // namespace pgkp::rt
