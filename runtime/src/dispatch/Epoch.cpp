// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dispatch/Epoch.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace pgkp::rt {

EpochDomain::Reader::Reader(EpochDomain &domain) : domain(domain) {
  std::lock_guard lock(domain.mutex);
  domain.readers.push_back(this);
}

EpochDomain::Reader::~Reader() {
  assert(!inside() && "a session outlives its reader");
  std::lock_guard lock(domain.mutex);
  std::erase(domain.readers, this);
}

EpochDomain::~EpochDomain() {
  assert(readers.empty() && "a reader outlives its domain");
}

void EpochDomain::retire(std::shared_ptr<const void> object) {
  std::lock_guard lock(mutex);
  const uint64_t now = epoch.fetch_add(1, std::memory_order_seq_cst);
  retired.push_back({now, std::move(object)});
}

size_t EpochDomain::collect() {
  std::vector<Retired> dead;
  {
    std::lock_guard lock(mutex);
    if (retired.empty())
      return 0;
    uint64_t oldest = std::numeric_limits<uint64_t>::max();
    for (const Reader *reader : readers) {
      const uint64_t at = reader->announced.load(std::memory_order_seq_cst);
      if (at != kOutside)
        oldest = std::min(oldest, at);
    }
    auto alive = std::partition(
        retired.begin(), retired.end(),
        [&](const Retired &entry) { return entry.epoch >= oldest; });
    dead.assign(std::make_move_iterator(alive),
                std::make_move_iterator(retired.end()));
    retired.erase(alive, retired.end());
  }
  return dead.size();
}

size_t EpochDomain::pending() const {
  std::lock_guard lock(mutex);
  return retired.size();
}

} // namespace pgkp::rt
