// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/Store.h"

#include "base/Env.h"
#include "base/Log.h"
#include "schema/Module.h"
#include "schema/tuning_generated.h"
#include "store/DiskTier.h"
#include "store/MemoryTier.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

namespace pgkp::rt {

// The kernel's own numbers of extents and arguments are checked where the
// module is known.
static constexpr size_t kAnyDims = 64, kAnyArgs = 65535;

Expected<std::shared_ptr<const StoredArtifact>>
StoredArtifact::create(const Digest &contentKey, std::vector<uint8_t> payload) {
  std::shared_ptr<StoredArtifact> result(new StoredArtifact);
  result->key = contentKey;
  result->bytes = std::move(payload);
  const std::vector<uint8_t> &bytes = result->bytes;
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  if (bytes.size() < 8 || !schema::VerifyArtifactBuffer(verifier))
    return makeError(Code::corrupt, "artifact {} does not verify",
                     contentKey.hex());
  result->table = schema::GetArtifact(bytes.data());
  const schema::Artifact &artifact = *result->table;
  if (!artifact.content_key() ||
      toDigest(*artifact.content_key()) != contentKey)
    return makeError(Code::corrupt, "artifact {} is filed under another key",
                     contentKey.hex());
  if (Status status = checkArtifact(artifact, kAnyDims, kAnyArgs); !status)
    return makeError(Code::corrupt, "artifact {}: {}", contentKey.hex(),
                     status.error().message);
  if (!artifact.code_hash() ||
      toDigest(*artifact.code_hash()) !=
          hashBytes({artifact.code()->data(), artifact.code()->size()}))
    return makeError(Code::corrupt,
                     "artifact {}: its code is not what was hashed",
                     contentKey.hex());
  return result;
}

std::string defaultStoreDirectory() {
  if (std::optional<std::string> given = getEnv("PGKP_CACHE_DIR"))
    return *given;
  // The XDG base directory specification: relative paths are to be ignored.
  if (const char *xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg == '/')
    return std::string(xdg) + "/pgkp";
  if (const char *home = std::getenv("HOME"); home && *home == '/')
    return std::string(home) + "/.cache/pgkp";
  return {};
}

struct Store::Impl {
  explicit Impl(const StoreOptions &options)
      : clock(options.clock ? *options.clock : ownClock),
        memory(options.memoryLimitBytes) {}

  SteadyClock ownClock;
  const Clock &clock;
  MemoryTier memory;
  std::unique_ptr<DiskTier> disk; ///< null: memory only
  std::string directory;
  std::optional<Error> problem;

  std::atomic<uint64_t> memoryHits{0}, diskHits{0}, misses{0}, corrupt{0},
      readErrors{0}, puts{0}, writeErrors{0};

  /// What the disk holds otherwise: small, or only there while there is no
  /// disk.
  std::mutex mutex;
  std::unordered_map<Digest, std::vector<uint8_t>, DigestHash> bundles, tuning;

  Expected<std::vector<uint8_t>> read(RecordKind kind, const Digest &key);
  void write(RecordKind kind, const Digest &key,
             std::span<const uint8_t> bytes);
  Expected<std::vector<uint8_t>>
  readSmall(RecordKind kind, const Digest &key,
            std::unordered_map<Digest, std::vector<uint8_t>, DigestHash> &kept);
};

Store::Store() = default;
Store::~Store() = default;

std::unique_ptr<Store> Store::open(StoreOptions options) {
  std::unique_ptr<Store> store(new Store);
  store->impl = std::make_unique<Impl>(options);
  Impl &impl = *store->impl;
  if (options.directory.empty() || options.directory == "none")
    return store;
  auto disk = DiskTier::open(options.directory, impl.clock, options.writeRetry);
  if (disk) {
    impl.disk = std::move(*disk);
    impl.directory = impl.disk->directory();
  } else {
    impl.problem = disk.error();
    log(LogLevel::warning,
        "the store '{}' cannot be used, prepared kernels are kept in memory "
        "only: "
        "{}",
        options.directory, disk.error().message);
  }
  return store;
}

const std::string &Store::directory() const { return impl->directory; }
const std::optional<Error> &Store::problem() const { return impl->problem; }

/// From disk, counted.
Expected<std::vector<uint8_t>> Store::Impl::read(RecordKind kind,
                                                 const Digest &key) {
  Expected<std::vector<uint8_t>> bytes =
      disk ? disk->read(kind, key)
           : makeError(Code::notFound, "{} is not in the store", key.hex());
  if (bytes)
    return bytes;
  if (bytes.error().code == Code::notFound)
    ++misses;
  else if (bytes.error().code == Code::corrupt)
    ++corrupt;
  else
    ++readErrors;
  return bytes;
}

/// To disk if there is one; a failure is counted, and said by the disk tier.
void Store::Impl::write(RecordKind kind, const Digest &key,
                        std::span<const uint8_t> bytes) {
  ++puts;
  if (disk && !disk->write(kind, key, bytes))
    ++writeErrors;
}

Expected<std::shared_ptr<const StoredArtifact>>
Store::get(const Digest &contentKey) {
  if (auto artifact = impl->memory.get(contentKey)) {
    ++impl->memoryHits;
    return artifact;
  }
  PGKP_ASSIGN(std::vector<uint8_t> payload, impl->read(kArtifacts, contentKey));
  auto artifact = StoredArtifact::create(contentKey, std::move(payload));
  if (!artifact) {
    ++impl->corrupt;
    impl->disk->quarantine(kArtifacts, contentKey, artifact.error().message);
    return artifact;
  }
  ++impl->diskHits;
  return impl->memory.put(std::move(*artifact));
}

Expected<std::shared_ptr<const StoredArtifact>>
Store::put(const Digest &contentKey, std::vector<uint8_t> bytes) {
  PGKP_ASSIGN(auto artifact,
              StoredArtifact::create(contentKey, std::move(bytes)));
  auto filed = impl->memory.put(std::move(artifact));
  impl->write(kArtifacts, contentKey, filed->payload());
  return filed;
}

bool Store::contains(const Digest &contentKey) {
  return impl->memory.contains(contentKey) ||
         (impl->disk && impl->disk->contains(kArtifacts, contentKey));
}

Expected<std::vector<RecordInfo>> Store::list() {
  std::vector<RecordInfo> result;
  if (impl->disk) {
    PGKP_ASSIGN(result, impl->disk->list(kArtifacts));
  }
  const size_t onDisk = result.size();
  for (const RecordInfo &info : impl->memory.list()) {
    const auto end = result.begin() + static_cast<ptrdiff_t>(onDisk);
    const auto it = std::lower_bound(
        result.begin(), end, info.key,
        [](const RecordInfo &l, const Digest &r) { return l.key < r; });
    if (it == end || it->key != info.key)
      result.push_back(info);
  }
  std::sort(result.begin(), result.end(),
            [](const auto &l, const auto &r) { return l.key < r.key; });
  return result;
}

Status Store::erase(const Digest &contentKey) {
  const bool inMemory = impl->memory.erase(contentKey);
  if (impl->disk) {
    Status status = impl->disk->erase(kArtifacts, contentKey);
    if (status || !inMemory || status.error().code != Code::notFound)
      return status;
  }
  if (!inMemory)
    return makeError(Code::notFound, "{} is not in the store",
                     contentKey.hex());
  return {};
}

StoreStats Store::stats() const {
  StoreStats stats;
  stats.memoryHits = impl->memoryHits;
  stats.diskHits = impl->diskHits;
  stats.misses = impl->misses;
  stats.corrupt = impl->corrupt;
  stats.readErrors = impl->readErrors;
  stats.puts = impl->puts;
  stats.writeErrors = impl->writeErrors;
  impl->memory.addTo(stats);
  return stats;
}

Expected<std::vector<uint8_t>> Store::Impl::readSmall(
    RecordKind kind, const Digest &key,
    std::unordered_map<Digest, std::vector<uint8_t>, DigestHash> &kept) {
  {
    std::lock_guard lock(mutex);
    if (const auto it = kept.find(key); it != kept.end()) {
      ++memoryHits;
      return it->second;
    }
  }
  Expected<std::vector<uint8_t>> bytes = read(kind, key);
  if (bytes)
    ++diskHits;
  return bytes;
}

Expected<std::vector<uint8_t>> Store::getBundle(const Digest &key) {
  PGKP_ASSIGN(std::vector<uint8_t> bytes,
              impl->readSmall(kBundles, key, impl->bundles));
  return bytes;
}

Status Store::putBundle(const Digest &key, std::span<const uint8_t> bundle) {
  flatbuffers::Verifier verifier(bundle.data(), bundle.size());
  if (bundle.size() < 8 || !schema::VerifyBundleBuffer(verifier))
    return makeError(Code::corrupt, "bundle {} does not verify", key.hex());
  if (!impl->disk) {
    std::lock_guard lock(impl->mutex);
    impl->bundles[key].assign(bundle.begin(), bundle.end());
  }
  impl->write(kBundles, key, bundle);
  return {};
}

static Digest tuningKey(const Digest &contentKey, const std::string &device) {
  return Hasher()
      .add(std::string_view("pgkp tuning"))
      .add(contentKey.bytes)
      .add(device)
      .finish();
}

static Expected<TuningResult> parseTuning(std::span<const uint8_t> bytes,
                                          const Digest &contentKey,
                                          const std::string &device) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  if (bytes.size() < 8 || !schema::VerifyTuningBuffer(verifier))
    return makeError(Code::corrupt, "tuning record of {} does not verify",
                     contentKey.hex());
  schema::TuningT table;
  schema::GetTuning(bytes.data())->UnPackTo(&table);
  if (!table.content_key || toDigest(*table.content_key) != contentKey ||
      table.device != device || table.format_version != kFormatVersion ||
      !std::isfinite(table.generic_ns) || table.generic_ns < 0 ||
      !std::isfinite(table.variant_ns) || table.variant_ns < 0)
    return makeError(Code::corrupt, "tuning record of {} is of another variant",
                     contentKey.hex());
  return TuningResult{contentKey,
                      table.key ? toDigest(*table.key) : Digest(),
                      table.device,
                      table.generic_ns,
                      table.variant_ns,
                      table.launches,
                      std::move(table.extents)};
}

Expected<TuningResult> Store::getTuning(const Digest &contentKey,
                                        const std::string &device) {
  const Digest key = tuningKey(contentKey, device);
  PGKP_ASSIGN(std::vector<uint8_t> bytes,
              impl->readSmall(kTuning, key, impl->tuning));
  Expected<TuningResult> result = parseTuning(bytes, contentKey, device);
  if (!result) {
    ++impl->corrupt;
    if (impl->disk)
      impl->disk->quarantine(kTuning, key, result.error().message);
  }
  return result;
}

Status Store::putTuning(const TuningResult &result) {
  auto digest = [](const Digest &d) {
    return std::make_unique<schema::Digest>(
        flatbuffers::span<const uint8_t, 32>(d.bytes));
  };
  schema::TuningT table;
  table.format_version = kFormatVersion;
  table.content_key = digest(result.contentKey);
  table.key = digest(result.key);
  table.device = result.device;
  table.generic_ns = result.genericNs;
  table.variant_ns = result.variantNs;
  table.launches = result.launches;
  table.extents = result.extents;
  flatbuffers::FlatBufferBuilder builder;
  schema::FinishTuningBuffer(builder, schema::Tuning::Pack(builder, &table));
  const std::span<const uint8_t> bytes(builder.GetBufferPointer(),
                                       builder.GetSize());
  PGKP_TRY(parseTuning(bytes, result.contentKey, result.device));
  const Digest key = tuningKey(result.contentKey, result.device);
  {
    std::lock_guard lock(impl->mutex);
    impl->tuning[key].assign(bytes.begin(), bytes.end());
  }
  impl->write(kTuning, key, bytes);
  return {};
}

} // namespace pgkp::rt
