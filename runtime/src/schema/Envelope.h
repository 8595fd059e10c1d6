// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What every file of ours starts with: magic, kind, version, size,
/// checksum.
#pragma once

#include "base/Digest.h"
#include "base/Status.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pgkp::rt {

enum class FileKind : uint32_t {
  bundle = 1,
  artifact = 2,
  profile = 3,
  pack = 4,
  tuning = 5,
  recipe = 6,
  usage = 7
};

/// 64 bytes, little endian: magic "PGKPFILE", kind u32, format u32, payload
/// size u64, check u64, XXH3-128 of the payload (low half, high half), 16
/// zeros. `check` is the XXH3-64 of the header with 0 in its place. These find
/// damage at the speed of memory; who made a file is told by its directory's
/// owner, and for packs by a signature.
constexpr size_t kEnvelopeBytes = 64;
/// Of the envelope. 1 had BLAKE2b-256, which cost 30 times the read of a file.
constexpr uint32_t kEnvelopeFormat = 2;
/// Of the FlatBuffers inside.
constexpr uint32_t kFormatVersion = 1;

/// Envelope and payload as one buffer.
std::vector<uint8_t> seal(FileKind kind, std::span<const uint8_t> payload);

/// The payload inside `file`. Corrupt: bad magic, header, size or checksum.
/// Unsupported: whole as far as one can tell, but of another envelope format or
/// kind. `what` names the file in the
/// message.
Expected<std::span<const uint8_t>>
unseal(FileKind kind, std::span<const uint8_t> file, const std::string &what);

/// The envelope's format that a file says it has; nothing if its header is not
/// whole. Its first kEnvelopeBytes bytes suffice.
std::optional<uint32_t> sealedFormat(std::span<const uint8_t> file);

/// Reads a whole file and unseals it. \returns the payload alone.
Expected<std::vector<uint8_t>> readSealed(FileKind kind,
                                          const std::string &path);
/// Writes to a temporary file in the same directory, syncs it, renames it.
Status writeSealed(FileKind kind, const std::string &path,
                   std::span<const uint8_t> payload);

/// "bundle", "artifact", ...
const char *kindName(FileKind kind);

} // namespace pgkp::rt
