// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "schema/Frame.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace pgkp::rt {

// Both ends may have set O_NONBLOCK on their side; then we wait here.
static Status waitFor(int fd, short events) {
  pollfd poller{fd, events, 0};
  while (poll(&poller, 1, -1) < 0)
    if (errno != EINTR)
      return makeErrnoError(errno, "cannot wait for the worker socket");
  return {};
}

Status writeFrame(int fd, std::span<const uint8_t> payload) {
  if (payload.size() > kMaxFrameBytes)
    return makeError(Code::exhausted,
                     "message of {} bytes, at most {} fit into a frame",
                     payload.size(), kMaxFrameBytes);
  FrameHeader header;
  header.size = payload.size();
  iovec parts[2] = {{&header, sizeof header},
                    {const_cast<uint8_t *>(payload.data()), payload.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  size_t left = sizeof header + payload.size();
  while (left > 0) {
    ssize_t put = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (put < 0) {
      if (errno == EINTR)
        continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        PGKP_TRY(waitFor(fd, POLLOUT));
        continue;
      }
      return makeErrnoError(errno, "cannot write to the worker socket");
    }
    left -= static_cast<size_t>(put);
    while (put > 0) {
      iovec &part = *message.msg_iov;
      const size_t step = std::min(static_cast<size_t>(put), part.iov_len);
      part.iov_base = static_cast<char *>(part.iov_base) + step;
      part.iov_len -= step;
      put -= static_cast<ssize_t>(step);
      if (part.iov_len == 0 && message.msg_iovlen > 1) {
        ++message.msg_iov;
        --message.msg_iovlen;
      }
    }
  }
  return {};
}

// Fills `bytes`; \returns how many came before the end of the stream.
static Expected<size_t> readFully(int fd, std::span<uint8_t> bytes) {
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = read(fd, bytes.data() + filled, bytes.size() - filled);
    if (got < 0) {
      if (errno == EINTR)
        continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        PGKP_TRY(waitFor(fd, POLLIN));
        continue;
      }
      if (errno == ECONNRESET)
        break;
      return makeErrnoError(errno, "cannot read from the worker socket");
    }
    if (got == 0)
      break;
    filled += static_cast<size_t>(got);
  }
  return filled;
}

Status checkFrameHeader(const FrameHeader &header) {
  const FrameHeader expected;
  if (header.magic != expected.magic || header.version != expected.version)
    return makeError(Code::corrupt,
                     "frame starts with {:#x} version {}, expected {:#x} "
                     "version {}",
                     header.magic, header.version, expected.magic,
                     expected.version);
  if (header.size > kMaxFrameBytes)
    return makeError(Code::corrupt,
                     "frame announces {} bytes, at most {} are read",
                     header.size, kMaxFrameBytes);
  return {};
}

Expected<std::vector<uint8_t>> readFrame(int fd) {
  FrameHeader header;
  PGKP_ASSIGN(
      const size_t got,
      readFully(fd, {reinterpret_cast<uint8_t *>(&header), sizeof header}));
  if (got == 0)
    return makeError(Code::notFound, "the other end closed the worker socket");
  if (got < sizeof header)
    return makeError(Code::corrupt, "the worker socket ended inside a frame");
  PGKP_TRY(checkFrameHeader(header));
  // Grows as bytes come: a header alone must not make us allocate its size.
  constexpr size_t step = size_t{1} << 20;
  std::vector<uint8_t> payload;
  while (payload.size() < header.size) {
    const size_t start = payload.size();
    const size_t want = std::min<size_t>(step, header.size - start);
    payload.resize(start + want);
    PGKP_ASSIGN(const size_t part,
                readFully(fd, std::span(payload).subspan(start)));
    if (part < want)
      return makeError(Code::corrupt, "the worker socket ended inside a frame");
  }
  return payload;
}

} // namespace pgkp::rt
