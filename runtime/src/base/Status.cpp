// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/Status.h"

#include <cerrno>
#include <system_error>

namespace pgkp::rt {

const char *codeName(Code code) {
  switch (code) {
  case Code::invalidArgument:
    return "invalid argument";
  case Code::notFound:
    return "not found";
  case Code::unavailable:
    return "unavailable";
  case Code::exhausted:
    return "exhausted";
  case Code::deadline:
    return "deadline exceeded";
  case Code::cancelled:
    return "cancelled";
  case Code::corrupt:
    return "corrupt";
  case Code::permission:
    return "permission denied";
  case Code::unsupported:
    return "unsupported";
  case Code::io:
    return "input/output error";
  case Code::internal:
    return "internal error";
  }
  return "unknown";
}

tl::unexpected<Error> makeErrnoError(int errnoValue, std::string what) {
  Code code = Code::io;
  switch (errnoValue) {
  case ENOENT:
    code = Code::notFound;
    break;
  case EACCES:
  case EPERM:
  case EROFS:
    code = Code::permission;
    break;
  case ENOSPC:
  case EDQUOT:
  case ENOMEM:
  case EMFILE:
  case ENFILE:
    code = Code::exhausted;
    break;
  default:
    break;
  }
  return tl::unexpected<Error>(
      Error{code, fmt::format("{}: {}", what,
                              std::generic_category().message(errnoValue))});
}

} // namespace pgkp::rt
