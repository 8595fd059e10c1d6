// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The prepared-kernel cache: artifacts, bundles, tuning results and
/// recipes in memory and on disk.
///
/// On disk each record is one sealed file (schema/Envelope.h) under its own
/// name (store/Layout.h). Files suffice: a name gives the path, a rename
/// publishes, and no reader holds a lock that a dead process could keep.
#pragma once

#include "base/Clock.h"
#include "base/Digest.h"
#include "base/Status.h"
#include "schema/recipe_generated.h"
#include "schema/record_generated.h"
#include "store/Lease.h"

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
  /// Verifies the FlatBuffer and that it is filed under `contentKey`; unless
  /// `checkCode` is false (a checksum over all of it held just now), also that
  /// its code is what was hashed. corrupt.
  static Expected<std::shared_ptr<const StoredArtifact>>
  create(const Digest &contentKey, std::vector<uint8_t> payload,
         bool checkCode = true);

  /// Whether the artifact's own terms (kernel, class, configuration, target,
  /// compiler) give the key that it is filed under. One that another compiler
  /// made than the one asked for does not.
  bool keyHolds() const;
  /// Time that compiling it took, in ms; 0: not known.
  double costMs() const;

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
  /// Of another format version, or made by another compiler than its key says:
  /// neither read nor overwritten.
  uint64_t mismatched = 0;
  uint64_t puts = 0, writeErrors = 0;
  uint64_t evictions = 0;     ///< from memory
  uint64_t diskEvictions = 0; ///< by this process
  uint64_t memoryBytes = 0, memoryRecords = 0;
};

struct RecordInfo {
  Digest key;
  uint64_t bytes = 0; ///< of the file; of the payload if it is in memory only
  int64_t modifiedS = 0; ///< Unix time; 0 if it is in memory only
  bool onDisk = false;
};

/// What eviction knows of a record on disk.
struct RecordUse {
  double uses = 0;   ///< aged: half after a week
  double costMs = 0; ///< of making it; 0: not known
  double priority = 0;
  int64_t lastS = 0; ///< Unix time; 0: not known
  bool pinned = false;
};

/// What was found when every record was read.
struct VerifyReport {
  struct Problem {
    std::string kind; ///< folder of the record
    Digest key;
    Error error;
  };
  uint64_t verified = 0;
  std::vector<Problem> problems; ///< corrupt ones are in quarantine now
};

/// What lies in a store's directory.
struct StoreContents {
  struct Kind {
    std::string name; ///< the folder
    uint64_t files = 0, bytes = 0;
  };
  std::vector<Kind> kinds;   ///< of records, then quarantine and tmp
  uint64_t chargedBytes = 0; ///< as the limit counts them
  uint64_t limitBytes = 0;
  uint64_t pinned = 0; ///< records
};

/// What a clean-up did; bytes as the limit counts them, in blocks of 4 KiB.
struct CollectReport {
  uint64_t removedFiles = 0, freedBytes = 0, bytes = 0;
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
  /// Whether `get` is worth a try: it may still find damage. A record of
  /// another format version is none.
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

/// $PGKP_CACHE_MIB in bytes, else 2 GiB.
uint64_t defaultStoreLimit();

struct StoreOptions {
  /// Empty or "none": memory only.
  std::string directory;
  uint64_t memoryLimitBytes = uint64_t{256} << 20;
  /// Of everything in the directory. Default: $PGKP_CACHE_MIB.
  uint64_t diskLimitBytes = defaultStoreLimit();
  /// After a failed write the disk is left alone for this long.
  TimeNs writeRetry = 60 * kNsPerSecond;
  const Clock *clock = nullptr; ///< null: SteadyClock
  /// Off for tools that look into a store: what they read counts as no use.
  bool noteUses = true;
  /// Says where the store is when the directory is made (one line, whatever the
  /// log level); later at level info.
  bool announce = false;
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

  /// The right to make what is filed under `key`. Never blocks. unavailable:
  /// another thread or process has it. unsupported: nothing can be locked here
  /// (no disk, or it cannot be written); make it without.
  Expected<Lease> lease(const Digest &key);

  /// Bundles by a digest of source module, targets, profile and producer.
  /// Payload without envelope; errors as for `get`. Bundles are not kept in
  /// memory unless there is no disk.
  Expected<std::vector<uint8_t>> getBundle(const Digest &key);
  /// `costMs`: what building it took.
  Status putBundle(const Digest &key, std::span<const uint8_t> bundle,
                   double costMs = 0);

  /// By content key and device name. Errors as for `get`.
  Expected<TuningResult> getTuning(const Digest &contentKey,
                                   const std::string &device);
  Status putTuning(const TuningResult &result);

  /// Recipes by recipeKey (schema/ContentKey.h); on disk only. Errors as for
  /// `get`.
  Expected<schema::RecipeT> getRecipe(const Digest &recipeKey);
  /// The variant is asked for: files its terms, so that it can be built again
  /// and a miss explained. What was known of it is kept. No word of a failure.
  void noteAsked(const schema::RecipeT &terms);
  /// The compiler refused it.
  void noteRefused(const schema::RecipeT &terms, const std::string &reason);
  std::vector<schema::RecipeT> recipes();

  /// A pinned record is not evicted. unsupported: there is no disk.
  Status pin(const Digest &contentKey, bool on);
  /// By record; empty if there is no disk.
  std::vector<std::pair<RecordInfo, RecordUse>> listUses();
  /// unsupported: there is no disk.
  Expected<StoreContents> contents();
  /// Reads every record of every kind.
  Expected<VerifyReport> verify();
  /// Removes leftovers and quarantined records, and evicts down to `limitBytes`
  /// (nothing: the store's limit).
  Expected<CollectReport> collect(std::optional<uint64_t> limitBytes);
  /// The artifact that did not verify, as it lies there; notFound.
  Expected<std::vector<uint8_t>> quarantined(const Digest &contentKey);

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
