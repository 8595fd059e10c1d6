// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/MemoryTier.h"

namespace pgkp::rt {

std::shared_ptr<const StoredArtifact> MemoryTier::get(const Digest &key) {
  std::lock_guard lock(mutex);
  const auto it = index.find(key);
  if (it == index.end())
    return nullptr;
  order.splice(order.begin(), order, it->second);
  return order.front();
}

bool MemoryTier::contains(const Digest &key) const {
  std::lock_guard lock(mutex);
  return index.contains(key);
}

std::shared_ptr<const StoredArtifact>
MemoryTier::put(std::shared_ptr<const StoredArtifact> artifact) {
  std::lock_guard lock(mutex);
  if (const auto it = index.find(artifact->contentKey()); it != index.end()) {
    order.splice(order.begin(), order, it->second);
    return order.front();
  }
  order.push_front(artifact);
  index.emplace(artifact->contentKey(), order.begin());
  bytes += artifact->payload().size();
  // The newest stays even if it alone is over the limit: its caller is about to
  // load it.
  while (bytes > limit && order.size() > 1) {
    remove(std::prev(order.end()));
    ++evictions;
  }
  return artifact;
}

void MemoryTier::remove(Order::iterator it) {
  bytes -= (*it)->payload().size();
  index.erase((*it)->contentKey());
  order.erase(it);
}

bool MemoryTier::erase(const Digest &key) {
  std::lock_guard lock(mutex);
  const auto it = index.find(key);
  if (it == index.end())
    return false;
  remove(it->second);
  return true;
}

std::vector<RecordInfo> MemoryTier::list() const {
  std::lock_guard lock(mutex);
  std::vector<RecordInfo> result;
  for (const auto &artifact : order)
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
