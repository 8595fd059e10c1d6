// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A profile and artifacts in one signed file, to carry to other
/// machines.
///
/// The file is a sealed one (schema/Envelope.h, kind pack). Its payload: public
/// key (32 bytes), Ed25519ph signature (64 bytes), PackBody FlatBuffer
/// (schema/pack.fbs). What is signed is kPackDomain and the FlatBuffer. The
/// public key in the file only tells whose signature it is: whoever reads a
/// pack says whom they trust.
#pragma once

#include "schema/profile_generated.h"
#include "store/SigningKey.h"
#include "store/Store.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pgkp::rt {

/// No other message of ours starts like it; grows with the format version.
constexpr std::string_view kPackDomain = "pgkp pack 1\n";
constexpr uint64_t kMaxPackBytes = uint64_t{1} << 30;

struct PackContents {
  std::optional<schema::ProfileT> profile;
  std::vector<std::shared_ptr<const StoredArtifact>> artifacts;
  std::string producer; ///< of the tool that wrote it
};

/// The bytes of a pack file. exhausted: over kMaxPackBytes. invalidArgument:
/// nothing to pack.
Expected<std::vector<uint8_t>> makePack(const PackContents &contents,
                                        const SecretKey &key);

/// Checks the signature before it looks at what was signed, then every part of
/// it: each artifact as the store would, its key, the profile's numbers. Either
/// all of it is good or nothing is returned. permission: signed by somebody
/// else, or the signature is wrong. corrupt, unsupported. `what` names the
/// file.
Expected<PackContents> openPack(std::vector<uint8_t> file,
                                const PublicKey &trusted,
                                const std::string &what);

struct ImportReport {
  uint64_t added = 0, present = 0; ///< artifacts
};

/// Puts the artifacts into the store. Those that are there already stay. io:
/// the disk refused, and how many were added.
Expected<ImportReport> importArtifacts(Store &store,
                                       const PackContents &contents);

} // namespace pgkp::rt
