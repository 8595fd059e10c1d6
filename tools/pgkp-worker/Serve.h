// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The worker's side of the protocol (wire.fbs).
#pragma once

#include "base/Status.h"
#include "schema/wire_generated.h"

#include <cstdint>
#include <span>
#include <vector>

namespace mlir::pgkp {
class HostCompiler;
}

namespace pgkp::rt {

schema::JobStatus jobStatus(Code code);

/// One answer to one request; a request that does not verify is bad_input.
std::vector<uint8_t> answer(mlir::pgkp::HostCompiler &compiler,
                            std::span<const uint8_t> request);

/// Answers frames on the socket until the other end closes it.
Status serve(int fd);

} // namespace pgkp::rt
