// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Devices by name.
#pragma once

#include "base/Clock.h"
#include "devices/device/Device.h"

#include <memory>
#include <span>
#include <string_view>

namespace pgkp::rt {

/// "host", "cuda" (the first GPU), "cuda:N" or "sim" (on CLOCK_MONOTONIC, with
/// the default costs). invalidArgument: another name; unavailable: no such
/// device on this machine.
Expected<std::unique_ptr<Device>> makeDevice(std::string_view name);

/// The names that makeDevice knows.
std::span<const std::string_view> deviceNames();

} // namespace pgkp::rt
