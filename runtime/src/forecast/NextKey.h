// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The key of a stream's next dispatch: tagged tables over geometric
/// histories.
#pragma once

#include "schema/FirstUse.h"

#include <array>
#include <cstdint>
#include <memory>

namespace pgkp::rt::forecast {

/// ITTAGE (Seznec and Michaud, JILP 8, 2006): six tables over the last 2, 4, 9,
/// 20, 44 and 100 keys (about a geometric series), each entry with a tag, a
/// confidence and a usefulness, and below them the last successor of the last
/// key. Unlike in a processor's, a wrong prediction allocates in every longer
/// table: a kernel sequence is learnt at its second pass. `observe` allocates
/// no memory. Thread-compatible; one per stream, under 256 KiB.
class NextKey {
public:
  static constexpr size_t kTables = 6, kEntries = 4096;

  NextKey();

  /// The next dispatch was `key`: learns from it and predicts the one after.
  void observe(KeyId key);

  /// kNoKey before there is anything to go by. The probability is the share of
  /// right ones among predictions made with the same table and confidence.
  KeyId predicted() const { return prediction.key; }
  double probability() const;

private:
  struct Entry {
    KeyId key = kNoKey;
    uint16_t tag = 0; ///< 0: free
    uint8_t confidence = 0, useful = 0;
  };
  struct Successor {
    KeyId of = kNoKey, key = kNoKey;
  };
  struct Counter {
    uint32_t right = 0, seen = 0;
  };
  struct Tables {
    std::array<std::array<Entry, kEntries>, kTables> tagged;
    std::array<Successor, kEntries> base;
  };
  static constexpr size_t kMaxHistory = 128; ///< a power of two
  static constexpr unsigned kMaxConfidence = 15, kMaxUseful = 3;

  void learn(KeyId key);
  void remember(KeyId key);
  void predict();
  Successor &successorOf(KeyId key);
  Entry &locate(size_t table);

  const std::unique_ptr<Tables> tables;
  std::array<uint64_t, kTables> hash{};     ///< rolling, one per history length
  std::array<uint64_t, kTables> dropFactor; ///< B^length
  std::array<uint32_t, kMaxHistory> recent{}; ///< key + 1; 0: before the start
  uint32_t at = 0;                            ///< next position in `recent`
  KeyId last = kNoKey;

  struct Prediction {
    KeyId key = kNoKey;
    int table = -1; ///< -1: base
    uint8_t confidence = 0;
    std::array<uint16_t, kTables> index{}, tag{};
  } prediction;
  std::array<std::array<Counter, kMaxConfidence + 1>, kTables + 1> counters;
};

} // namespace pgkp::rt::forecast
