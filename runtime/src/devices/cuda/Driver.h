// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The CUDA driver, loaded when first asked for.
#pragma once

#include "base/Status.h"
#include "devices/cuda/DriverTypes.h"

#include <memory>
#include <string>

namespace pgkp::rt::cuda {

/// The functions of one driver library. It is never unloaded: other libraries
/// of the process may hold it, too, and it has threads of its own. Thread-safe.
struct Driver {
#define PGKP_CUDA_SYMBOL(name, symbol, parameters) Result(*name) parameters;
#include "devices/cuda/DriverSymbols.def"

  /// `library`: path or name; empty: PGKP_CUDA_DRIVER, then libcuda.so.1.
  /// Initialized on return; the same object for the same library. unavailable:
  /// no such library, it lacks a function, or it finds no device.
  static Expected<const Driver *> open(std::string library = {});

  /// An error for everything but kSuccess: "<what>: <text> (<name>)".
  Status check(Result result, const char *what) const;
};

/// Makes a context current on this thread while it lives, if it is not.
class CurrentContext {
public:
  CurrentContext(const Driver &driver, ContextHandle context) : driver(driver) {
    ContextHandle current = nullptr;
    if (driver.contextCurrent(&current) != kSuccess || current == context)
      return;
    before = current;
    changed = driver.contextSetCurrent(context) == kSuccess;
  }
  ~CurrentContext() {
    if (changed)
      driver.contextSetCurrent(before);
  }
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

private:
  const Driver &driver;
  ContextHandle before = nullptr;
  bool changed = false;
};

/// Calls that a capture of another thread would forbid in its default mode are
/// allowed on this thread while this lives: they are no part of the graph.
class OutsideCapture {
public:
  explicit OutsideCapture(const Driver &driver) : driver(driver) {
    driver.exchangeCaptureMode(&mode);
  }
  ~OutsideCapture() { driver.exchangeCaptureMode(&mode); }
  OutsideCapture(const OutsideCapture &) = delete;
  OutsideCapture &operator=(const OutsideCapture &) = delete;

private:
  const Driver &driver;
  CaptureMode mode = CaptureMode::relaxed;
};

} // namespace pgkp::rt::cuda
