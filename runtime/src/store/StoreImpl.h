// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What the files of Store's implementation share.
#pragma once

#include "store/DiskTier.h"
#include "store/MemoryTier.h"
#include "store/Store.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

namespace pgkp::rt {

/// The record with these bytes, without envelope. corrupt: it does not verify,
/// or is not what it was filed under; null: that is not known.
Expected<TuningResult> parseTuning(std::span<const uint8_t> bytes,
                                   const Digest *contentKey,
                                   const std::string *device);
Expected<schema::RecipeT> parseRecipe(std::span<const uint8_t> bytes,
                                      const Digest *key);

struct Store::Impl {
  using Small = std::unordered_map<Digest, std::vector<uint8_t>, DigestHash>;

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
      readErrors{0}, mismatched{0}, puts{0}, writeErrors{0};

  /// What the disk holds otherwise: small, or only there while there is no
  /// disk.
  std::mutex mutex;
  Small bundles, tuning;

  /// From disk, counted.
  Expected<std::vector<uint8_t>> read(RecordKind kind, const Digest &key);
  /// The bytes hold, but the record does not: to quarantine, counted.
  void reject(RecordKind kind, const Digest &key, const Error &error);
  /// To disk if there is one; a failure is counted, and said by the disk tier.
  void write(RecordKind kind, const Digest &key, std::span<const uint8_t> bytes,
             double costMs = 0);
  /// From `kept`, else from disk; counted.
  Expected<std::vector<uint8_t>> readSmall(RecordKind kind, const Digest &key,
                                           Small &kept);
  void count(const Error &error);
  void noteBuilt(const StoredArtifact &stored);
  Expected<schema::RecipeT> readRecipe(const Digest &recipeKey);
  void writeRecipe(const Digest &recipeKey, const schema::RecipeT &recipe);
};

} // namespace pgkp::rt
