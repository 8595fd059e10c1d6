// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeCuda.h"

#include "devices/cuda/DriverTypes.h"

#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

using namespace pgkp::rt::cuda;

namespace {

constexpr uint64_t kArenaBytes = uint64_t{1} << 32;

struct Stream {
  bool held = false, capturing = false;
  uint64_t issued = 0;
};
struct Event {
  Stream *stream = nullptr;
};
/// The file stays open: dlopen takes one path for one library.
struct LoadedModule {
  void *handle;
  int fd;
};
struct Fault {
  int result;
  unsigned countdown;
};

/// Addresses without access; the memory behind them is FAKE_CUDA_SHADOW away.
struct Arena {
  char *device = nullptr;
  uint64_t used = 4096;

  Arena() {
    auto *base = reinterpret_cast<void *>(uint64_t{1} << 44);
    device = static_cast<char *>(
        mmap(base, kArenaBytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
    mmap(static_cast<char *>(base) + FAKE_CUDA_SHADOW, kArenaBytes,
         PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
};

struct State {
  std::mutex mutex;
  Arena arena;
  fake_counts_t counts{};
  std::multimap<std::string, Fault> faults;
  std::set<Stream *> streams;
  Stream defaultStream;
  std::map<DevicePtr, uint64_t> blocks;
  std::map<uint64_t, std::set<DevicePtr>> freeBlocks;
  bool heldAll = false;
  int devices = 1, major = 9, minor = 0;
  uint64_t memory = uint64_t{1} << 31;
};

State &state() {
  static auto *s = new State;
  return *s;
}

thread_local void *currentContext = nullptr;
thread_local CaptureMode captureMode = CaptureMode::global;
int contextObjects[16];

bool inFlight(const Stream &stream) {
  return (stream.held || state().heldAll) && stream.issued > 0;
}
bool anyInFlight() {
  for (const Stream *stream : state().streams)
    if (inFlight(*stream))
      return true;
  return false;
}
bool anyCapturing() {
  for (const Stream *stream : state().streams)
    if (stream->capturing)
      return true;
  return false;
}
Stream &streamOf(StreamHandle handle) {
  return handle ? *reinterpret_cast<Stream *>(handle) : state().defaultStream;
}
template <typename T> T *hostOf(DevicePtr pointer) {
  return static_cast<T *>(FAKE_CUDA_HOST(pointer));
}

/// What a test wants this call to return; kSuccess: go on.
Result injected(const char *function) {
  auto [it, end] = state().faults.equal_range(function);
  Result result = kSuccess;
  while (it != end) {
    if (--it->second.countdown != 0) {
      ++it;
      continue;
    }
    result = it->second.result;
    it = state().faults.erase(it);
  }
  return result;
}

/// Calls that a capture of any thread forbids, unless this one stands outside.
bool forbidden() {
  return anyCapturing() && captureMode != CaptureMode::relaxed;
}

Result allocateBytes(DevicePtr *out, uint64_t bytes) {
  State &s = state();
  if (bytes == 0)
    return kInvalidValue;
  bytes = (bytes + 511) / 512 * 512;
  if (bytes > s.memory || s.counts.live_bytes + bytes > s.memory)
    return kOutOfMemory;
  if (auto &reusable = s.freeBlocks[bytes]; !reusable.empty()) {
    *out = *reusable.begin();
    reusable.erase(reusable.begin());
  } else {
    if (s.arena.used + bytes > kArenaBytes)
      return kOutOfMemory;
    *out = reinterpret_cast<DevicePtr>(s.arena.device + s.arena.used);
    s.arena.used += bytes;
  }
  s.blocks[*out] = bytes;
  s.counts.live_bytes += bytes;
  ++s.counts.allocations;
  return kSuccess;
}

Result freeBytes(DevicePtr block) {
  State &s = state();
  auto known = s.blocks.find(block);
  if (known == s.blocks.end())
    return kInvalidValue;
  s.counts.live_bytes -= known->second;
  s.freeBlocks[known->second].insert(block);
  s.blocks.erase(known);
  ++s.counts.frees;
  return kSuccess;
}

/// The size of the ELF file that starts here.
size_t elfBytes(const void *image) {
  struct Header {
    unsigned char ident[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, programs, sections;
    uint32_t flags;
    uint16_t bytes, programBytes, numPrograms, sectionBytes, numSections;
  };
  Header header;
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.ident,
                  "\x7f"
                  "ELF",
                  4) != 0)
    return 0;
  return header.sections + size_t{header.sectionBytes} * header.numSections;
}

struct Locked {
  std::lock_guard<std::mutex> lock{state().mutex};
};

} // namespace

// Every function locks, and returns what a test wants it to.
#define FAKE(name, ...)                                                        \
  extern "C" __attribute__((visibility("default"))) Result name(__VA_ARGS__)
#define ENTER(name)                                                            \
  Locked locked;                                                               \
  if (Result result = injected(#name); result != kSuccess)                     \
  return result
#define ENTER_WITH_CONTEXT(name)                                               \
  ENTER(name);                                                                 \
  if (!currentContext)                                                         \
  return 201 // CUDA_ERROR_INVALID_CONTEXT

FAKE(cuInit, unsigned) {
  ENTER(cuInit);
  return state().devices == 0 ? kNoDevice : kSuccess;
}
FAKE(cuDriverGetVersion, int *version) {
  *version = 13000;
  return kSuccess;
}
FAKE(cuGetErrorName, Result result, const char **name) {
  *name = result == kOutOfMemory     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == kInvalidImage  ? "CUDA_ERROR_INVALID_IMAGE"
          : result == kNoDevice      ? "CUDA_ERROR_NO_DEVICE"
          : result == kDeinitialized ? "CUDA_ERROR_DEINITIALIZED"
                                     : "CUDA_ERROR_FAKE";
  return kSuccess;
}
FAKE(cuGetErrorString, Result, const char **text) {
  *text = "as the test wanted";
  return kSuccess;
}
FAKE(cuDeviceGetCount, int *count) {
  ENTER(cuDeviceGetCount);
  *count = state().devices;
  return kSuccess;
}
FAKE(cuDeviceGet, DeviceId *device, int ordinal) {
  ENTER(cuDeviceGet);
  if (ordinal < 0 || ordinal >= state().devices)
    return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}
FAKE(cuDeviceGetName, char *name, int size, DeviceId device) {
  ENTER(cuDeviceGetName);
  const std::string text = "Fake GPU " + std::to_string(device);
  std::strncpy(name, text.c_str(), static_cast<size_t>(size));
  return kSuccess;
}
FAKE(cuDeviceGetAttribute, int *value, DeviceAttribute attribute, DeviceId) {
  ENTER(cuDeviceGetAttribute);
  *value = attribute == attributeComputeMajor   ? state().major
           : attribute == attributeComputeMinor ? state().minor
                                                : 1;
  return kSuccess;
}
FAKE(cuDevicePrimaryCtxRetain, ContextHandle *context, DeviceId device) {
  ENTER(cuDevicePrimaryCtxRetain);
  ++state().counts.primary_references;
  *context = reinterpret_cast<ContextHandle>(&contextObjects[device]);
  return kSuccess;
}
FAKE(cuDevicePrimaryCtxRelease_v2, DeviceId) {
  ENTER(cuDevicePrimaryCtxRelease_v2);
  --state().counts.primary_references;
  return kSuccess;
}
FAKE(cuCtxGetCurrent, ContextHandle *context) {
  *context = static_cast<ContextHandle>(currentContext);
  return kSuccess;
}
FAKE(cuCtxSetCurrent, ContextHandle context) {
  currentContext = context;
  return kSuccess;
}
FAKE(cuCtxGetDevice, DeviceId *device) {
  ENTER_WITH_CONTEXT(cuCtxGetDevice);
  *device =
      static_cast<int>(static_cast<int *>(currentContext) - contextObjects);
  return kSuccess;
}

FAKE(cuModuleLoadData, ModuleHandle *module, const void *image) {
  ENTER_WITH_CONTEXT(cuModuleLoadData);
  State &s = state();
  if (forbidden())
    return kStreamCaptureUnsupported;
  s.counts.loads_in_flight += anyInFlight();
  s.counts.loads_in_capture += anyCapturing();
  const size_t size = elfBytes(image);
  if (size == 0)
    return kInvalidImage;
  const int fd = memfd_create("fake-cubin", MFD_CLOEXEC);
  if (write(fd, image, size) != static_cast<ssize_t>(size))
    return kOutOfMemory;
  void *handle = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(),
                        RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    close(fd);
    return kInvalidImage;
  }
  ++s.counts.loads;
  ++s.counts.live_modules;
  *module = reinterpret_cast<ModuleHandle>(new LoadedModule{handle, fd});
  return kSuccess;
}
FAKE(cuModuleUnload, ModuleHandle module) {
  ENTER_WITH_CONTEXT(cuModuleUnload);
  State &s = state();
  if (forbidden())
    return kStreamCaptureUnsupported;
  s.counts.loads_in_flight += anyInFlight();
  s.counts.loads_in_capture += anyCapturing();
  auto *loaded = reinterpret_cast<LoadedModule *>(module);
  dlclose(loaded->handle);
  close(loaded->fd);
  delete loaded;
  ++s.counts.unloads;
  --s.counts.live_modules;
  return kSuccess;
}
FAKE(cuModuleGetFunction, FunctionHandle *function, ModuleHandle module,
     const char *name) {
  ENTER_WITH_CONTEXT(cuModuleGetFunction);
  void *symbol = dlsym(reinterpret_cast<LoadedModule *>(module)->handle, name);
  if (!symbol)
    return kNotFound;
  *function = static_cast<FunctionHandle>(symbol);
  return kSuccess;
}
FAKE(cuFuncGetAttribute, int *value, FunctionAttribute, FunctionHandle) {
  ENTER_WITH_CONTEXT(cuFuncGetAttribute);
  *value = 0;
  return kSuccess;
}
FAKE(cuFuncSetAttribute, FunctionHandle, FunctionAttribute, int value) {
  ENTER_WITH_CONTEXT(cuFuncSetAttribute);
  if (value > 232448)
    return kInvalidValue;
  state().counts.max_dynamic_shared = value;
  return kSuccess;
}
FAKE(cuFuncLoad, FunctionHandle) {
  ENTER_WITH_CONTEXT(cuFuncLoad);
  return kSuccess;
}

FAKE(cuLaunchKernelEx, const LaunchConfig *config, FunctionHandle function,
     void **params, void **) {
  fake_launch_t launch{};
  {
    ENTER_WITH_CONTEXT(cuLaunchKernelEx);
    State &s = state();
    for (unsigned i = 0; i < 3; ++i) {
      if (config->grid[i] == 0 || config->block[i] == 0)
        return kInvalidValue;
      launch.grid[i] = config->grid[i];
      launch.block[i] = config->block[i];
    }
    launch.shared_bytes = config->sharedBytes;
    for (unsigned i = 0; i < config->numAttributes; ++i)
      if (config->attributes[i].id == launchProgrammaticSerialization)
        launch.programmatic =
            config->attributes[i].value.programmaticSerializationAllowed;
    s.counts.last = launch;
    ++s.counts.launches;
    Stream &stream = streamOf(config->stream);
    if (stream.capturing)
      return kSuccess;
    ++stream.issued;
  }
  reinterpret_cast<fake_kernel_fn>(function)(&launch, params);
  return kSuccess;
}
/// The first words tell a kernel what was asked for: address, type, rank,
/// swizzle, then sizes, strides, box.
FAKE(cuTensorMapEncodeTiled, TensorMap *map, int type, uint32_t rank,
     void *address, const uint64_t *sizes, const uint64_t *strides,
     const uint32_t *box, const uint32_t *, int, int swizzle, int, int) {
  ENTER(cuTensorMapEncodeTiled);
  *map = {};
  uint64_t *out = map->opaque;
  *out++ = reinterpret_cast<uint64_t>(address);
  *out++ = static_cast<uint64_t>(type) | uint64_t{rank} << 8 |
           static_cast<uint64_t>(swizzle) << 16;
  for (uint32_t i = 0; i < rank; ++i)
    *out++ = sizes[i];
  for (uint32_t i = 0; i + 1 < rank; ++i)
    *out++ = strides[i];
  for (uint32_t i = 0; i < rank; ++i)
    *out++ = box[i];
  return kSuccess;
}

FAKE(cuStreamCreate, StreamHandle *stream, unsigned) {
  ENTER_WITH_CONTEXT(cuStreamCreate);
  auto *made = new Stream;
  state().streams.insert(made);
  ++state().counts.live_streams;
  *stream = reinterpret_cast<StreamHandle>(made);
  return kSuccess;
}
FAKE(cuStreamDestroy_v2, StreamHandle stream) {
  ENTER_WITH_CONTEXT(cuStreamDestroy_v2);
  auto *gone = reinterpret_cast<Stream *>(stream);
  if (!state().streams.erase(gone))
    return kInvalidValue;
  --state().counts.live_streams;
  delete gone;
  return kSuccess;
}
FAKE(cuStreamSynchronize, StreamHandle stream) {
  ENTER_WITH_CONTEXT(cuStreamSynchronize);
  if (streamOf(stream).capturing || forbidden())
    return kStreamCaptureUnsupported;
  streamOf(stream).issued = 0;
  return kSuccess;
}
FAKE(cuStreamIsCapturing, StreamHandle stream, CaptureStatus *status) {
  ENTER_WITH_CONTEXT(cuStreamIsCapturing);
  *status =
      streamOf(stream).capturing ? CaptureStatus::active : CaptureStatus::none;
  return kSuccess;
}
FAKE(cuThreadExchangeStreamCaptureMode, CaptureMode *mode) {
  std::swap(*mode, captureMode);
  return kSuccess;
}
FAKE(cuEventCreate, EventHandle *event, unsigned) {
  ENTER_WITH_CONTEXT(cuEventCreate);
  ++state().counts.live_events;
  *event = reinterpret_cast<EventHandle>(new Event);
  return kSuccess;
}
FAKE(cuEventDestroy_v2, EventHandle event) {
  ENTER_WITH_CONTEXT(cuEventDestroy_v2);
  --state().counts.live_events;
  delete reinterpret_cast<Event *>(event);
  return kSuccess;
}
FAKE(cuEventRecord, EventHandle event, StreamHandle stream) {
  ENTER_WITH_CONTEXT(cuEventRecord);
  ++state().counts.records;
  reinterpret_cast<Event *>(event)->stream = &streamOf(stream);
  return kSuccess;
}
FAKE(cuEventQuery, EventHandle event) {
  ENTER_WITH_CONTEXT(cuEventQuery);
  const Stream *stream = reinterpret_cast<Event *>(event)->stream;
  return stream && inFlight(*stream) ? kNotReady : kSuccess;
}

FAKE(cuMemPoolCreate, PoolHandle *pool, const PoolProperties *properties) {
  ENTER_WITH_CONTEXT(cuMemPoolCreate);
  if (properties->allocationType != 1 || properties->location.type != 1)
    return kInvalidValue;
  *pool = reinterpret_cast<PoolHandle>(&state());
  return kSuccess;
}
FAKE(cuMemPoolDestroy, PoolHandle) { return kSuccess; }
FAKE(cuMemPoolSetAttribute, PoolHandle, int, void *) { return kSuccess; }
FAKE(cuMemAllocFromPoolAsync, DevicePtr *out, size_t bytes, PoolHandle,
     StreamHandle) {
  ENTER_WITH_CONTEXT(cuMemAllocFromPoolAsync);
  return allocateBytes(out, bytes);
}
FAKE(cuMemFreeAsync, DevicePtr block, StreamHandle) {
  ENTER_WITH_CONTEXT(cuMemFreeAsync);
  return freeBytes(block);
}
FAKE(cuMemAlloc_v2, DevicePtr *out, size_t bytes) {
  ENTER_WITH_CONTEXT(cuMemAlloc_v2);
  return allocateBytes(out, bytes);
}
FAKE(cuMemFree_v2, DevicePtr block) {
  ENTER_WITH_CONTEXT(cuMemFree_v2);
  return freeBytes(block);
}

static void issue(StreamHandle stream) {
  ++state().counts.copies;
  ++streamOf(stream).issued;
}
FAKE(cuMemcpyHtoDAsync_v2, DevicePtr to, const void *from, size_t bytes,
     StreamHandle stream) {
  ENTER_WITH_CONTEXT(cuMemcpyHtoDAsync_v2);
  issue(stream);
  std::memcpy(hostOf<char>(to), from, bytes);
  return kSuccess;
}
FAKE(cuMemcpyDtoHAsync_v2, void *to, DevicePtr from, size_t bytes,
     StreamHandle stream) {
  ENTER_WITH_CONTEXT(cuMemcpyDtoHAsync_v2);
  issue(stream);
  std::memcpy(to, hostOf<char>(from), bytes);
  return kSuccess;
}
FAKE(cuMemcpyDtoDAsync_v2, DevicePtr to, DevicePtr from, size_t bytes,
     StreamHandle stream) {
  ENTER_WITH_CONTEXT(cuMemcpyDtoDAsync_v2);
  issue(stream);
  std::memmove(hostOf<char>(to), hostOf<char>(from), bytes);
  return kSuccess;
}
FAKE(cuMemcpy2DAsync_v2, const Copy2D *copy, StreamHandle stream) {
  ENTER_WITH_CONTEXT(cuMemcpy2DAsync_v2);
  if (copy->srcType != 2 || copy->dstType != 2 ||
      copy->srcPitch < copy->widthInBytes ||
      copy->dstPitch < copy->widthInBytes)
    return kInvalidValue;
  issue(stream);
  for (size_t row = 0; row < copy->height; ++row)
    std::memcpy(hostOf<char>(copy->dstDevice + row * copy->dstPitch),
                hostOf<char>(copy->srcDevice + row * copy->srcPitch),
                copy->widthInBytes);
  return kSuccess;
}
FAKE(cuMemsetD8Async, DevicePtr to, unsigned char value, size_t bytes,
     StreamHandle stream) {
  ENTER_WITH_CONTEXT(cuMemsetD8Async);
  issue(stream);
  std::memset(hostOf<char>(to), value, bytes);
  return kSuccess;
}

//===-- Control
//------------------------------------------------------------===//

static void reset() {
  Locked locked;
  State &s = state();
  s.faults.clear();
  s.heldAll = false;
  for (Stream *stream : s.streams)
    *stream = {};
  s.devices = 1;
  s.major = 9;
  s.minor = 0;
  s.memory = uint64_t{1} << 31;
  fake_counts_t fresh{};
  fresh.live_streams = s.counts.live_streams;
  fresh.live_events = s.counts.live_events;
  fresh.live_modules = s.counts.live_modules;
  fresh.live_bytes = s.counts.live_bytes;
  fresh.primary_references = s.counts.primary_references;
  s.counts = fresh;
}
static fake_counts_t counts() {
  Locked locked;
  return state().counts;
}
static void fail(const char *function, int result, unsigned nth) {
  Locked locked;
  state().faults.emplace(function, Fault{result, nth});
}
static void hold(void *stream, int held) {
  Locked locked;
  if (stream)
    static_cast<Stream *>(stream)->held = held;
  else
    state().heldAll = held;
  if (!held)
    for (Stream *each : state().streams)
      if (!stream || each == stream)
        each->issued = 0;
}
static void capture(void *stream, int capturing) {
  Locked locked;
  static_cast<Stream *>(stream)->capturing = capturing;
}
static void setDevices(int count, int major, int minor) {
  Locked locked;
  state().devices = count;
  state().major = major;
  state().minor = minor;
}
static void setMemory(uint64_t bytes) {
  Locked locked;
  state().memory = bytes;
}

extern "C" __attribute__((visibility("default"))) const fake_cuda_t *
fakeCuda() {
  static constexpr fake_cuda_t table = {reset,   counts,     fail,     hold,
                                        capture, setDevices, setMemory};
  return &table;
}
