// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Keeps a store's directory in its size limit.
#pragma once

#include "base/Digest.h"
#include "base/File.h"
#include "store/FileLock.h"
#include "store/Location.h"
#include "store/Usage.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

namespace pgkp::rt {

struct Collected {
  uint64_t removedFiles = 0, freedBytes = 0; ///< bytes as they are charged
  uint64_t bytes = 0;                        ///< left
};

/// Bytes are charged in whole blocks of 4 KiB, directories of records like
/// files, so that disk usage as `du` tells it stays in the limit. Room is taken
/// before a file is written: under a lock that only writers take, the ledger is
/// read, what is worth least is evicted if need be, and a temporary file of the
/// full size is made. A process that dies leaves the ledger too high, never too
/// low; it is counted anew when it reaches the limit. Thread-safe.
class Quota {
public:
  Quota(const Location &location, uint64_t limitBytes);

  /// A file of `bytes` bytes for `path` (PendingFile), whose directory is made
  /// if need be. exhausted: it does not
  /// fit even after eviction. deadline: another writer holds the lock.
  Expected<PendingFile> reserve(const std::string &path, uint64_t bytes,
                                bool sync);
  /// The room of a file that could not be written after all.
  void giveBack(uint64_t bytes);

  /// A record was made or used. Never fails, hardly ever touches the disk.
  void note(const Digest &key, float costMs) { usageLog.add(key, costMs); }

  /// Removes what no one needs (leftovers, quarantine, idle lock files) and
  /// evicts down to `limitBytes`, or to the limit.
  Expected<Collected> collect(std::optional<uint64_t> limitBytes);
  /// What is noted of records, for people.
  UsageTable usage();

  uint64_t limit() const { return limitBytes; }
  /// What records and everything that grows with them take now.
  uint64_t used() const;
  uint64_t evictions() const { return evicted.load(std::memory_order_relaxed); }

  static uint64_t charge(uint64_t bytes) {
    return (bytes + 4095) / 4096 * 4096;
  }

private:
  struct Scan;
  Expected<FileLock> lock() const;
  std::optional<uint64_t> readLedger() const;
  Status writeLedger(uint64_t total) const;
  void scan(Scan &out) const;
  UsageTable sumUp(const Scan &scan);
  /// Needs the lock. If more than `most` bytes are there, removes files, the
  /// least worth first, until at most `aim` are left; of what outlives binaries
  /// no more than `most` demands. `thorough`: leftovers and quarantined records
  /// go in any case.
  Collected evict(uint64_t most, uint64_t aim, bool thorough);
  std::unordered_set<Digest, DigestHash> pinned() const;
  AtomicWriteOptions writeOptions() const;
  bool removeFile(const std::string &path) const;
  /// What records may take: the limit without what is not counted one by one.
  uint64_t usable() const;

  const Location location;
  const uint64_t limitBytes;
  const std::string ledgerPath, usagePath, logPath;
  UsageLog usageLog;
  std::atomic<uint64_t> evicted{0};
};

} // namespace pgkp::rt
