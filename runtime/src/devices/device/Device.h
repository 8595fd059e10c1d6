// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What the runtime needs of a device. Implementations: host, sim, cuda.
/// runtime/tests/devices/conformance holds every one of them to this contract.
#pragma once

#include "base/Status.h"
#include "schema/record_generated.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace pgkp::rt {

/// An image in the device's memory. Destroying it unloads; the caller makes
/// sure that no launch of it is in flight. Thread-safe to use, not to destroy
/// while used.
class Image {
public:
  virtual ~Image() = default;
  virtual size_t bytes() const = 0;
  /// All that a launch needs of the image, in one word: the dispatch table
  /// keeps it beside the key, so that a call does not touch the image. Valid as
  /// long as the image.
  const void *handle() const { return launchHandle; }

protected:
  /// null: the handle is the image itself.
  explicit Image(const void *handle = nullptr)
      : launchHandle(handle ? handle : this) {}

private:
  const void *const launchHandle;
};

/// An in-order queue. Thread-compatible: one launching thread at a time.
class Stream {
public:
  virtual ~Stream() = default;
  /// Blocks until everything issued so far is done.
  virtual Status synchronize() = 0;
  /// Nothing issued is still running. Never blocks.
  virtual bool idle() = 0;
  /// What is issued now becomes part of a graph and does not run.
  virtual bool capturing() { return false; }
};

/// One kernel call. args[i] points to a memref header (pgkp-c/program.h) or to
/// a scalar.
struct LaunchArgs {
  std::span<void *const> args;
  std::span<const int64_t> extents;
  uint64_t workspaceBytes = 0;
};

/// Thread-safe.
class Device {
public:
  virtual ~Device() = default;

  virtual schema::DeviceKind kind() const = 0;
  /// "host x86-64-v3", "NVIDIA H200", for people and for profiles.
  virtual std::string name() const = 0;
  /// What the worker compiles for. On the host, `chip` is one of LLVM's CPU
  /// names for the psABI levels ("x86-64", "x86-64-v2", "x86-64-v3",
  /// "x86-64-v4"; "generic" elsewhere) and `features` is empty: content keys
  /// are then the same on machines of one level.
  virtual schema::TargetT target() const = 0;
  /// Code for `target` runs here (on the host: this level or a lower one).
  virtual bool accepts(const schema::Target &target) const = 0;
  virtual schema::CodeFormat codeFormat() const = 0;

  /// Loads the artifact's code, checks its kernels are there, does first-launch
  /// work. The caller has verified the checksum. On devices where loading
  /// drains the queue the caller picks the moment. corrupt, unsupported,
  /// exhausted.
  virtual Expected<std::unique_ptr<Image>>
  load(const schema::Artifact &artifact) = 0;

  /// Issues one launch of the image's kernel. No lock, allocation or system
  /// call on the host device's path except growth of the stream's scratch
  /// memory.
  virtual Status launch(Stream &stream, const void *handle,
                        const LaunchArgs &args) = 0;
  Status launch(Stream &stream, const Image &image, const LaunchArgs &args) {
    return launch(stream, image.handle(), args);
  }

  virtual Expected<std::unique_ptr<Stream>> createStream() = 0;
  /// A stream of the caller's (a CUstream), which stays the caller's and must
  /// outlive the result. unsupported: the device has no such thing.
  virtual Expected<std::unique_ptr<Stream>> adoptStream(void *native);
  /// Work that is launched on this stream without our knowledge counts for
  /// `idle` and `capturing`, until it is forgotten. unsupported as above.
  virtual Status registerStream(void *native);
  virtual void forgetStream(void *) {}

  /// Nothing runs of what was issued here or on registered streams. Never
  /// blocks for long; may be wrong at once, as others go on launching.
  virtual bool idle() { return true; }
  /// Some stream is being captured: nothing may be loaded or unloaded.
  virtual bool capturing() { return false; }

  /// Stream-ordered, 64-byte aligned, from a pool; contents undefined. `bytes`
  /// of 0 give a distinct pointer.
  virtual Expected<void *> allocate(Stream &stream, uint64_t bytes) = 0;
  virtual void release(Stream &stream, void *memory) = 0;
  /// Dense copies between host and device memory, in stream order.
  virtual Status copyIn(Stream &stream, void *device, const void *host,
                        uint64_t bytes) = 0;
  virtual Status copyOut(Stream &stream, void *host, const void *device,
                         uint64_t bytes) = 0;
  /// Strided copy between memrefs of equal shape, both on the device.
  virtual Status copyStrided(Stream &stream, uint32_t rank,
                             uint32_t elementBytes, const void *srcHeader,
                             const void *dstHeader) = 0;

  /// Loading waits for running work and stops other launches (CUDA: true; host:
  /// false).
  virtual bool loadDrains() const = 0;
  /// A launch returns before its kernel is done: host times are not kernel
  /// times.
  virtual bool asynchronous() const { return false; }
  /// The processor cannot touch what `allocate` gives.
  virtual bool separateMemory() const { return false; }
};

} // namespace pgkp::rt
