// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/MemoryTier.h"

namespace pgkp::rt {

// Opening a file, and reading and hashing about a gigabyte a second.
static double reloadMs(uint64_t bytes) {
  return 0.02 + static_cast<double>(bytes) * 1e-6;
}

double MemoryTier::priority(const StoredArtifact &artifact, double uses) const {
  const uint64_t size = artifact.payload().size();
  return policy.priority(uses, backed ? reloadMs(size) : artifact.costMs(),
                         size);
}

void MemoryTier::touch(Entry &entry) {
  auto node = order.extract(entry.place);
  entry.uses += 1;
  node.key() = priority(*node.mapped(), entry.uses);
  entry.place = order.insert(std::move(node));
}

std::shared_ptr<const StoredArtifact> MemoryTier::get(const Digest &key) {
  std::lock_guard lock(mutex);
  const auto it = index.find(key);
  if (it == index.end())
    return nullptr;
  touch(it->second);
  return it->second.place->second;
}

bool MemoryTier::contains(const Digest &key) const {
  std::lock_guard lock(mutex);
  return index.contains(key);
}

std::shared_ptr<const StoredArtifact>
MemoryTier::put(std::shared_ptr<const StoredArtifact> artifact) {
  std::lock_guard lock(mutex);
  if (const auto it = index.find(artifact->contentKey()); it != index.end()) {
    touch(it->second);
    return it->second.place->second;
  }
  bytes += artifact->payload().size();
  // Before it is in: the newest stays even if it alone is over the limit, as
  // its caller is about to load it.
  while (bytes > limit && !order.empty()) {
    policy.evicted(order.begin()->first);
    remove(order.begin());
    ++evictions;
  }
  const auto place = order.emplace(priority(*artifact, 1), artifact);
  index.emplace(artifact->contentKey(), Entry{place, 1});
  return artifact;
}

void MemoryTier::remove(Order::iterator it) {
  bytes -= it->second->payload().size();
  index.erase(it->second->contentKey());
  order.erase(it);
}

bool MemoryTier::erase(const Digest &key) {
  std::lock_guard lock(mutex);
  const auto it = index.find(key);
  if (it == index.end())
    return false;
  remove(it->second.place);
  return true;
}

std::vector<RecordInfo> MemoryTier::list() const {
  std::lock_guard lock(mutex);
  std::vector<RecordInfo> result;
  for (const auto &[priority, artifact] : order)
    result.push_back(
        {artifact->contentKey(), artifact->payload().size(), 0, false});
  return result;
}

void MemoryTier::addTo(StoreStats &stats) const {
  std::lock_guard lock(mutex);
  stats.memoryBytes = bytes;
  stats.memoryRecords = order.size();
  stats.evictions = evictions;
}

} // namespace pgkp::rt
