// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Messages between runtime and worker on a stream socket.
#pragma once

#include "base/Clock.h"
#include "base/Status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace pgkp::rt {

/// Header of a frame, 16 bytes, host byte order: both ends are one machine.
struct FrameHeader {
  uint32_t magic = 0x574b4750; ///< "PGKW"
  uint32_t version = 1;
  uint64_t size = 0; ///< of the payload
};
constexpr uint64_t kMaxFrameBytes = uint64_t{256} << 20;

/// corrupt: not a header of ours, or a size over kMaxFrameBytes.
Status checkFrameHeader(const FrameHeader &header);

/// Blocking, EINTR-safe, never raises SIGPIPE.
Status writeFrame(int fd, std::span<const uint8_t> payload);
/// Blocking. notFound: the other end closed between frames. corrupt: bad
/// header, a size over kMaxFrameBytes, or an end in the middle of a frame.
Expected<std::vector<uint8_t>> readFrame(int fd);

} // namespace pgkp::rt
