// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/cuda/CudaDevice.h"

#include "devices/cuda/CudaImage.h"
#include "devices/cuda/StridedCopy.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace pgkp::rt {
namespace {

using namespace cuda;

std::string_view view(const flatbuffers::String *text) {
  return text ? text->string_view() : std::string_view();
}

/// "sm_90" or "sm_90a"; nothing for other names.
struct Chip {
  int capability = 0; ///< 90
  bool exact = false; ///< code for this chip alone

  static std::optional<Chip> parse(std::string_view name) {
    if (!name.starts_with("sm_"))
      return std::nullopt;
    name.remove_prefix(3);
    Chip chip;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(),
                                        chip.capability);
    const std::string_view rest(end, name.data() + name.size());
    if (error != std::errc() || (!rest.empty() && rest != "a"))
      return std::nullopt;
    chip.exact = !rest.empty();
    return chip;
  }
};

/// The primary context, held as long as the device lives.
class Primary {
public:
  Primary(const Driver &driver, DeviceId device)
      : driver(driver), device(device) {}
  ~Primary() { driver.primaryRelease(device); }
  Primary(const Primary &) = delete;
  Primary &operator=(const Primary &) = delete;

private:
  const Driver &driver;
  const DeviceId device;
};

struct Identity {
  DeviceId id = 0;
  std::string name;
  int capability = 0;
};

class CudaDevice final : public Device {
public:
  CudaDevice(const Driver &driver, ContextHandle context,
             std::unique_ptr<Primary> primary, Identity identity,
             std::unique_ptr<Memory> memory)
      : driver(driver), context(context), primary(std::move(primary)),
        identity(std::move(identity)), memory(std::move(memory)) {}

  schema::DeviceKind kind() const override { return schema::DeviceKind::cuda; }
  std::string name() const override { return identity.name; }

  /// From compute capability 9.0 on the exact chip, as its matrix and copy
  /// engines are for no other.
  schema::TargetT target() const override {
    schema::TargetT target;
    target.device = schema::DeviceKind::cuda;
    target.chip = chipName();
    return target;
  }

  bool accepts(const schema::Target &target) const override {
    if (target.device() != schema::DeviceKind::cuda)
      return false;
    const auto chip = Chip::parse(view(target.chip()));
    // Code runs on later chips of its own generation.
    return chip &&
           (chip->exact ? chip->capability == identity.capability
                        : chip->capability / 10 == identity.capability / 10 &&
                              chip->capability <= identity.capability);
  }
  schema::CodeFormat codeFormat() const override {
    return schema::CodeFormat::cubin;
  }

  Expected<std::unique_ptr<Image>>
  load(const schema::Artifact &artifact) override {
    const std::string what =
        fmt::format("kernel '{}'", view(artifact.kernel()));
    // The driver would take PTX, too, but compile it here, under its lock.
    if (artifact.format() != schema::CodeFormat::cubin || !artifact.code())
      return makeError(Code::unsupported,
                       "{}: code format '{}' on a GPU, expected 'cubin'", what,
                       schema::EnumNameCodeFormat(artifact.format()));
    if (!artifact.target() || !accepts(*artifact.target()))
      return makeError(
          Code::unsupported, "{}: compiled for '{}', this device is '{}'", what,
          artifact.target() ? view(artifact.target()->chip()) : "nothing",
          chipName());
    if (!artifact.content_key())
      return makeError(Code::corrupt, "{}: artifact without content key", what);
    const CurrentContext current(driver, context);
    const OutsideCapture outside(driver);
    return CudaImage::load(driver, context, artifact);
  }

  using Device::launch;
  Status launch(Stream &stream, const void *handle,
                const LaunchArgs &call) override {
    const CurrentContext current(driver, context);
    return static_cast<const LaunchPlan *>(handle)->launch(
        driver, static_cast<CudaStream &>(stream), call);
  }

  Expected<std::unique_ptr<Stream>> createStream() override {
    const CurrentContext current(driver, context);
    StreamHandle handle = nullptr;
    PGKP_TRY(driver.check(driver.streamCreate(&handle, streamNonBlocking),
                          "cuStreamCreate"));
    auto stream = makeStream(handle, /*owned=*/true);
    if (!stream)
      driver.streamDestroy(handle);
    return stream;
  }
  Expected<std::unique_ptr<Stream>> adoptStream(void *native) override {
    return makeStream(static_cast<StreamHandle>(native), /*owned=*/false);
  }

  Status registerStream(void *native) override {
    const auto handle = static_cast<StreamHandle>(native);
    std::lock_guard lock(mutex);
    for (const auto &watch : foreign)
      if (watch->stream == handle)
        return {};
    PGKP_ASSIGN(auto watch, StreamWatch::create(driver, context, handle,
                                                /*counted=*/false));
    foreign.push_back(std::move(watch));
    return {};
  }
  void forgetStream(void *native) override {
    std::lock_guard lock(mutex);
    std::erase_if(foreign, [&](const auto &watch) {
      return watch->stream == static_cast<StreamHandle>(native);
    });
  }

  bool idle() override {
    std::lock_guard lock(mutex);
    auto isIdle = [](const auto &watch) { return watch->idle(); };
    return std::all_of(own.begin(), own.end(), isIdle) &&
           std::all_of(foreign.begin(), foreign.end(), isIdle);
  }
  bool capturing() override {
    std::lock_guard lock(mutex);
    return std::any_of(adopted.begin(), adopted.end(),
                       [](const auto &watch) { return watch->capturing(); }) ||
           std::any_of(foreign.begin(), foreign.end(),
                       [](const auto &watch) { return watch->capturing(); });
  }

  Expected<void *> allocate(Stream &stream, uint64_t bytes) override {
    auto &own = static_cast<CudaStream &>(stream);
    return own.cache.allocate(bytes, own.capturing());
  }
  void release(Stream &stream, void *pointer) override {
    static_cast<CudaStream &>(stream).cache.release(pointer);
  }

  Status copyIn(Stream &stream, void *device, const void *host,
                uint64_t bytes) override {
    return issue(stream, bytes, "cuMemcpyHtoDAsync", [&](StreamHandle on) {
      return driver.copyIn(reinterpret_cast<DevicePtr>(device), host, bytes,
                           on);
    });
  }
  Status copyOut(Stream &stream, void *host, const void *device,
                 uint64_t bytes) override {
    return issue(stream, bytes, "cuMemcpyDtoHAsync", [&](StreamHandle on) {
      return driver.copyOut(host, reinterpret_cast<DevicePtr>(device), bytes,
                            on);
    });
  }
  Status copyStrided(Stream &stream, uint32_t rank, uint32_t elementBytes,
                     const void *srcHeader, const void *dstHeader) override {
    if (!sameShape(rank, srcHeader, dstHeader))
      return makeError(Code::invalidArgument,
                       "copy between memrefs of rank {}: shapes differ", rank);
    return issue(stream, /*bytes=*/1, "cuMemcpy2DAsync", [&](StreamHandle on) {
      return copyDevice(driver, on, rank, elementBytes, srcHeader, dstHeader);
    });
  }

  bool loadDrains() const override { return true; }
  bool asynchronous() const override { return true; }
  bool separateMemory() const override { return true; }

private:
  /// Takes its watch out of the device's lists when it goes.
  class ListedStream;

  std::string chipName() const {
    return fmt::format("sm_{}{}", identity.capability,
                       identity.capability >= 90 ? "a" : "");
  }

  Expected<std::unique_ptr<Stream>> makeStream(StreamHandle handle, bool owned);

  template <typename Call>
  Status issue(Stream &stream, uint64_t bytes, const char *what, Call call) {
    if (bytes == 0)
      return {};
    auto &own = static_cast<CudaStream &>(stream);
    const CurrentContext current(driver, context);
    own.watch->begin();
    const Result result = call(own.handle());
    own.watch->end();
    return driver.check(result, what);
  }

  const Driver &driver;
  const ContextHandle context;
  const std::unique_ptr<Primary> primary; ///< null: the caller's context
  const Identity identity;
  const std::unique_ptr<Memory> memory;
  std::mutex mutex; ///< all below
  std::vector<StreamWatch *> own, adopted;
  std::vector<std::unique_ptr<StreamWatch>> foreign;
};

class CudaDevice::ListedStream final : public CudaStream {
public:
  ListedStream(CudaDevice &device, std::unique_ptr<StreamWatch> watch,
               bool owned)
      : CudaStream(device.driver, device.context, *device.memory,
                   std::move(watch), owned),
        device(device) {
    std::lock_guard lock(device.mutex);
    device.own.push_back(this->watch.get());
    if (!owned)
      device.adopted.push_back(this->watch.get());
  }
  ~ListedStream() override {
    std::lock_guard lock(device.mutex);
    std::erase(device.own, watch.get());
    std::erase(device.adopted, watch.get());
  }

private:
  CudaDevice &device;
};

Expected<std::unique_ptr<Stream>> CudaDevice::makeStream(StreamHandle handle,
                                                         bool owned) {
  PGKP_ASSIGN(auto watch,
              StreamWatch::create(driver, context, handle, /*counted=*/owned));
  return std::make_unique<ListedStream>(*this, std::move(watch), owned);
}

Expected<Identity> identify(const Driver &driver, DeviceId id) {
  Identity identity;
  identity.id = id;
  char name[256] = {};
  PGKP_TRY(driver.check(driver.deviceName(name, sizeof name - 1, id),
                        "cuDeviceGetName"));
  identity.name = name;
  int major = 0, minor = 0;
  PGKP_TRY(
      driver.check(driver.deviceAttribute(&major, attributeComputeMajor, id),
                   "cuDeviceGetAttribute"));
  PGKP_TRY(
      driver.check(driver.deviceAttribute(&minor, attributeComputeMinor, id),
                   "cuDeviceGetAttribute"));
  identity.capability = major * 10 + minor;
  if (major < 7)
    return makeError(Code::unsupported,
                     "'{}' has compute capability {}.{}, expected 7.0 or newer",
                     identity.name, major, minor);
  return identity;
}

Expected<DeviceId> findDevice(const Driver &driver, int ordinal) {
  int count = 0;
  PGKP_TRY(driver.check(driver.deviceCount(&count), "cuDeviceGetCount"));
  if (ordinal < 0 || ordinal >= count)
    return makeError(Code::unavailable,
                     "device 'cuda:{}': this machine shows {} CUDA device{}",
                     ordinal, count, count == 1 ? "" : "s");
  DeviceId id = 0;
  PGKP_TRY(driver.check(driver.deviceGet(&id, ordinal), "cuDeviceGet"));
  return id;
}

} // namespace

Expected<std::unique_ptr<Device>> makeCudaDevice(const CudaOptions &options) {
  PGKP_ASSIGN(const Driver *driver, Driver::open(options.library));
  auto context = static_cast<ContextHandle>(options.context);
  DeviceId id = 0;
  std::unique_ptr<Primary> primary;
  if (context) {
    const CurrentContext current(*driver, context);
    PGKP_TRY(driver->check(driver->contextDevice(&id), "cuCtxGetDevice"));
  } else {
    PGKP_ASSIGN(id, findDevice(*driver, options.ordinal));
    PGKP_TRY(driver->check(driver->primaryRetain(&context, id),
                           "cuDevicePrimaryCtxRetain"));
    primary = std::make_unique<Primary>(*driver, id);
  }
  PGKP_ASSIGN(Identity identity, identify(*driver, id));
  PGKP_ASSIGN(auto memory, Memory::create(*driver, context, id));
  return std::make_unique<CudaDevice>(*driver, context, std::move(primary),
                                      std::move(identity), std::move(memory));
}

} // namespace pgkp::rt
