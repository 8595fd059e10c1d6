// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/factory/Factory.h"

#include "devices/host/HostDevice.h"
#include "devices/sim/SimDevice.h"

#include <array>

namespace pgkp::rt {

std::span<const std::string_view> deviceNames() {
  static constexpr std::array<std::string_view, 3> names = {"host", "cuda",
                                                            "sim"};
  return names;
}

Expected<std::unique_ptr<Device>> makeDevice(std::string_view name) {
  if (name == "host")
    return makeHostDevice();
  if (name == "sim") {
    static const SteadyClock clock;
    SimOptions options;
    options.acceptsHost = true;
    return makeSimDevice(clock, std::move(options));
  }
  if (name == "cuda")
    return makeError(Code::unavailable,
                     "device 'cuda': this build has no CUDA device");
  return makeError(Code::invalidArgument,
                   "device '{}' is unknown; expected host, cuda or sim", name);
}

} // namespace pgkp::rt
