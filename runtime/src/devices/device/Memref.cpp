// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/device/Memref.h"

#include <cstring>

namespace pgkp::rt {

MemrefHeader::MemrefHeader(void *memory, std::span<const int64_t> sizes)
    : words(3 + 2 * sizes.size()) {
  words[0] = words[1] = reinterpret_cast<uint64_t>(memory);
  words[2] = 0;
  uint64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    words[3 + i] = static_cast<uint64_t>(sizes[i]);
    words[3 + sizes.size() + i] = stride;
    stride *= static_cast<uint64_t>(sizes[i]);
  }
}

namespace {

struct Walk {
  uint32_t elementBytes;
  const int64_t *sizes, *srcStrides, *dstStrides;
};

/// Copies `rank` dimensions from the front of the walk.
void copyDims(const Walk &walk, uint32_t dim, uint32_t rank,
              const std::byte *src, std::byte *dst, uint64_t runBytes) {
  if (dim == rank) {
    std::memmove(dst, src, runBytes);
    return;
  }
  const int64_t srcStep = walk.srcStrides[dim] * walk.elementBytes;
  const int64_t dstStep = walk.dstStrides[dim] * walk.elementBytes;
  for (int64_t i = 0; i < walk.sizes[dim]; ++i)
    copyDims(walk, dim + 1, rank, src + i * srcStep, dst + i * dstStep,
             runBytes);
}

} // namespace

bool copyMemref(uint32_t rank, uint32_t elementBytes, const void *srcHeader,
                const void *dstHeader) {
  const auto *src = static_cast<const pgkp_memref_header_t *>(srcHeader);
  const auto *dst = static_cast<const pgkp_memref_header_t *>(dstHeader);
  const int64_t *sizes = src->sizes_and_strides;
  if (rank != 0 &&
      std::memcmp(sizes, dst->sizes_and_strides, rank * sizeof(int64_t)) != 0)
    return false;
  for (uint32_t dim = 0; dim < rank; ++dim)
    if (sizes[dim] <= 0)
      return true;
  const Walk walk{elementBytes, sizes, sizes + rank,
                  dst->sizes_and_strides + rank};
  // The longest tail of dimensions that is dense on both sides is one run.
  uint32_t outer = rank;
  int64_t dense = 1;
  while (outer > 0 &&
         (sizes[outer - 1] == 1 || (walk.srcStrides[outer - 1] == dense &&
                                    walk.dstStrides[outer - 1] == dense))) {
    dense *= sizes[outer - 1];
    --outer;
  }
  copyDims(walk, 0, outer,
           static_cast<const std::byte *>(src->aligned) +
               src->offset * elementBytes,
           static_cast<std::byte *>(dst->aligned) + dst->offset * elementBytes,
           static_cast<uint64_t>(dense) * elementBytes);
  return true;
}

} // namespace pgkp::rt
