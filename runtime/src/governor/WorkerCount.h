// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file How many worker processes a machine has room for.
#pragma once

#include "governor/Governor.h"

namespace pgkp::rt {

/// What a worker is assumed to need at its largest job.
constexpr double kWorkerBytes = 512.0 * (1 << 20);

/// All cores allowed but one, as far as half of the free memory carries them;
/// at least one.
unsigned workerCount(const MachineLoad &load);

} // namespace pgkp::rt
