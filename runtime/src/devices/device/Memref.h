// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Memref headers (pgkp-c/program.h) on memory that the processor can
/// reach.
#pragma once

#include <cstdint>
#include <pgkp-c/program.h>
#include <span>
#include <vector>

namespace pgkp::rt {

/// A header with its sizes and strides, on the heap so that its address stays.
class MemrefHeader {
public:
  /// Dense, row-major.
  MemrefHeader(void *memory, std::span<const int64_t> sizes);

  void *data() { return words.data(); }
  const void *data() const { return words.data(); }

private:
  std::vector<uint64_t> words; ///< {allocated, aligned, offset, sizes, strides}
};

/// Copies element by element between memrefs of equal shape; runs that are
/// dense on both sides go as one.. \returns false if the shapes differ.
bool copyMemref(uint32_t rank, uint32_t elementBytes, const void *srcHeader,
                const void *dstHeader);

} // namespace pgkp::rt
