// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Named places where tests inject faults; PGKP_FAILPOINTS or
/// setFailpoint arms them.
///
/// PGKP_FAILPOINTS is a comma-separated list of name=action[:value][@n]: action
/// is error (value: errno, a number or a name such as ENOSPC; EIO if missing),
/// kill or delay (value: milliseconds); n counts hits, 1 (the next) if missing,
/// 0: every hit.
#pragma once

#include "base/Status.h"

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

namespace pgkp::rt {

enum class FailpointAction {
  none,
  error, ///< the system call reports an error (errno given)
  kill,  ///< the process gets SIGKILL here
  delay  ///< sleeps before it goes on
};

namespace detail {
/// False once the environment was read and nothing is armed or recorded.
extern std::atomic<bool> failpointsActive;
int failpointSlow(std::string_view name);
} // namespace detail

/// What the caller should do; kill and delay have happened when this returns.
/// One relaxed load when nothing is armed. Thread-safe. \returns 0, or the
/// errno to act on as if the system call had failed with it.
inline int failpoint(std::string_view name) {
  if (!detail::failpointsActive.load(std::memory_order_relaxed)) [[likely]]
    return 0;
  return detail::failpointSlow(name);
}

/// Arms `name` for its n-th hit from now (1 = next; 0 = every hit); value:
/// errno or milliseconds. Several may be armed at one name.
void setFailpoint(std::string_view name, FailpointAction action, int value,
                  unsigned nth = 1);
/// Arms what `list` says, in the syntax of PGKP_FAILPOINTS. invalidArgument.
Status setFailpoints(std::string_view list);
/// Disarms all and forgets the names seen.
void clearFailpoints();

/// Names are noted only while recording, so that they cost nothing otherwise.
void recordFailpoints(bool on);
/// Names hit while recording, each once, in order of the first hit.
std::vector<std::string> failpointsSeen();

} // namespace pgkp::rt
