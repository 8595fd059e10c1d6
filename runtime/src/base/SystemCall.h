// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file System calls that tests can make fail, or kill the process at.
#pragma once

#include "base/Failpoint.h"

#include <cerrno>
#include <fmt/format.h>
#include <string_view>

namespace pgkp::rt {

/// Makes the call between the failpoints "<room>.<name>", which can take its
/// place with an error, and "<room>.<name>.done", where it has happened.
/// \returns what it returned; -1 with errno set for an error that was asked
/// for.
template <typename Function>
auto guarded(std::string_view room, std::string_view name, Function &&call)
    -> decltype(call()) {
  if (!detail::failpointsActive.load(std::memory_order_relaxed)) [[likely]]
    return call();
  if (const int asked = failpoint(fmt::format("{}.{}", room, name))) {
    errno = asked;
    return -1;
  }
  const auto result = call();
  const int failure = errno;
  (void)failpoint(fmt::format("{}.{}.done", room, name));
  errno = failure;
  return result;
}

} // namespace pgkp::rt
