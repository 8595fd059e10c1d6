// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/sim/SimDevice.h"

#include "devices/device/Memref.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace pgkp::rt {

struct SimDevice::SimStream final : Stream {
  SimStream(SimDevice &device, uint64_t id)
      : device(device), id(id), cache(device.pool) {
    std::lock_guard lock(device.mutex);
    device.streams.push_back(this);
  }
  ~SimStream() override {
    std::lock_guard lock(device.mutex);
    std::erase(device.streams, this);
  }

  Status synchronize() override {
    TimeNs until;
    {
      std::lock_guard lock(device.mutex);
      until = busyUntil;
    }
    device.wait(until);
    return {};
  }
  bool idle() override {
    std::lock_guard lock(device.mutex);
    return busyUntil <= device.clock.now();
  }

  SimDevice &device;
  const uint64_t id;
  MemoryPool::Cache cache;
  TimeNs busyUntil = 0; ///< under device.mutex
};

struct SimDevice::SimImage final : Image {
  SimImage(SimDevice &device, SimKernel kernel, size_t size)
      : device(device), kernel(std::move(kernel)), size(size) {}
  ~SimImage() override {
    std::lock_guard lock(device.mutex);
    ++device.count.unloads;
  }
  size_t bytes() const override { return size; }

  SimDevice &device;
  const SimKernel kernel;
  const size_t size;
};

SimDevice::SimDevice(const Clock &clock, SimOptions options)
    : clock(clock), options(std::move(options)) {}

SimDevice::~SimDevice() = default;

void SimDevice::failNext(Operation operation, Error error, unsigned nth) {
  std::lock_guard lock(mutex);
  faults.emplace(operation, Fault{nth, std::move(error)});
}

Status SimDevice::takeFault(Operation operation) {
  std::lock_guard lock(mutex);
  auto [it, end] = faults.equal_range(operation);
  Status status;
  while (it != end) {
    if (--it->second.countdown != 0) {
      ++it;
      continue;
    }
    status = tl::unexpected<Error>(std::move(it->second.error));
    it = faults.erase(it);
  }
  return status;
}

void SimDevice::wait(TimeNs until) const {
  if (options.waitUntil && until > clock.now())
    options.waitUntil(until);
}

SimCounts SimDevice::counts() const {
  std::lock_guard lock(mutex);
  return count;
}

uint64_t SimDevice::loaded() const {
  std::lock_guard lock(mutex);
  return count.loads - count.unloads;
}

std::vector<SimLaunch> SimDevice::recent() const {
  std::lock_guard lock(mutex);
  return {launches.begin(), launches.end()};
}

schema::TargetT SimDevice::target() const {
  schema::TargetT target;
  target.device = schema::DeviceKind::sim;
  target.chip = options.chip;
  return target;
}

bool SimDevice::accepts(const schema::Target &target) const {
  if (options.acceptsHost && target.device() == schema::DeviceKind::host)
    return true;
  return target.device() == schema::DeviceKind::sim && target.chip() &&
         target.chip()->string_view() == options.chip;
}

Expected<std::unique_ptr<Image>>
SimDevice::load(const schema::Artifact &artifact) {
  const std::string kernelName =
      artifact.kernel() ? artifact.kernel()->str() : "";
  if (!artifact.target() || !accepts(*artifact.target()))
    return makeError(Code::unsupported,
                     "kernel '{}': compiled for '{}', this device is '{}'",
                     kernelName,
                     artifact.target() && artifact.target()->chip()
                         ? artifact.target()->chip()->string_view()
                         : "nothing",
                     options.chip);
  if (!artifact.content_key())
    return makeError(Code::corrupt, "kernel '{}': artifact without content key",
                     kernelName);
  PGKP_TRY(takeFault(Operation::load));

  SimKernel kernel;
  kernel.name = kernelName;
  std::copy(artifact.content_key()->bytes()->begin(),
            artifact.content_key()->bytes()->end(),
            kernel.contentKey.bytes.begin());
  artifact.UnPackTo(&kernel.artifact);
  const size_t size = kernel.artifact.code.size();
  kernel.artifact.code.clear();

  const TimeNs cost = options.loadTime ? options.loadTime(kernel) : kNsPerMs;
  TimeNs end;
  {
    std::lock_guard lock(mutex);
    TimeNs begin = std::max(clock.now(), loadingUntil);
    if (options.loadDrains)
      for (const SimStream *stream : streams)
        begin = std::max(begin, stream->busyUntil);
    end = begin + cost;
    if (options.loadDrains)
      loadingUntil = end;
    ++count.loads;
  }
  wait(end);
  return std::make_unique<SimImage>(*this, std::move(kernel), size);
}

Status SimDevice::launch(Stream &stream, const void *handle,
                         const LaunchArgs &call) {
  PGKP_TRY(takeFault(Operation::launch));
  auto &simStream = static_cast<SimStream &>(stream);
  // The handle of an image without one of its own is the image.
  const auto &image = *static_cast<const Image *>(handle);
  const SimKernel &kernel = static_cast<const SimImage &>(image).kernel;
  const TimeNs cost = options.kernelTime
                          ? options.kernelTime(kernel, call.extents)
                          : 10 * kNsPerUs;
  TimeNs returns;
  {
    std::lock_guard lock(mutex);
    SimLaunch record;
    record.kernel = kernel.name;
    record.contentKey = kernel.contentKey;
    record.extents.assign(call.extents.begin(), call.extents.end());
    record.stream = simStream.id;
    record.issued = clock.now();
    returns = std::max(record.issued, loadingUntil) + options.launchTime;
    record.begin = std::max(returns, simStream.busyUntil);
    record.end = record.begin + cost;
    simStream.busyUntil = record.end;
    ++count.launches;
    count.busy += cost;
    launches.push_back(std::move(record));
    if (launches.size() > options.history)
      launches.pop_front();
  }
  wait(returns);
  return {};
}

Expected<std::unique_ptr<Stream>> SimDevice::createStream() {
  uint64_t id;
  {
    std::lock_guard lock(mutex);
    id = nextStream++;
  }
  return std::make_unique<SimStream>(*this, id);
}

Expected<void *> SimDevice::allocate(Stream &stream, uint64_t bytes) {
  PGKP_TRY(takeFault(Operation::allocate));
  PGKP_ASSIGN(void *memory,
              static_cast<SimStream &>(stream).cache.allocate(bytes));
  // Nothing ever computes these bytes; they must not differ between runs.
  std::memset(memory, 0, bytes);
  return memory;
}

void SimDevice::release(Stream &stream, void *memory) {
  static_cast<SimStream &>(stream).cache.release(memory);
}

Status SimDevice::copyIn(Stream &stream, void *device, const void *host,
                         uint64_t bytes) {
  PGKP_TRY(stream.synchronize());
  if (bytes != 0)
    std::memcpy(device, host, bytes);
  std::lock_guard lock(mutex);
  ++count.copies;
  return {};
}

Status SimDevice::copyOut(Stream &stream, void *host, const void *device,
                          uint64_t bytes) {
  return copyIn(stream, host, device, bytes);
}

Status SimDevice::copyStrided(Stream &stream, uint32_t rank,
                              uint32_t elementBytes, const void *srcHeader,
                              const void *dstHeader) {
  PGKP_TRY(stream.synchronize());
  if (!copyMemref(rank, elementBytes, srcHeader, dstHeader))
    return makeError(Code::invalidArgument,
                     "copy between memrefs of rank {}: shapes differ", rank);
  std::lock_guard lock(mutex);
  ++count.copies;
  return {};
}

std::unique_ptr<SimDevice> makeSimDevice(ManualClock &clock,
                                         SimOptions options) {
  if (!options.waitUntil)
    options.waitUntil = [&clock](TimeNs until) { clock.advanceTo(until); };
  return std::make_unique<SimDevice>(clock, std::move(options));
}

std::unique_ptr<SimDevice> makeSimDevice(const SteadyClock &clock,
                                         SimOptions options) {
  if (!options.waitUntil)
    options.waitUntil = [&clock](TimeNs until) {
      std::this_thread::sleep_for(
          std::chrono::nanoseconds(until - clock.now()));
    };
  return std::make_unique<SimDevice>(clock, std::move(options));
}

} // namespace pgkp::rt
