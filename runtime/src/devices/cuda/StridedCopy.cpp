// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/cuda/StridedCopy.h"

#include "pgkp-c/program.h"

#include <cstring>
#include <vector>

namespace pgkp::rt::cuda {
namespace {

const pgkp_memref_header_t &memref(const void *header) {
  return *static_cast<const pgkp_memref_header_t *>(header);
}

/// A dimension of both sides, steps in bytes.
struct Dim {
  int64_t size, srcStep, dstStep;
};

/// Dimensions of more than one element, outermost first; neighbours that are
/// dense against each other on both sides are one.
std::vector<Dim> collapse(uint32_t rank, uint32_t elementBytes,
                          const int64_t *sizes, const int64_t *srcStrides,
                          const int64_t *dstStrides) {
  std::vector<Dim> dims;
  for (uint32_t i = 0; i < rank; ++i) {
    if (sizes[i] == 1)
      continue;
    const Dim dim{sizes[i], srcStrides[i] * elementBytes,
                  dstStrides[i] * elementBytes};
    if (!dims.empty() && dims.back().srcStep == dim.size * dim.srcStep &&
        dims.back().dstStep == dim.size * dim.dstStep)
      dims.back() = {dims.back().size * dim.size, dim.srcStep, dim.dstStep};
    else
      dims.push_back(dim);
  }
  return dims;
}

struct Copier {
  const Driver &driver;
  StreamHandle stream;
  std::vector<Dim> dims;
  size_t rowBytes; ///< dense on both sides

  /// Copies dims[at..] from these addresses.
  Result copy(size_t at, DevicePtr src, DevicePtr dst) const {
    if (at == dims.size())
      return driver.copyDevice(dst, src, rowBytes, stream);
    const Dim &dim = dims[at];
    const auto row = static_cast<int64_t>(rowBytes);
    // The engine wants rows that do not overlap.
    if (at + 1 == dims.size() && dim.srcStep >= row && dim.dstStep >= row)
      return copyRows(dim, src, dst);
    for (int64_t i = 0; i < dim.size; ++i)
      if (const Result result =
              copy(at + 1, src + static_cast<DevicePtr>(i * dim.srcStep),
                   dst + static_cast<DevicePtr>(i * dim.dstStep));
          result != kSuccess)
        return result;
    return kSuccess;
  }

  Result copyRows(const Dim &dim, DevicePtr src, DevicePtr dst) const {
    constexpr int device = 2; // CU_MEMORYTYPE_DEVICE
    Copy2D copy{};
    copy.srcType = copy.dstType = device;
    copy.srcDevice = src;
    copy.srcPitch = static_cast<size_t>(dim.srcStep);
    copy.dstDevice = dst;
    copy.dstPitch = static_cast<size_t>(dim.dstStep);
    copy.widthInBytes = rowBytes;
    copy.height = static_cast<size_t>(dim.size);
    return driver.copy2D(&copy, stream);
  }
};

} // namespace

bool sameShape(uint32_t rank, const void *srcHeader, const void *dstHeader) {
  return rank == 0 || std::memcmp(memref(srcHeader).sizes_and_strides,
                                  memref(dstHeader).sizes_and_strides,
                                  rank * sizeof(int64_t)) == 0;
}

Result copyDevice(const Driver &driver, StreamHandle stream, uint32_t rank,
                  uint32_t elementBytes, const void *srcHeader,
                  const void *dstHeader) {
  const pgkp_memref_header_t &src = memref(srcHeader), &dst = memref(dstHeader);
  const int64_t *sizes = src.sizes_and_strides;
  for (uint32_t i = 0; i < rank; ++i)
    if (sizes[i] <= 0)
      return kSuccess;
  Copier copier{driver, stream,
                collapse(rank, elementBytes, sizes, sizes + rank,
                         dst.sizes_and_strides + rank),
                elementBytes};
  std::vector<Dim> &dims = copier.dims;
  if (!dims.empty() && dims.back().srcStep == elementBytes &&
      dims.back().dstStep == elementBytes) {
    copier.rowBytes = static_cast<size_t>(dims.back().size) * elementBytes;
    dims.pop_back();
  }
  auto address = [&](const pgkp_memref_header_t &header) {
    return reinterpret_cast<DevicePtr>(header.aligned) +
           static_cast<DevicePtr>(header.offset * elementBytes);
  };
  return copier.copy(0, address(src), address(dst));
}

} // namespace pgkp::rt::cuda
