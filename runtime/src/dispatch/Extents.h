// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Short vectors of extents, word by word.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pgkp::rt {

// Extents were written a word at a time just before, and a vector load over two
// such stores waits until both have reached the cache. These loops stay scalar:
// the empty statement takes the value out of the vectorizer's hands.

/// Without a branch that depends on the values: for vectors that nearly always
/// are equal.
inline bool allEqual(const int64_t *a, const int64_t *b, size_t count) {
  uint64_t difference = 0;
  for (size_t i = 0; i < count; ++i) {
    difference |= static_cast<uint64_t>(a[i] ^ b[i]);
    __asm__("" : "+r"(difference));
  }
  return difference == 0;
}

/// Ends at the first difference: for vectors that repeat or differ in the same
/// place time after time.
inline bool sameSoFar(const int64_t *a, const int64_t *b, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (a[i] != b[i])
      return false;
  return true;
}

inline void copyExtents(const int64_t *from, int64_t *to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    int64_t value = from[i];
    __asm__("" : "+r"(value));
    to[i] = value;
  }
}

} // namespace pgkp::rt
