// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The part of the CUDA driver's binary interface that is used here, in
/// our own declarations: no CUDA header is needed to build. Values and layouts
/// are those of the driver API since CUDA 12.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pgkp::rt::cuda {

using Result = int;
constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2,
                 kDeinitialized = 4, kNoDevice = 100, kInvalidDevice = 101,
                 kInvalidImage = 200, kNoBinaryForGpu = 209, kNotFound = 500,
                 kNotReady = 600, kStreamCaptureUnsupported = 900;

using DeviceId = int;
using DevicePtr = uint64_t;
struct ContextOpaque;
struct ModuleOpaque;
struct FunctionOpaque;
struct StreamOpaque;
struct EventOpaque;
struct PoolOpaque;
using ContextHandle = ContextOpaque *;
using ModuleHandle = ModuleOpaque *;
using FunctionHandle = FunctionOpaque *;
using StreamHandle = StreamOpaque *;
using EventHandle = EventOpaque *;
using PoolHandle = PoolOpaque *;

enum DeviceAttribute : int {
  attributeComputeMajor = 75,
  attributeComputeMinor = 76,
  attributeMemoryPools = 115
};
enum FunctionAttribute : int {
  functionSharedBytes = 1, ///< static
  functionLocalBytes = 3,
  functionRegisters = 4,
  functionMaxDynamicShared = 8
};
enum : unsigned { streamNonBlocking = 1, eventDisableTiming = 2 };
enum class CaptureStatus : int { none = 0, active = 1, invalidated = 2 };
enum class CaptureMode : int { global = 0, threadLocal = 1, relaxed = 2 };
constexpr int kPoolReleaseThreshold = 4; ///< CU_MEMPOOL_ATTR_...

enum LaunchAttributeId : int { launchProgrammaticSerialization = 6 };
struct LaunchAttribute {
  LaunchAttributeId id;
  char pad[4];
  union {
    char bytes[64];
    int programmaticSerializationAllowed;
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72);
struct LaunchConfig {
  unsigned grid[3], block[3];
  unsigned sharedBytes;
  StreamHandle stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};
static_assert(sizeof(LaunchConfig) == 56);

struct PoolProperties {
  int allocationType; ///< 1: pinned
  int handleTypes;    ///< 0: none
  struct {
    int type; ///< 1: device
    int id;
  } location;
  void *securityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};
static_assert(sizeof(PoolProperties) == 88);

struct alignas(64) TensorMap {
  uint64_t opaque[16];
};
static_assert(sizeof(TensorMap) == 128);

struct Copy2D {
  size_t srcXInBytes, srcY;
  int srcType; ///< 2: device
  const void *srcHost;
  DevicePtr srcDevice;
  void *srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  int dstType;
  void *dstHost;
  DevicePtr dstDevice;
  void *dstArray;
  size_t dstPitch;
  size_t widthInBytes, height;
};
static_assert(sizeof(Copy2D) == 128);

} // namespace pgkp::rt::cuda
