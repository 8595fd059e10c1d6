// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "schema/Envelope.h"

#include "base/File.h"

#include <algorithm>
#include <bit>
#include <cstring>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pgkp::rt {

static_assert(std::endian::native == std::endian::little,
              "the envelope is written as it lies in memory");

namespace {
struct Header {
  char magic[8];
  uint32_t kind, format;
  uint64_t size, check;
  uint64_t checksum[2];
  uint8_t reserved[16];
};
static_assert(sizeof(Header) == kEnvelopeBytes);
} // namespace

static constexpr char kMagic[] = "PGKPFILE";

const char *kindName(FileKind kind) {
  switch (kind) {
  case FileKind::bundle:
    return "bundle";
  case FileKind::artifact:
    return "artifact";
  case FileKind::profile:
    return "profile";
  case FileKind::pack:
    return "pack";
  case FileKind::tuning:
    return "tuning record";
  case FileKind::recipe:
    return "recipe";
  case FileKind::usage:
    return "usage table";
  }
  return "unknown kind";
}

// Protects the header itself, so that another version or kind is told apart
// from damage.
static uint64_t checkOf(Header header) {
  header.check = 0;
  uint8_t bytes[sizeof header];
  std::memcpy(bytes, &header, sizeof header);
  return XXH3_64bits(bytes, sizeof bytes);
}

static Header headerFor(FileKind kind, std::span<const uint8_t> payload) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof header.magic);
  header.kind = static_cast<uint32_t>(kind);
  header.format = kEnvelopeFormat;
  header.size = payload.size();
  const XXH128_hash_t checksum = XXH3_128bits(payload.data(), payload.size());
  header.checksum[0] = checksum.low64;
  header.checksum[1] = checksum.high64;
  header.check = checkOf(header);
  return header;
}

std::optional<uint32_t> sealedFormat(std::span<const uint8_t> file) {
  Header header;
  if (file.size() < sizeof header)
    return std::nullopt;
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof header.magic) != 0 ||
      header.check != checkOf(header))
    return std::nullopt;
  return header.format;
}

std::vector<uint8_t> seal(FileKind kind, std::span<const uint8_t> payload) {
  const Header header = headerFor(kind, payload);
  std::vector<uint8_t> file(kEnvelopeBytes + payload.size());
  std::memcpy(file.data(), &header, sizeof header);
  std::copy(payload.begin(), payload.end(), file.begin() + kEnvelopeBytes);
  return file;
}

Expected<std::span<const uint8_t>>
unseal(FileKind kind, std::span<const uint8_t> file, const std::string &what) {
  Header header;
  if (file.size() < sizeof header)
    return makeError(Code::corrupt, "'{}': {} bytes are too few for a PGKP {}",
                     what, file.size(), kindName(kind));
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof header.magic) != 0)
    return makeError(Code::corrupt, "'{}' is not a PGKP {}: wrong magic number",
                     what, kindName(kind));
  if (header.check != checkOf(header))
    return makeError(Code::corrupt, "'{}': the header of a PGKP {} is damaged",
                     what, kindName(kind));
  if (header.format != kEnvelopeFormat)
    return makeError(Code::unsupported,
                     "'{}' has format version {}, this build reads {}", what,
                     header.format, kEnvelopeFormat);
  if (header.kind != static_cast<uint32_t>(kind))
    return makeError(Code::unsupported, "'{}' is a PGKP {}, expected a {}",
                     what, kindName(static_cast<FileKind>(header.kind)),
                     kindName(kind));
  const std::span<const uint8_t> payload = file.subspan(sizeof header);
  if (header.size != payload.size())
    return makeError(Code::corrupt,
                     "'{}': its header announces {} bytes, it has {}", what,
                     header.size, payload.size());
  const XXH128_hash_t checksum = XXH3_128bits(payload.data(), payload.size());
  if (checksum.low64 != header.checksum[0] ||
      checksum.high64 != header.checksum[1])
    return makeError(Code::corrupt, "'{}': checksum does not match", what);
  return payload;
}

Expected<std::vector<uint8_t>> readSealed(FileKind kind,
                                          const std::string &path) {
  PGKP_ASSIGN(std::vector<uint8_t> file, readFile(path));
  PGKP_TRY(unseal(kind, file, path));
  // Moved down in place: the payload alone must start at the vector's
  // alignment.
  file.erase(file.begin(), file.begin() + kEnvelopeBytes);
  return file;
}

Status writeSealed(FileKind kind, const std::string &path,
                   std::span<const uint8_t> payload) {
  return writeFileAtomically(path, seal(kind, payload));
}

} // namespace pgkp::rt
