// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What was used when, and what it cost to make. Only eviction reads it:
/// losing it costs order, never a record.
#pragma once

#include "base/Digest.h"
#include "base/File.h"
#include "store/GreedyDual.h"

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace pgkp::rt {

/// One line of the log: a record was made (costMs > 0) or used.
struct UseNote {
  Digest key;
  int64_t timeS = 0; ///< Unix time
  float costMs = 0;
};

/// Appends to v2/usage.log, in batches and without a lock. Thread-safe. A
/// failure is nobody's business.
class UsageLog {
public:
  /// Nothing is appended to a log of `maxBytes` bytes.
  UsageLog(std::string path, uint64_t maxBytes)
      : path(std::move(path)), maxBytes(maxBytes) {}
  ~UsageLog() { flush(); }
  void add(const Digest &key, float costMs);
  void flush();

private:
  const std::string path;
  const uint64_t maxBytes;
  std::mutex mutex;
  std::vector<UseNote> pending;
};

/// The log's notes so far, in order; bytes that are none are skipped.
std::vector<UseNote> parseUseNotes(std::span<const uint8_t> bytes);

struct Usage {
  double uses = 0; ///< aged
  double costMs = 0;
  double priority = 0;
  int64_t lastS = 0;
};

/// The log summed up, as it lies in v2/usage. Thread-compatible.
class UsageTable {
public:
  /// What is stored, and the log applied to it. `sizeOf` gives a record's
  /// bytes, 0 if it is gone: then it is forgotten.
  template <typename SizeOf>
  void apply(std::span<const UseNote> notes, SizeOf &&sizeOf) {
    for (const UseNote &note : notes)
      if (const uint64_t bytes = sizeOf(note.key))
        apply(note, bytes);
  }
  /// A missing or damaged file is an empty table.
  static UsageTable load(const std::string &path);
  Status save(const std::string &path, const AtomicWriteOptions &options) const;

  const Usage *find(const Digest &key) const;
  void forget(const Digest &key) { rows.erase(key); }
  /// Drops every row that `keep` does not name.
  template <typename Keep> void retain(Keep &&keep) {
    std::erase_if(rows, [&](const auto &row) { return !keep(row.first); });
  }
  /// The record's priority now; one that was never noted counts as used once.
  double priority(const Digest &key, uint64_t bytes) const;
  GreedyDual &policy() { return greedy; }

private:
  void apply(const UseNote &note, uint64_t bytes);

  GreedyDual greedy;
  std::unordered_map<Digest, Usage, DigestHash> rows;
};

} // namespace pgkp::rt
