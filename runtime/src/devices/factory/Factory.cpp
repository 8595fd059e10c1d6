// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/factory/Factory.h"

#include "devices/cuda/CudaDevice.h"
#include "devices/host/HostDevice.h"
#include "devices/sim/SimDevice.h"

#include <array>
#include <charconv>

namespace pgkp::rt {

std::span<const std::string_view> deviceNames() {
  static constexpr std::array<std::string_view, 3> names = {"host", "cuda",
                                                            "sim"};
  return names;
}

/// N of "cuda:N"; 0 without a number.
static Expected<int> cudaOrdinal(std::string_view name) {
  int ordinal = 0;
  std::string_view rest = name.substr(4);
  if (rest.empty())
    return ordinal;
  rest.remove_prefix(1);
  auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), ordinal);
  if (error != std::errc() || end != rest.data() + rest.size() || ordinal < 0)
    return makeError(Code::invalidArgument,
                     "device '{}'; expected cuda or cuda:N", name);
  return ordinal;
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
  if (name == "cuda" || name.starts_with("cuda:")) {
    PGKP_ASSIGN(const int ordinal, cudaOrdinal(name));
    return makeCudaDevice({.ordinal = ordinal});
  }
  return makeError(Code::invalidArgument,
                   "device '{}' is unknown; expected host, cuda or sim", name);
}

} // namespace pgkp::rt
