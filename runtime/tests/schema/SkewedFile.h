// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A sealed file as another format version would have written it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pgkp::rt::fixtures {

/// The header of schema/Envelope.h with another format number, whole otherwise.
inline std::vector<uint8_t> withFormat(std::vector<uint8_t> file,
                                       uint8_t format) {
  file[12] = format;
  std::fill_n(file.begin() + 24, 8, uint8_t{0});
  const uint64_t check = XXH3_64bits(file.data(), 64);
  std::memcpy(file.data() + 24, &check, sizeof check);
  return file;
}

} // namespace pgkp::rt::fixtures
