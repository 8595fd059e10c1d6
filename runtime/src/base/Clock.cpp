// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/Clock.h"

#include <ctime>

namespace pgkp::rt {

TimeNs SteadyClock::now() const {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return ts.tv_sec * kNsPerSecond + ts.tv_nsec;
}

} // namespace pgkp::rt
