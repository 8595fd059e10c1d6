// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/device/Device.h"

namespace pgkp::rt {

Expected<std::unique_ptr<Stream>> Device::adoptStream(void *) {
  return makeError(Code::unsupported, "device '{}' takes no foreign streams",
                   name());
}

Status Device::registerStream(void *) {
  return makeError(Code::unsupported, "device '{}' takes no foreign streams",
                   name());
}

} // namespace pgkp::rt
