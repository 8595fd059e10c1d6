// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "InputFile.h"

#include "base/File.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <zlib.h>

namespace pgkp::rt {

namespace {
constexpr size_t kBuffer = 256 << 10;
/// A tar archive's blocks (POSIX.1-2001, ustar).
constexpr size_t kTarBlock = 512, kTarSize = 124, kTarType = 156,
                 kTarMagic = 257;
} // namespace

/// The file's bytes, decompressed where they are compressed. zlib's own gz*
/// functions take a truncated plain file for a whole one; this does not.
struct InputFile::Source {
  UniqueFd fd;
  bool compressed = false, finished = false;
  z_stream stream{};
  std::vector<unsigned char> raw;
  uint64_t consumed = 0; ///< raw bytes

  ~Source() {
    if (compressed)
      inflateEnd(&stream);
  }

  Expected<size_t> readRaw(void *out, size_t size) {
    ssize_t got;
    do
      got = ::read(fd.get(), out, size);
    while (got < 0 && errno == EINTR);
    if (got < 0)
      return makeErrnoError(errno, "read");
    consumed += static_cast<uint64_t>(got);
    return static_cast<size_t>(got);
  }

  Expected<size_t> read(char *out, size_t size) {
    if (!compressed) {
      if (!raw.empty()) { // the bytes that were looked at for detection
        const size_t count = std::min(size, raw.size());
        std::memcpy(out, raw.data(), count);
        raw.erase(raw.begin(), raw.begin() + static_cast<ptrdiff_t>(count));
        return count;
      }
      return readRaw(out, size);
    }
    stream.next_out = reinterpret_cast<Bytef *>(out);
    stream.avail_out = static_cast<uInt>(size);
    while (!finished && stream.avail_out == size) {
      if (stream.avail_in == 0) {
        PGKP_ASSIGN(const size_t got, readRaw(raw.data(), raw.size()));
        if (got == 0)
          return makeError(Code::corrupt, "gzip data ends early, at byte {}",
                           consumed);
        stream.next_in = raw.data();
        stream.avail_in = static_cast<uInt>(got);
      }
      const int code = inflate(&stream, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        PGKP_ASSIGN(finished, atLastMember());
        if (!finished)
          inflateReset(&stream);
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        return makeError(Code::corrupt, "gzip data is damaged at byte {}: {}",
                         consumed - stream.avail_in,
                         stream.msg ? stream.msg : zError(code));
      }
    }
    return size - stream.avail_out;
  }

  /// gzip files may be concatenated; anything else after a member is padding.
  Expected<bool> atLastMember() {
    if (stream.avail_in == 0) {
      PGKP_ASSIGN(const size_t got, readRaw(raw.data(), raw.size()));
      stream.next_in = raw.data();
      stream.avail_in = static_cast<uInt>(got);
    }
    return stream.avail_in < 2 || stream.next_in[0] != 0x1f ||
           stream.next_in[1] != 0x8b;
  }
};

InputFile::InputFile(std::string path, std::unique_ptr<Source> source)
    : name(std::move(path)), source(std::move(source)), buffer(kBuffer) {}
InputFile::InputFile(InputFile &&) noexcept = default;
InputFile &InputFile::operator=(InputFile &&) noexcept = default;
InputFile::~InputFile() = default;

Expected<InputFile> InputFile::open(const std::string &path) {
  auto source = std::make_unique<Source>();
  source->fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!source->fd)
    return makeErrnoError(errno, fmt::format("cannot open '{}'", path));
  source->raw.resize(kBuffer);
  auto got = source->readRaw(source->raw.data(), kBuffer);
  if (!got)
    return makeError(got.error().code, "{}: {}", path, got.error().message);
  source->compressed =
      *got >= 2 && source->raw[0] == 0x1f && source->raw[1] == 0x8b;
  if (source->compressed) {
    source->stream.next_in = source->raw.data();
    source->stream.avail_in = static_cast<uInt>(*got);
    if (inflateInit2(&source->stream, 16 + MAX_WBITS) != Z_OK) {
      source->compressed = false;
      return makeError(Code::exhausted, "{}: cannot start zlib", path);
    }
  } else {
    source->raw.resize(*got);
  }
  InputFile file(path, std::move(source));
  PGKP_TRY(file.skipTarHeader());
  return file;
}

Status InputFile::skipTarHeader() {
  const std::string_view head = ahead(kTarBlock);
  if (!failure)
    return failure;
  if (head.size() < kTarBlock || head.substr(kTarMagic, 5) != "ustar")
    return {};
  const char type = head[kTarType];
  uint64_t size = 0;
  for (size_t i = kTarSize; i < kTarSize + 11; ++i) {
    const char digit = head[i];
    if (digit < '0' || digit > '7')
      return makeError(Code::corrupt,
                       "{}: the tar header has no octal size at byte {}", name,
                       i);
    size = size * 8 + static_cast<uint64_t>(digit - '0');
  }
  if (type != '0' && type != '\0')
    return makeError(Code::unsupported,
                     "{}: the archive does not begin with a plain file", name);
  at += kTarBlock;
  left = size;
  if (filled - at > left)
    filled = at + left;
  left -= filled - at;
  before -= kTarBlock; // offsets are those in the file of the archive
  linesBefore = 0 - static_cast<size_t>(std::count(
                        buffer.begin(),
                        buffer.begin() + static_cast<ptrdiff_t>(at), '\n'));
  return {};
}

bool InputFile::fill() {
  if (!failure)
    return false;
  linesBefore += static_cast<size_t>(std::count(
      buffer.begin(), buffer.begin() + static_cast<ptrdiff_t>(filled), '\n'));
  before += filled;
  at = filled = 0;
  const size_t wanted = std::min<uint64_t>(buffer.size(), left);
  if (wanted == 0)
    return false;
  auto got = source->read(buffer.data(), wanted);
  if (!got) {
    failure = makeError(got.error().code, "{}: {}", name, got.error().message);
    return false;
  }
  filled = *got;
  if (left != ~0ull) {
    left -= filled;
    if (filled == 0) {
      failure =
          makeError(Code::corrupt, "{}: the tar archive ends early", name);
      return false;
    }
  }
  return filled > 0;
}

std::string_view InputFile::ahead(size_t count) {
  if (at >= filled)
    fill();
  // Only before anything was taken can the rest of the buffer be short.
  while (filled - at < count && at == 0 && filled < buffer.size() && failure) {
    auto got = source->read(buffer.data() + filled, buffer.size() - filled);
    if (!got) {
      failure =
          makeError(got.error().code, "{}: {}", name, got.error().message);
      break;
    }
    if (*got == 0)
      break;
    filled += *got;
  }
  return std::string_view(buffer.data() + at, std::min(count, filled - at));
}

bool InputFile::getLine(std::string &line) {
  line.clear();
  bool any = false;
  while (at < filled || fill()) {
    any = true;
    const char *begin = buffer.data() + at;
    const auto *end =
        static_cast<const char *>(std::memchr(begin, '\n', filled - at));
    const size_t length = end ? static_cast<size_t>(end - begin) : filled - at;
    line.append(begin, length);
    at += length + (end != nullptr);
    if (end)
      break;
  }
  if (!line.empty() && line.back() == '\r')
    line.pop_back();
  return any && failure; // half a line is none
}

size_t InputFile::line() const {
  return 1 + linesBefore +
         static_cast<size_t>(
             std::count(buffer.begin(),
                        buffer.begin() + static_cast<ptrdiff_t>(at), '\n'));
}

tl::unexpected<Error> InputFile::fail(std::string message) const {
  if (!failure)
    return tl::unexpected<Error>(failure.error());
  return makeError(Code::invalidArgument, "{}:{}: {}", name, line(), message);
}

} // namespace pgkp::rt
