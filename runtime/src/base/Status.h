// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Errors as values. No exception crosses the border of a room.
#pragma once

#include <fmt/format.h>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace pgkp::rt {

/// Why an operation failed; the meaning of each is Abseil's.
enum class Code {
  invalidArgument, ///< the caller's input is at fault
  notFound,
  unavailable, ///< a device, library or worker is not there; try another way
  exhausted,   ///< memory, disk or a limit
  deadline,
  cancelled,
  corrupt, ///< stored or received bytes do not verify
  permission,
  unsupported,
  io, ///< a system call failed
  internal
};

const char *codeName(Code code);

/// A code and one line: what failed, where, what was expected.
struct Error {
  Code code = Code::internal;
  std::string message;
};

template <typename T> using Expected = tl::expected<T, Error>;
using Status = Expected<void>;

/// Builds the error of an Expected: `return makeError(Code::notFound, "...",
/// x)`.
template <typename... Args>
tl::unexpected<Error> makeError(Code code, fmt::format_string<Args...> format,
                                Args &&...args) {
  return tl::unexpected<Error>(
      Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

/// "<what>: <text of errno>" with a code that fits the errno.
tl::unexpected<Error> makeErrnoError(int errnoValue, std::string what);

} // namespace pgkp::rt

/// Leaves the function with the error of a failed Status expression.
#define PGKP_TRY(expression)                                                   \
  do {                                                                         \
    auto pgkpStatus = (expression);                                            \
    if (!pgkpStatus)                                                           \
      return tl::unexpected<::pgkp::rt::Error>(std::move(pgkpStatus.error())); \
  } while (false)

#define PGKP_CONCAT2(a, b) a##b
#define PGKP_CONCAT(a, b) PGKP_CONCAT2(a, b)
/// `PGKP_ASSIGN(auto x, compute());` leaves the function on error.
#define PGKP_ASSIGN(target, expression)                                        \
  auto PGKP_CONCAT(pgkpValue, __LINE__) = (expression);                        \
  if (!PGKP_CONCAT(pgkpValue, __LINE__))                                       \
    return tl::unexpected<::pgkp::rt::Error>(                                  \
        std::move(PGKP_CONCAT(pgkpValue, __LINE__).error()));                  \
  target = std::move(*PGKP_CONCAT(pgkpValue, __LINE__))
