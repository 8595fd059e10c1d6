// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Sealed records as files. Every system call passes a failpoint
/// "store.<call>".
#pragma once

#include "base/Clock.h"
#include "schema/Envelope.h"
#include "store/Store.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace pgkp::rt {

/// A kind of record: its folder under v1/ and its envelope.
struct RecordKind {
  const char *folder;
  FileKind file;
};
constexpr RecordKind kArtifacts{"artifacts", FileKind::artifact};
constexpr RecordKind kBundles{"bundles", FileKind::bundle};
constexpr RecordKind kTuning{"tuning", FileKind::tuning};

/// Thread-safe. Other processes may use the directory at the same time.
class DiskTier {
public:
  /// Makes the directory if need be and checks that nobody else can write to
  /// it. permission: a symbolic link, another owner (root's may be read), or
  /// writable by others.
  static Expected<std::unique_ptr<DiskTier>>
  open(const std::string &directory, const Clock &clock, TimeNs writeRetry);

  /// The verified payload. notFound; corrupt: it is in quarantine now; io and
  /// others: the system call failed.
  Expected<std::vector<uint8_t>> read(RecordKind kind, const Digest &key);
  /// Silent while the disk rests after a failure: then `unavailable`.
  Status write(RecordKind kind, const Digest &key,
               std::span<const uint8_t> payload);
  /// For records whose payload turned out to be wrong after the checksum held.
  void quarantine(RecordKind kind, const Digest &key,
                  const std::string &reason);
  bool contains(RecordKind kind, const Digest &key) const;
  Status erase(RecordKind kind, const Digest &key);
  Expected<std::vector<RecordInfo>> list(RecordKind kind) const;

  const std::string &directory() const { return root; }

private:
  DiskTier(std::string directory, const Clock &clock, TimeNs writeRetry)
      : root(std::move(directory)), version(root + "/v1"), clock(clock),
        writeRetry(writeRetry) {}

  std::string pathOf(RecordKind kind, const Digest &key) const;
  void removeStaleTemporaries() const;
  void noteWriteFailure(const Error &error);

  const std::string root, version;
  const Clock &clock;
  const TimeNs writeRetry;
  std::atomic<TimeNs> restUntil{0};
  std::atomic<bool> warned{false};
};

} // namespace pgkp::rt
