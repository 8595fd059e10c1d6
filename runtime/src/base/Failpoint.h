// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Named places where tests inject faults; PGKP_FAILPOINTS or setFailpoint arms them.
#pragma once

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

/// What the caller should do; kill and delay have happened when this returns.
/// \returns 0, or the errno to act on as if the system call had failed with it.
int failpoint(std::string_view name);

/// Arms `name` for its n-th hit from now (1 = next); value: errno or milliseconds.
void setFailpoint(std::string_view name, FailpointAction action, int value,
                  unsigned nth = 1);
void clearFailpoints();
/// Names hit since the start, for enumerating them in tests.
std::vector<std::string> failpointsSeen();

} // namespace pgkp::rt
