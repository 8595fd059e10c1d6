// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Artifacts in memory: least recently used ones leave first.
#pragma once

#include "store/Store.h"

#include <list>
#include <mutex>
#include <unordered_map>

namespace pgkp::rt {

/// Thread-safe.
class MemoryTier {
public:
  explicit MemoryTier(uint64_t limitBytes) : limit(limitBytes) {}

  /// Null if it is not here.
  std::shared_ptr<const StoredArtifact> get(const Digest &key);
  bool contains(const Digest &key) const;
  /// \returns what is filed now: the older one if there was one.
  std::shared_ptr<const StoredArtifact>
  put(std::shared_ptr<const StoredArtifact> artifact);
  bool erase(const Digest &key);
  std::vector<RecordInfo> list() const;
  /// Fills in memoryBytes, memoryRecords and evictions.
  void addTo(StoreStats &stats) const;

private:
  using Order = std::list<std::shared_ptr<const StoredArtifact>>;
  void remove(Order::iterator it);

  const uint64_t limit;
  mutable std::mutex mutex;
  Order order; ///< most recently used first
  std::unordered_map<Digest, Order::iterator, DigestHash> index;
  uint64_t bytes = 0, evictions = 0;
};

} // namespace pgkp::rt
