// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The prepared-kernel cache: artifacts, bundles and tuning results in
/// memory and on disk.
///
/// On disk each record is one sealed file (schema/Envelope.h) under its own
/// name:
///   <dir>/v1/artifacts/ab/<64 hex digits>.pgkp     also bundles/, tuning/
///   <dir>/v1/quarantine/                           records that did not verify
///   <dir>/v1/tmp/                                  writes that are not
///   finished
/// Files suffice: a name gives the path, a rename publishes, and no reader
/// holds a lock that a dead process could keep. An index may be added beside
/// them; it would only speed up `list`.
#pragma once

#include "base/Clock.h"
#include "base/Digest.h"
#include "base/Status.h"
#include "schema/record_generated.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pgkp::rt {

/// A verified Artifact and the bytes it lies in. Thread-safe: immutable.
/// Whoever holds one pins it: eviction drops the store's reference only.
class StoredArtifact {
public:
  /// Verifies the FlatBuffer and that it is filed under `contentKey`, and that
  /// its code is what was hashed. corrupt.
  static Expected<std::shared_ptr<const StoredArtifact>>
  create(const Digest &contentKey, std::vector<uint8_t> payload);

  const Digest &contentKey() const { return key; }
  const schema::Artifact &artifact() const { return *table; }
  const schema::Artifact *operator->() const { return table; }
  /// The Artifact FlatBuffer, without envelope.
  std::span<const uint8_t> payload() const { return bytes; }

private:
  StoredArtifact() = default;
  Digest key;
  std::vector<uint8_t> bytes;
  const schema::Artifact *table = nullptr;
};

struct StoreStats {
  uint64_t memoryHits = 0, diskHits = 0;
  uint64_t misses = 0;     ///< not there
  uint64_t corrupt = 0;    ///< did not verify; now in quarantine
  uint64_t readErrors = 0; ///< a system call failed: not a miss
  uint64_t puts = 0, writeErrors = 0;
  uint64_t evictions = 0; ///< from memory
  uint64_t memoryBytes = 0, memoryRecords = 0;
};

struct RecordInfo {
  Digest key;
  uint64_t bytes = 0; ///< of the file; of the payload if it is in memory only
  int64_t modifiedS = 0; ///< Unix time; 0 if it is in memory only
  bool onDisk = false;
};

/// Artifacts by content key. Thread-safe.
class ArtifactStore {
public:
  virtual ~ArtifactStore() = default;
  /// notFound: compile it. corrupt: it was there, did not verify, and is in
  /// quarantine; compile it. io, permission, exhausted: the disk failed, which
  /// says nothing about the record.
  virtual Expected<std::shared_ptr<const StoredArtifact>>
  get(const Digest &contentKey) = 0;
  /// Takes an Artifact FlatBuffer. It is in memory when this returns; if the
  /// disk refuses, that is counted and said once, and is no error. corrupt: the
  /// artifact does not verify.
  virtual Expected<std::shared_ptr<const StoredArtifact>>
  put(const Digest &contentKey, std::vector<uint8_t> artifact) = 0;
  /// Does not read the record.
  virtual bool contains(const Digest &contentKey) = 0;
  virtual Expected<std::vector<RecordInfo>> list() = 0;
  /// notFound if it was nowhere.
  virtual Status erase(const Digest &contentKey) = 0;
  virtual StoreStats stats() const = 0;
};

/// What measuring a variant told (schema/tuning.fbs).
struct TuningResult {
  Digest contentKey, key;
  std::string device;
  double genericNs = 0, variantNs = 0;
  uint32_t launches = 0;
  std::vector<int64_t> extents;
};

struct StoreOptions {
  /// Empty or "none": memory only.
  std::string directory;
  uint64_t memoryLimitBytes = uint64_t{256} << 20;
  /// After a failed write the disk is left alone for this long.
  TimeNs writeRetry = 60 * kNsPerSecond;
  const Clock *clock = nullptr; ///< null: SteadyClock
};

/// $PGKP_CACHE_DIR, else $XDG_CACHE_HOME/pgkp, else $HOME/.cache/pgkp. "none"
/// as it is; empty if none of them is set.
std::string defaultStoreDirectory();

/// Thread-safe, and safe beside other processes on the same directory.
class Store final : public ArtifactStore {
public:
  /// Never fails: a directory that cannot be used (not made, not ours, a
  /// symbolic link, writable by others) gives one warning that names it, and
  /// memory only.
  static std::unique_ptr<Store> open(StoreOptions options);
  ~Store() override;

  Expected<std::shared_ptr<const StoredArtifact>>
  get(const Digest &contentKey) override;
  Expected<std::shared_ptr<const StoredArtifact>>
  put(const Digest &contentKey, std::vector<uint8_t> artifact) override;
  bool contains(const Digest &contentKey) override;
  Expected<std::vector<RecordInfo>> list() override;
  Status erase(const Digest &contentKey) override;
  StoreStats stats() const override;

  /// Bundles by a digest of source module, targets, profile and producer.
  /// Payload without envelope; errors as for `get`. Bundles are not kept in
  /// memory unless there is no disk.
  Expected<std::vector<uint8_t>> getBundle(const Digest &key);
  Status putBundle(const Digest &key, std::span<const uint8_t> bundle);

  /// By content key and device name. Errors as for `get`.
  Expected<TuningResult> getTuning(const Digest &contentKey,
                                   const std::string &device);
  Status putTuning(const TuningResult &result);

  /// Where it is on disk; empty: memory only.
  const std::string &directory() const;
  /// Why there is no disk although one was asked for.
  const std::optional<Error> &problem() const;

private:
  Store();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace pgkp::rt
