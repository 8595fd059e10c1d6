// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/host/HostDevice.h"

#include "base/Digest.h"
#include "devices/device/MemoryPool.h"
#include "devices/device/Memref.h"

#include <array>
#include <cstring>
#include <string_view>

namespace pgkp::rt {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"x86-64", "x86-64-v2",
                                                     "x86-64-v3", "x86-64-v4"};

/// Index into kLevels; -1 off x86-64.
int hostLevel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4"))
    return 3;
  if (__builtin_cpu_supports("x86-64-v3"))
    return 2;
  if (__builtin_cpu_supports("x86-64-v2"))
    return 1;
  return 0;
#else
  return -1;
#endif
}

class HostImage final : public Image {
public:
  HostImage(std::unique_ptr<SharedObject> object, pgkp_host_kernel_fn function)
      : Image(reinterpret_cast<const void *>(function)),
        object(std::move(object)) {}
  size_t bytes() const override { return object ? object->bytes() : 0; }

private:
  std::unique_ptr<SharedObject> object;
};

class HostStream final : public Stream {
public:
  explicit HostStream(MemoryPool &pool) : cache(pool) {}
  ~HostStream() override { cache.release(scratch); }
  Status synchronize() override { return {}; }
  bool idle() override { return true; }

  /// Scratch memory of at least `bytes`; it only grows.
  Status reserve(uint64_t bytes) {
    if (bytes <= scratchBytes)
      return {};
    PGKP_ASSIGN(void *larger, cache.allocate(bytes));
    cache.release(scratch);
    scratch = larger;
    scratchBytes = bytes;
    return {};
  }

  uint64_t scratchSize() const { return scratchBytes; }

  MemoryPool::Cache cache;
  void *scratch = nullptr;

private:
  uint64_t scratchBytes = 0;
};

class HostDevice final : public Device {
public:
  explicit HostDevice(HostOptions options)
      : level(hostLevel()), pool(options.separateMemory) {}

  schema::DeviceKind kind() const override { return schema::DeviceKind::host; }
  std::string name() const override { return "host " + chip(); }
  schema::TargetT target() const override {
    schema::TargetT target;
    target.device = schema::DeviceKind::host;
    target.chip = chip();
    return target;
  }
  bool accepts(const schema::Target &target) const override {
    if (target.device() != schema::DeviceKind::host || !target.chip() ||
        (target.features() && target.features()->size() != 0))
      return false;
    const std::string_view wanted = target.chip()->string_view();
    if (level < 0)
      return wanted == "generic";
    for (int i = 0; i <= level; ++i)
      if (wanted == kLevels[static_cast<size_t>(i)])
        return true;
    return false;
  }
  schema::CodeFormat codeFormat() const override {
    return schema::CodeFormat::elf;
  }

  Expected<std::unique_ptr<Image>>
  load(const schema::Artifact &artifact) override {
    const std::string what =
        fmt::format("kernel '{}'", view(artifact.kernel()));
    if (artifact.format() != schema::CodeFormat::elf || !artifact.code())
      return makeError(Code::unsupported,
                       "{}: code format '{}' on the host, expected 'elf'", what,
                       schema::EnumNameCodeFormat(artifact.format()));
    if (!artifact.target() || !accepts(*artifact.target()))
      return makeError(
          Code::unsupported, "{}: compiled for '{}', this host is '{}'", what,
          artifact.target() ? view(artifact.target()->chip()) : "nothing",
          chip());
    if (!artifact.content_key())
      return makeError(Code::corrupt, "{}: artifact without content key", what);
    PGKP_ASSIGN(auto object,
                SharedObject::load(
                    {artifact.code()->data(), artifact.code()->size()}, what));
    const void *buildId = object->find(PGKP_BUILD_ID_SYMBOL);
    if (!buildId ||
        std::memcmp(buildId, artifact.content_key()->bytes()->data(),
                    sizeof(Digest)) != 0)
      return makeError(
          Code::corrupt,
          "{}: symbol '{}' {}, expected the artifact's content key", what,
          PGKP_BUILD_ID_SYMBOL, buildId ? "is another key" : "is missing");
    const std::string symbol(view(artifact.symbol()));
    void *function = object->find(symbol.c_str());
    if (!function)
      return makeError(Code::corrupt, "{}: symbol '{}' is missing", what,
                       symbol);
    return std::make_unique<HostImage>(
        std::move(object), reinterpret_cast<pgkp_host_kernel_fn>(function));
  }

  using Device::launch;
  Status launch(Stream &stream, const void *handle,
                const LaunchArgs &call) override {
    auto &hostStream = static_cast<HostStream &>(stream);
    const size_t count = call.args.size();
    if (call.workspaceBytes > hostStream.scratchSize() || count > kStackArgs ||
        pool.isIsolated()) [[unlikely]]
      return launchSlowly(hostStream, handle, call);
    void *list[kStackArgs + 1];
    for (size_t i = 0; i < count; ++i) {
      // Scalar on purpose: the caller wrote these words one by one just before,
      // and a vector load over two such stores waits for both.
      void *arg = call.args[i];
      __asm__("" : "+r"(arg));
      list[i] = arg;
    }
    list[count] = call.workspaceBytes != 0 ? hostStream.scratch : nullptr;
    functionOf(handle)(list);
    Status done; // `return {}` would fill the room of an error with zeros
    return done;
  }

  Expected<std::unique_ptr<Stream>> createStream() override {
    return std::make_unique<HostStream>(pool);
  }

  Expected<void *> allocate(Stream &stream, uint64_t bytes) override {
    return static_cast<HostStream &>(stream).cache.allocate(bytes);
  }
  void release(Stream &stream, void *memory) override {
    static_cast<HostStream &>(stream).cache.release(memory);
  }
  Status copyIn(Stream &, void *device, const void *host,
                uint64_t bytes) override {
    return copy(device, host, bytes);
  }
  Status copyOut(Stream &, void *host, const void *device,
                 uint64_t bytes) override {
    return copy(host, device, bytes);
  }
  Status copyStrided(Stream &, uint32_t rank, uint32_t elementBytes,
                     const void *srcHeader, const void *dstHeader) override {
    MemoryPool::Window window(pool);
    if (!copyMemref(rank, elementBytes, srcHeader, dstHeader))
      return makeError(Code::invalidArgument,
                       "copy between memrefs of rank {}: shapes differ", rank);
    return {};
  }

  bool loadDrains() const override { return false; }

private:
  static constexpr size_t kStackArgs = 64;

  static pgkp_host_kernel_fn functionOf(const void *handle) {
    return reinterpret_cast<pgkp_host_kernel_fn>(const_cast<void *>(handle));
  }
  /// A launch that has to get memory or to open the pool first.
  [[gnu::noinline]] Status launchSlowly(HostStream &stream, const void *handle,
                                        const LaunchArgs &call) {
    PGKP_TRY(stream.reserve(call.workspaceBytes));
    std::vector<void *> list(call.args.begin(), call.args.end());
    list.push_back(call.workspaceBytes != 0 ? stream.scratch : nullptr);
    MemoryPool::Window window(pool);
    functionOf(handle)(list.data());
    return {};
  }

  std::string chip() const {
    return level < 0 ? "generic"
                     : std::string(kLevels[static_cast<size_t>(level)]);
  }
  static std::string_view view(const flatbuffers::String *text) {
    return text ? text->string_view() : std::string_view();
  }
  Status copy(void *to, const void *from, uint64_t bytes) {
    MemoryPool::Window window(pool);
    if (bytes != 0)
      std::memcpy(to, from, bytes);
    return {};
  }

  const int level;
  MemoryPool pool;
};

} // namespace

std::unique_ptr<Device> makeHostDevice(HostOptions options) {
  return std::make_unique<HostDevice>(options);
}

std::unique_ptr<Image> makeHostImage(pgkp_host_kernel_fn function) {
  return std::make_unique<HostImage>(nullptr, function);
}

} // namespace pgkp::rt
