// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast/NextKey.h"

#include <algorithm>

namespace pgkp::rt::forecast {

static constexpr std::array<uint32_t, NextKey::kTables> kLengths = {
    2, 4, 9, 20, 44, 100};
static constexpr uint64_t kBase = 0x9e3779b97f4a7c15; // odd

/// MurmurHash3's finalizer: the rolling hash's low bits alone are weak.
static uint64_t mix(uint64_t h) {
  h = (h ^ (h >> 33)) * 0xff51afd7ed558ccd;
  h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53;
  return h ^ (h >> 33);
}

NextKey::NextKey() : tables(std::make_unique<Tables>()) {
  for (size_t i = 0; i < kTables; ++i) {
    dropFactor[i] = 1;
    for (uint32_t n = 0; n < kLengths[i]; ++n)
      dropFactor[i] *= kBase;
  }
}

NextKey::Successor &NextKey::successorOf(KeyId key) {
  return tables->base[mix(key) & (kEntries - 1)];
}

void NextKey::observe(KeyId key) {
  if (last != kNoKey)
    learn(key);
  remember(key);
  predict();
}

void NextKey::learn(KeyId key) {
  const bool right = prediction.key == key;
  if (prediction.key != kNoKey) {
    Counter &counter = counters[prediction.table + 1][prediction.confidence];
    if (++counter.seen == 1u << 16) { // old times weigh less
      counter.seen /= 2;
      counter.right /= 2;
    }
    counter.right += right;
  }
  if (prediction.table >= 0) {
    Entry &entry =
        tables->tagged[prediction.table][prediction.index[prediction.table]];
    if (right) {
      entry.confidence =
          std::min<uint8_t>(kMaxConfidence, entry.confidence + 1);
      entry.useful = std::min<uint8_t>(kMaxUseful, entry.useful + 1);
    } else {
      if (entry.confidence > 1) {
        entry.confidence >>= 1;
      } else {
        entry.key = key;
        entry.confidence = 1;
      }
      entry.useful -= entry.useful > 0;
    }
  }
  if (!right)
    for (size_t i = prediction.table + 1; i < kTables; ++i) {
      Entry &entry = tables->tagged[i][prediction.index[i]];
      if (entry.useful > 0)
        --entry.useful;
      else
        entry = {key, prediction.tag[i], 1, 0};
    }
  successorOf(last) = {last, key};
}

void NextKey::remember(KeyId key) {
  for (size_t i = 0; i < kTables; ++i) {
    const uint32_t dropped = recent[(at - kLengths[i]) & (kMaxHistory - 1)];
    hash[i] = hash[i] * kBase + (uint64_t{key} + 1) - dropped * dropFactor[i];
  }
  recent[at++ & (kMaxHistory - 1)] = key + 1;
  last = key;
}

NextKey::Entry &NextKey::locate(size_t table) {
  const uint64_t m = mix(hash[table]);
  prediction.index[table] = (m >> 3) & (kEntries - 1);
  prediction.tag[table] = static_cast<uint16_t>((m >> 48) | 1);
  return tables->tagged[table][prediction.index[table]];
}

void NextKey::predict() {
  // From the longest history down: in a program that repeats itself the first
  // look hits. Shorter tables than the one that predicts are not needed.
  for (size_t i = kTables; i-- > 0;) {
    const Entry &entry = locate(i);
    if (entry.tag == prediction.tag[i] && entry.confidence > 0) {
      prediction.key = entry.key;
      prediction.table = static_cast<int>(i);
      prediction.confidence = entry.confidence;
      return;
    }
  }
  const Successor &successor = successorOf(last);
  prediction.key = successor.of == last ? successor.key : kNoKey;
  prediction.table = -1;
  prediction.confidence = 0;
}

double NextKey::probability() const {
  if (prediction.key == kNoKey)
    return 0;
  const Counter &counter =
      counters[prediction.table + 1][prediction.confidence];
  return (counter.right + 1.0) / (counter.seen + 2.0);
}

} // namespace pgkp::rt::forecast
