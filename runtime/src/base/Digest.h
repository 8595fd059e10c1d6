// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file BLAKE2b-256 (libsodium): content keys and checksums.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pgkp::rt {

struct Digest {
  std::array<uint8_t, 32> bytes{};

  auto operator<=>(const Digest &) const = default;
  bool isZero() const { return *this == Digest{}; }
  /// 64 lower-case hexadecimal digits.
  std::string hex() const;
  static std::optional<Digest> fromHex(std::string_view text);
};

/// For hash tables: the digest's own bits are uniform.
struct DigestHash {
  size_t operator()(const Digest &d) const {
    size_t h;
    std::memcpy(&h, d.bytes.data(), sizeof h);
    return h;
  }
};

/// Incremental hashing. Every `add` of variable length is preceded by its
/// length, so that no two different sequences of fields hash alike.
class Hasher {
public:
  Hasher();
  Hasher &add(std::span<const uint8_t> bytes);
  Hasher &add(std::string_view text);
  Hasher &add(int64_t value);
  Digest finish();

private:
  alignas(64) std::array<uint8_t, 384> state;
};

/// The plain hash of the bytes.
Digest hashBytes(std::span<const uint8_t> bytes);

} // namespace pgkp::rt
