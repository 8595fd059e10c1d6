// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/Store.h"

#include "base/Env.h"
#include "base/Log.h"
#include "schema/ContentKey.h"
#include "schema/Module.h"
#include "store/StoreImpl.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sys/stat.h>

namespace pgkp::rt {

// The kernel's own numbers of extents and arguments are checked where the
// module is known.
static constexpr size_t kAnyDims = 64, kAnyArgs = 65535;

Expected<std::shared_ptr<const StoredArtifact>>
StoredArtifact::create(const Digest &contentKey, std::vector<uint8_t> payload,
                       bool checkCode) {
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
      (checkCode &&
       toDigest(*artifact.code_hash()) !=
           hashBytes({artifact.code()->data(), artifact.code()->size()})))
    return makeError(Code::corrupt,
                     "artifact {}: its code is not what was hashed",
                     contentKey.hex());
  return result;
}

bool StoredArtifact::keyHolds() const { return contentKeyOf(*table) == key; }

double StoredArtifact::costMs() const {
  const schema::StageTimes *times = table->stages();
  const double cost = times ? double{times->generate_ms()} +
                                  times->compile_ms() + times->link_ms()
                            : 0;
  return std::isfinite(cost) && cost > 0 ? cost : 0;
}

uint64_t defaultStoreLimit() {
  constexpr double mebibytes = 2048;
  return static_cast<uint64_t>(
             getEnvNumber("PGKP_CACHE_MIB", 1, 1 << 30).value_or(mebibytes))
         << 20;
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

Store::Store() = default;
Store::~Store() = default;

/// One line for each directory: at once when it is new, else at level info.
static void announce(const std::string &directory, bool isNew) {
  const std::string line = fmt::format(
      "prepared kernels are kept in '{}'; PGKP_CACHE_DIR moves it", directory);
  if (isNew)
    logLine(LogLevel::info, line);
  else
    log(LogLevel::info, "{}", line);
}

std::unique_ptr<Store> Store::open(StoreOptions options) {
  std::unique_ptr<Store> store(new Store);
  store->impl = std::make_unique<Impl>(options);
  Impl &impl = *store->impl;
  if (options.directory.empty() || options.directory == "none")
    return store;
  struct stat info;
  const bool isNew = lstat(options.directory.c_str(), &info) != 0;
  auto disk = DiskTier::open(options.directory, impl.clock, options);
  if (disk) {
    impl.disk = std::move(*disk);
    impl.directory = impl.disk->directory();
    impl.memory.setBacked(true);
    if (options.announce)
      announce(impl.directory, isNew);
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

void Store::Impl::count(const Error &error) {
  if (error.code == Code::notFound)
    ++misses;
  else if (error.code == Code::corrupt)
    ++corrupt;
  else if (error.code == Code::unsupported)
    ++mismatched;
  else
    ++readErrors;
}

Expected<std::vector<uint8_t>> Store::Impl::read(RecordKind kind,
                                                 const Digest &key) {
  Expected<std::vector<uint8_t>> bytes =
      disk ? disk->read(kind, key)
           : makeError(Code::notFound, "{} is not in the store", key.hex());
  if (!bytes)
    count(bytes.error());
  return bytes;
}

void Store::Impl::reject(RecordKind kind, const Digest &key,
                         const Error &error) {
  count(error);
  if (disk)
    disk->quarantine(kind, key, error.message);
}

void Store::Impl::write(RecordKind kind, const Digest &key,
                        std::span<const uint8_t> bytes, double costMs) {
  ++puts;
  if (!disk)
    return;
  if (Status status = disk->write(kind, key, bytes, costMs); status)
    return;
  else if (status.error().code == Code::unsupported)
    ++mismatched;
  else
    ++writeErrors;
}

Expected<std::shared_ptr<const StoredArtifact>>
Store::get(const Digest &contentKey) {
  if (auto artifact = impl->memory.get(contentKey)) {
    ++impl->memoryHits;
    return artifact;
  }
  PGKP_ASSIGN(std::vector<uint8_t> payload, impl->read(kArtifacts, contentKey));
  // The record's checksum held, and it was written only after the code's had.
  auto artifact = StoredArtifact::create(contentKey, std::move(payload), false);
  if (!artifact) {
    impl->reject(kArtifacts, contentKey, artifact.error());
    return artifact;
  }
  if (!(*artifact)->keyHolds()) {
    ++impl->mismatched;
    return makeError(Code::unsupported,
                     "artifact {} was made by '{}' for '{}', which is not what "
                     "its key says; it is left alone",
                     contentKey.hex(),
                     (*artifact)->artifact().producer()->str(),
                     (*artifact)->artifact().target()->chip()->str());
  }
  ++impl->diskHits;
  return impl->memory.put(std::move(*artifact));
}

Expected<std::shared_ptr<const StoredArtifact>>
Store::put(const Digest &contentKey, std::vector<uint8_t> bytes) {
  PGKP_ASSIGN(auto artifact,
              StoredArtifact::create(contentKey, std::move(bytes)));
  auto filed = impl->memory.put(std::move(artifact));
  if (!filed->keyHolds()) {
    // Good for this process, but the next one must not take it for what its
    // name says.
    ++impl->mismatched;
    log(LogLevel::info,
        "artifact {} was made by '{}', not by the compiler asked for; it is "
        "kept "
        "in memory only",
        contentKey.hex(), filed->artifact().producer()->str());
    return filed;
  }
  // Another process may have won the race, which is as good; and what is not
  // for us is not overwritten.
  if (impl->disk && impl->disk->contains(kArtifacts, contentKey)) {
    const auto existing = impl->disk->read(kArtifacts, contentKey);
    if (existing || (existing.error().code != Code::corrupt &&
                     existing.error().code != Code::notFound)) {
      if (!existing)
        impl->count(existing.error());
      return filed;
    }
  }
  impl->write(kArtifacts, contentKey, filed->payload(), filed->costMs());
  impl->noteBuilt(*filed);
  return filed;
}

bool Store::contains(const Digest &contentKey) {
  return impl->memory.contains(contentKey) ||
         (impl->disk && impl->disk->serves(kArtifacts, contentKey));
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
  stats.mismatched = impl->mismatched;
  stats.puts = impl->puts;
  stats.writeErrors = impl->writeErrors;
  if (impl->disk)
    stats.diskEvictions = impl->disk->quota().evictions();
  impl->memory.addTo(stats);
  return stats;
}

Expected<std::vector<uint8_t>>
Store::Impl::readSmall(RecordKind kind, const Digest &key, Small &kept) {
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

Status Store::putBundle(const Digest &key, std::span<const uint8_t> bundle,
                        double costMs) {
  flatbuffers::Verifier verifier(bundle.data(), bundle.size());
  if (bundle.size() < 8 || !schema::VerifyBundleBuffer(verifier))
    return makeError(Code::corrupt, "bundle {} does not verify", key.hex());
  if (!impl->disk) {
    std::lock_guard lock(impl->mutex);
    impl->bundles[key].assign(bundle.begin(), bundle.end());
  }
  impl->write(kBundles, key, bundle, costMs);
  return {};
}

Expected<Lease> Store::lease(const Digest &key) {
  if (!impl->disk)
    return makeError(Code::unsupported, "a store in memory has no leases");
  return impl->disk->lease(key);
}

} // namespace pgkp::rt
