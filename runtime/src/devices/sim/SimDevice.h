// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A device that computes nothing and costs what a model says, on any
/// clock.
#pragma once

#include "base/Clock.h"
#include "base/Digest.h"
#include "devices/device/Device.h"
#include "devices/device/MemoryPool.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace pgkp::rt {

/// What a cost model may look at.
struct SimKernel {
  std::string name;
  Digest contentKey;
  schema::ArtifactT artifact; ///< without its code
};

struct SimOptions {
  std::string chip = "sim";
  /// Takes artifacts of the host, too, so that bundles need none of their own.
  bool acceptsHost = false;
  /// Duration of one launch; null: 10 us.
  std::function<TimeNs(const SimKernel &, std::span<const int64_t> extents)>
      kernelTime;
  /// Duration of one load; null: 1 ms.
  std::function<TimeNs(const SimKernel &)> loadTime;
  /// Loading first waits for every stream, and launches wait for the load.
  bool loadDrains = true;
  /// What the caller's thread spends on one launch.
  TimeNs launchTime = 0;
  /// How the calling thread passes time until the given moment. Null: it does
  /// not, and busy times are only accounted for: later work starts later.
  std::function<void(TimeNs)> waitUntil;
  /// How many launches `recent` remembers.
  size_t history = 64;
};

struct SimLaunch {
  std::string kernel;
  Digest contentKey;
  std::vector<int64_t> extents;
  uint64_t stream = 0;
  TimeNs issued = 0, begin = 0, end = 0;
};

struct SimCounts {
  uint64_t loads = 0, unloads = 0, launches = 0, copies = 0;
  TimeNs busy = 0; ///< sum of kernel times
};

/// Streams are in-order queues on the clock; they run beside each other. Loads
/// accept artifacts of any format. Memory is real, contents start as zero.
class SimDevice final : public Device {
public:
  /// The clock must outlive the device.
  SimDevice(const Clock &clock, SimOptions options);
  ~SimDevice() override;

  /// Operations that faults can be injected into.
  enum class Operation : uint8_t { load, launch, allocate };
  /// The operation's n-th call from now (1 = next) fails.
  void failNext(Operation operation, Error error, unsigned nth = 1);

  SimCounts counts() const;
  /// Images that are loaded now.
  uint64_t loaded() const;
  /// The last launches, oldest first.
  std::vector<SimLaunch> recent() const;

  schema::DeviceKind kind() const override { return schema::DeviceKind::sim; }
  std::string name() const override { return "sim " + options.chip; }
  schema::TargetT target() const override;
  bool accepts(const schema::Target &target) const override;
  schema::CodeFormat codeFormat() const override {
    return schema::CodeFormat::none;
  }
  Expected<std::unique_ptr<Image>>
  load(const schema::Artifact &artifact) override;
  using Device::launch;
  Status launch(Stream &stream, const void *handle,
                const LaunchArgs &call) override;
  Expected<std::unique_ptr<Stream>> createStream() override;
  Expected<void *> allocate(Stream &stream, uint64_t bytes) override;
  void release(Stream &stream, void *memory) override;
  Status copyIn(Stream &stream, void *device, const void *host,
                uint64_t bytes) override;
  Status copyOut(Stream &stream, void *host, const void *device,
                 uint64_t bytes) override;
  Status copyStrided(Stream &stream, uint32_t rank, uint32_t elementBytes,
                     const void *srcHeader, const void *dstHeader) override;
  bool loadDrains() const override { return options.loadDrains; }

private:
  struct SimStream;
  struct SimImage;

  Status takeFault(Operation operation);
  void wait(TimeNs until) const;

  const Clock &clock;
  const SimOptions options;
  MemoryPool pool;

  mutable std::mutex mutex; ///< all below, and the streams' busy times
  SimCounts count;
  std::deque<SimLaunch> launches;
  std::vector<SimStream *> streams;
  uint64_t nextStream = 0;
  TimeNs loadingUntil = 0; ///< launches do not begin before
  struct Fault {
    unsigned countdown;
    Error error;
  };
  std::multimap<Operation, Fault> faults;
};

/// On a manual clock: synchronize and load move it forward.
std::unique_ptr<SimDevice> makeSimDevice(ManualClock &clock,
                                         SimOptions options = {});
/// On CLOCK_MONOTONIC: synchronize and load sleep.
std::unique_ptr<SimDevice> makeSimDevice(const SteadyClock &clock,
                                         SimOptions options = {});

} // namespace pgkp::rt
