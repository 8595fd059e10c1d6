// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The processor as a device: artifacts are shared objects, streams are
/// synchronous.
#pragma once

#include "devices/device/Device.h"

#include <memory>
#include <pgkp-c/program.h>

namespace pgkp::rt {

struct HostOptions {
  /// Device memory can be touched by launches and copies only, as if it were
  /// across a bus. For tests: it costs system calls on every launch.
  bool separateMemory = false;
};

/// Images and streams must be gone before the device is destroyed.
std::unique_ptr<Device> makeHostDevice(HostOptions options = {});

/// An image around a function of this process, for built-in kernels, tests and
/// benchmarks. Any host device can launch it.
std::unique_ptr<Image> makeHostImage(pgkp_host_kernel_fn function);

/// A program or kernel library in memory: copied to a sealed memfd, so that
/// what was verified is what runs (and a noexec /tmp does not matter), then
/// dlopened. Closed on destruction. Thread-safe.
class SharedObject {
public:
  /// `what` names it in messages. corrupt: not a shared object for this
  /// machine; unsupported, permission, exhausted: the system refused.
  static Expected<std::unique_ptr<SharedObject>>
  load(std::span<const uint8_t> elf, const std::string &what);
  ~SharedObject();
  SharedObject(const SharedObject &) = delete;
  SharedObject &operator=(const SharedObject &) = delete;

  /// The symbol's address, or null.
  void *find(const char *symbol) const;
  size_t bytes() const { return size; }

private:
  SharedObject(void *handle, size_t size) : handle(handle), size(size) {}
  void *handle;
  size_t size;
};

} // namespace pgkp::rt
