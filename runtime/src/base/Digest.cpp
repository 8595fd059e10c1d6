// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/Digest.h"

#include <sodium.h>

namespace pgkp::rt {

// Picks the fastest implementation; hashing works even if it fails.
static void initializeSodium() {
  [[maybe_unused]] static const int done = sodium_init();
}

std::string Digest::hex() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::optional<Digest> Digest::fromHex(std::string_view text) {
  Digest digest;
  if (text.size() != 2 * digest.bytes.size())
    return std::nullopt;
  auto value = [](char c) {
    if (c >= '0' && c <= '9')
      return c - '0';
    if (c >= 'a' && c <= 'f')
      return c - 'a' + 10;
    return -1;
  };
  for (size_t i = 0; i < digest.bytes.size(); ++i) {
    const int high = value(text[2 * i]), low = value(text[2 * i + 1]);
    if (high < 0 || low < 0)
      return std::nullopt;
    digest.bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return digest;
}

static crypto_generichash_state *asState(void *bytes) {
  return static_cast<crypto_generichash_state *>(bytes);
}

Hasher::Hasher() {
  static_assert(sizeof(state) >= sizeof(crypto_generichash_state));
  static_assert(alignof(Hasher) >= alignof(crypto_generichash_state));
  initializeSodium();
  crypto_generichash_init(asState(state.data()), nullptr, 0,
                          sizeof(Digest::bytes));
}

Hasher &Hasher::add(std::span<const uint8_t> bytes) {
  add(static_cast<int64_t>(bytes.size()));
  crypto_generichash_update(asState(state.data()), bytes.data(), bytes.size());
  return *this;
}

Hasher &Hasher::add(std::string_view text) {
  return add(
      std::span(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
}

Hasher &Hasher::add(int64_t value) {
  uint8_t bytes[8];
  for (int i = 0; i < 8; ++i)
    bytes[i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
  crypto_generichash_update(asState(state.data()), bytes, sizeof bytes);
  return *this;
}

Digest Hasher::finish() {
  Digest digest;
  crypto_generichash_final(asState(state.data()), digest.bytes.data(),
                           digest.bytes.size());
  return digest;
}

Digest hashBytes(std::span<const uint8_t> bytes) {
  initializeSodium();
  Digest digest;
  crypto_generichash(digest.bytes.data(), digest.bytes.size(), bytes.data(),
                     bytes.size(), nullptr, 0);
  return digest;
}

} // namespace pgkp::rt
