// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Sealed records as files. Every system call passes a failpoint
/// "store.<call>", and "store.<call>.done" after it.
#pragma once

#include "base/Clock.h"
#include "store/Layout.h"
#include "store/Lease.h"
#include "store/Location.h"
#include "store/Quota.h"
#include "store/Store.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace pgkp::rt {

/// Thread-safe. Other processes may use the directory at the same time. Reading
/// takes no lock.
class DiskTier {
public:
  /// As Location::open.
  static Expected<std::unique_ptr<DiskTier>> open(const std::string &directory,
                                                  const Clock &clock,
                                                  const StoreOptions &options);

  /// The verified payload. notFound. corrupt: it is in quarantine now.
  /// unsupported: it is of another format version, and is left alone. io and
  /// others: the system call failed.
  Expected<std::vector<uint8_t>> read(RecordKind kind, const Digest &key);
  /// Silent while the disk rests after a failure: then `unavailable`.
  /// unsupported: a record of another format version has the name.
  /// `costMs`: what making it took; 0: unknown.
  Status write(RecordKind kind, const Digest &key,
               std::span<const uint8_t> payload, double costMs = 0);
  /// For records whose payload turned out to be wrong after the checksum held.
  void quarantine(RecordKind kind, const Digest &key,
                  const std::string &reason);
  bool contains(RecordKind kind, const Digest &key) const;
  /// It is there and of our format version; the rest is not read.
  bool serves(RecordKind kind, const Digest &key) const;
  Status erase(RecordKind kind, const Digest &key);
  Expected<std::vector<RecordInfo>> list(RecordKind kind) const;
  /// The file that did not verify; notFound.
  Expected<std::vector<uint8_t>> quarantined(RecordKind kind,
                                             const Digest &key) const;

  /// unavailable: another process or thread has it. unsupported: nothing can be
  /// locked here.
  Expected<Lease> lease(const Digest &key);
  Status pin(const Digest &key, bool on);
  bool pinned(const Digest &key) const;

  Quota &quota() { return budget; }
  const std::string &directory() const { return location.root; }
  const std::string &recordsDirectory() const { return location.version; }

private:
  DiskTier(Location location, const Clock &clock, const StoreOptions &options)
      : location(std::move(location)),
        budget(this->location, options.diskLimitBytes), clock(clock),
        writeRetry(options.writeRetry), noteUses(options.noteUses) {}

  std::string pathOf(RecordKind kind, const Digest &key) const;
  std::string quarantinePath(RecordKind kind, const Digest &key) const;
  Status tryWrite(const std::string &path, std::span<const uint8_t> file,
                  bool sync);
  void removeStaleTemporaries() const;
  void noteWriteFailure(const Error &error);

  const Location location;
  Quota budget;
  const Clock &clock;
  const TimeNs writeRetry;
  const bool noteUses;
  std::atomic<TimeNs> restUntil{0};
  std::atomic<bool> warned{false};
};

} // namespace pgkp::rt
