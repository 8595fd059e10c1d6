// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Artifacts in memory: those leave first whose use times cost is least
/// for their size.
#pragma once

#include "store/GreedyDual.h"
#include "store/Store.h"

#include <map>
#include <mutex>
#include <unordered_map>

namespace pgkp::rt {

/// Thread-safe.
class MemoryTier {
public:
  explicit MemoryTier(uint64_t limitBytes) : limit(limitBytes) {}
  /// What leaves is still on disk, so that only reading it again is lost, not
  /// its compilation. Before the first put.
  void setBacked(bool on) { backed = on; }

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
  /// By priority; equal ones in order of their last use.
  using Order = std::multimap<double, std::shared_ptr<const StoredArtifact>>;
  struct Entry {
    Order::iterator place;
    double uses;
  };
  double priority(const StoredArtifact &artifact, double uses) const;
  void touch(Entry &entry);
  void remove(Order::iterator it);

  const uint64_t limit;
  bool backed = false;
  mutable std::mutex mutex;
  GreedyDual policy;
  Order order;
  std::unordered_map<Digest, Entry, DigestHash> index;
  uint64_t bytes = 0, evictions = 0;
};

} // namespace pgkp::rt
