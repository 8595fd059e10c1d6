// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/Pack.h"

#include "schema/Envelope.h"
#include "schema/Module.h"
#include "schema/pack_generated.h"
#include "store/ProfileFile.h"

#include <algorithm>

namespace pgkp::rt {

static constexpr size_t kKeyBytes = 32, kSignatureBytes = sizeof(Signature),
                        kSealBytes = kKeyBytes + kSignatureBytes;
Expected<std::vector<uint8_t>> makePack(const PackContents &contents,
                                        const SecretKey &key) {
  if (!contents.profile && contents.artifacts.empty())
    return makeError(Code::invalidArgument,
                     "nothing to pack: no artifact and no profile");
  uint64_t total = 0;
  for (const auto &artifact : contents.artifacts)
    total += artifact->payload().size() + 64;
  if (total > kMaxPackBytes)
    return makeError(Code::exhausted,
                     "a pack of {} bytes is over the limit of {} bytes; pack "
                     "fewer artifacts",
                     total, kMaxPackBytes);

  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<schema::PackedArtifact>> artifacts;
  for (const auto &artifact : contents.artifacts) {
    artifacts.push_back(schema::CreatePackedArtifact(
        builder, builder.CreateVector(artifact->payload().data(),
                                      artifact->payload().size())));
  }
  const auto artifactsAt = builder.CreateVector(artifacts);
  flatbuffers::Offset<flatbuffers::Vector<uint8_t>> profileAt = 0;
  if (contents.profile)
    profileAt = builder.CreateVector(serializeProfile(*contents.profile));
  const auto producerAt = builder.CreateString(contents.producer);
  schema::FinishPackBodyBuffer(
      builder, schema::CreatePackBody(builder, kFormatVersion, producerAt,
                                      profileAt, artifactsAt));

  const std::span<const uint8_t> pack(builder.GetBufferPointer(),
                                      builder.GetSize());
  const Signature signature = key.sign(kPackDomain, pack);
  const PublicKey signer = key.publicKey();
  std::vector<uint8_t> payload(signer.raw().begin(), signer.raw().end());
  payload.insert(payload.end(), signature.begin(), signature.end());
  payload.insert(payload.end(), pack.begin(), pack.end());
  return seal(FileKind::pack, payload);
}

static Expected<std::shared_ptr<const StoredArtifact>>
openArtifact(const schema::PackedArtifact &packed) {
  // A buffer of its own, as alignment counts from its first byte.
  std::vector<uint8_t> bytes(packed.payload()->begin(),
                             packed.payload()->end());
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  if (bytes.size() < 8 || !schema::VerifyArtifactBuffer(verifier) ||
      !schema::GetArtifact(bytes.data())->content_key())
    return makeError(Code::corrupt, "it does not verify");
  const Digest key =
      toDigest(*schema::GetArtifact(bytes.data())->content_key());
  PGKP_ASSIGN(auto artifact, StoredArtifact::create(key, std::move(bytes)));
  if (!artifact->keyHolds())
    return makeError(Code::corrupt, "artifact {} is not what its key says",
                     key.hex());
  return artifact;
}

/// What the signature covers. Its bytes are those of somebody we trust, which
/// does not make them right.
static Expected<PackContents> parse(std::span<const uint8_t> bytes,
                                    const std::string &what) {
  flatbuffers::Verifier::Options limits;
  limits.max_tables = 1 << 22;
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), limits);
  if (bytes.size() < 8 || !schema::VerifyPackBodyBuffer(verifier))
    return makeError(Code::corrupt, "'{}': pack does not verify", what);
  const schema::PackBody &pack = *schema::GetPackBody(bytes.data());
  if (pack.format_version() != kFormatVersion)
    return makeError(Code::unsupported,
                     "'{}': pack has format version {}, this build reads {}",
                     what, pack.format_version(), kFormatVersion);
  PackContents contents;
  if (pack.producer())
    contents.producer = pack.producer()->str();
  if (pack.profile() && pack.profile()->size() > 0) {
    PGKP_ASSIGN(
        contents.profile,
        parseProfile({pack.profile()->begin(), pack.profile()->end()}, what));
  }
  if (pack.artifacts())
    for (unsigned i = 0; i < pack.artifacts()->size(); ++i) {
      auto artifact = openArtifact(*pack.artifacts()->Get(i));
      if (!artifact)
        return makeError(Code::corrupt, "'{}': artifact {} of {}: {}", what, i,
                         pack.artifacts()->size(), artifact.error().message);
      contents.artifacts.push_back(std::move(*artifact));
    }
  return contents;
}

Expected<PackContents> openPack(std::vector<uint8_t> file,
                                const PublicKey &trusted,
                                const std::string &what) {
  const auto unsealed = unseal(FileKind::pack, file, what);
  if (!unsealed)
    return tl::unexpected<Error>(unsealed.error());
  const std::span<const uint8_t> payload = *unsealed;
  if (payload.size() < kSealBytes)
    return makeError(Code::corrupt, "'{}': pack has no signature", what);
  std::array<uint8_t, kKeyBytes> raw;
  std::copy_n(payload.begin(), raw.size(), raw.begin());
  Signature signature;
  std::copy_n(payload.begin() + kKeyBytes, signature.size(), signature.begin());
  if (std::all_of(signature.begin(), signature.end(),
                  [](uint8_t byte) { return byte == 0; }))
    return makeError(Code::permission,
                     "'{}': pack is not signed; a signature by key {} is "
                     "expected",
                     what, trusted.name());
  if (PublicKey(raw) != trusted)
    return makeError(Code::permission,
                     "'{}': pack is signed by key {}, key {} is expected", what,
                     PublicKey(raw).name(), trusted.name());
  if (!trusted.verifies(signature, kPackDomain, payload.subspan(kSealBytes)))
    return makeError(Code::permission,
                     "'{}': the signature by key {} does not fit the pack",
                     what, trusted.name());
  // Moved to the front, where it is aligned like any allocation.
  file.erase(file.begin(), file.begin() + kEnvelopeBytes + kSealBytes);
  return parse(file, what);
}

Expected<ImportReport> importArtifacts(Store &store,
                                       const PackContents &contents) {
  ImportReport report;
  for (const auto &artifact : contents.artifacts) {
    if (store.contains(artifact->contentKey())) {
      ++report.present;
      continue;
    }
    const StoreStats before = store.stats();
    const std::span<const uint8_t> bytes = artifact->payload();
    PGKP_TRY(store.put(artifact->contentKey(), {bytes.begin(), bytes.end()}));
    const StoreStats after = store.stats();
    if (after.writeErrors != before.writeErrors ||
        after.mismatched != before.mismatched)
      return makeError(Code::io,
                       "artifact {} cannot be written to '{}'; {} of {} were "
                       "added",
                       artifact->contentKey().hex(), store.directory(),
                       report.added, contents.artifacts.size());
    ++report.added;
  }
  return report;
}

} // namespace pgkp::rt
