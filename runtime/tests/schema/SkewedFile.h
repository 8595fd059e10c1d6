// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A sealed file as another format version would have written it.
#pragma once

#include "base/Digest.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pgkp::rt::fixtures {

/// The header of schema/Envelope.h with another format number, whole otherwise.
inline std::vector<uint8_t> withFormat(std::vector<uint8_t> file,
                                       uint8_t format) {
  file[12] = format;
  std::fill_n(file.begin() + 24, 8, uint8_t{0});
  const Digest digest = hashBytes({file.data(), 64});
  std::copy_n(digest.bytes.begin(), 8, file.begin() + 24);
  return file;
}

} // namespace pgkp::rt::fixtures
