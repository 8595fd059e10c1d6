// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/SigningKey.h"

#include "base/File.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sodium.h>
#include <vector>

namespace pgkp::rt {

// DER of what RFC 8410 wraps around the 32 bytes (section 4, section 7).
static constexpr uint8_t kPublicPrefix[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                            0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};
static constexpr uint8_t kSecretPrefix[] = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30,
                                            0x05, 0x06, 0x03, 0x2b, 0x65, 0x70,
                                            0x04, 0x22, 0x04, 0x20};
static constexpr size_t kRawBytes = 32, kMaxKeyFile = 65536;

static Status ready() {
  static const int state = sodium_init();
  if (state < 0)
    return makeError(Code::unavailable, "libsodium cannot be initialized");
  return {};
}

/// The 32 bytes in the first PEM block `label` of the file.
static Expected<std::array<uint8_t, kRawBytes>>
loadPem(const std::string &path, std::string_view label,
        std::span<const uint8_t> prefix) {
  PGKP_TRY(ready());
  PGKP_ASSIGN(std::vector<uint8_t> file, readFile(path, kMaxKeyFile));
  const std::string_view text(reinterpret_cast<const char *>(file.data()),
                              file.size());
  const std::string begin = fmt::format("-----BEGIN {}-----", label),
                    end = fmt::format("-----END {}-----", label);
  std::array<uint8_t, kRawBytes> key;
  bool good = false;
  if (const size_t start = text.find(begin); start != text.npos) {
    const size_t from = start + begin.size();
    const size_t to = std::min(text.find(end, from), text.size());
    uint8_t der[64];
    size_t length = 0;
    good = to < text.size() &&
           sodium_base642bin(der, sizeof der, text.data() + from, to - from,
                             "\r\n \t", &length, nullptr,
                             sodium_base64_VARIANT_ORIGINAL) == 0 &&
           length == prefix.size() + kRawBytes &&
           std::equal(prefix.begin(), prefix.end(), der);
    if (good)
      std::copy_n(der + prefix.size(), kRawBytes, key.begin());
    sodium_memzero(der, sizeof der);
  }
  sodium_memzero(file.data(), file.size());
  if (!good)
    return makeError(Code::invalidArgument,
                     "'{}' holds no Ed25519 key; a PEM file with one {} "
                     "without a pass phrase is expected",
                     path, label);
  return key;
}

static Status savePem(const std::string &path, std::string_view label,
                      std::span<const uint8_t> prefix,
                      std::span<const uint8_t> key, mode_t mode) {
  uint8_t der[64];
  std::copy(prefix.begin(), prefix.end(), der);
  std::copy(key.begin(), key.end(), der + prefix.size());
  char base64[128];
  sodium_bin2base64(base64, sizeof base64, der, prefix.size() + key.size(),
                    sodium_base64_VARIANT_ORIGINAL);
  std::string text = fmt::format(
      "-----BEGIN {0}-----\n{1}\n-----END {0}-----\n", label, base64);
  UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  const bool written = fd && write(fd.get(), text.data(), text.size()) ==
                                 static_cast<ssize_t>(text.size());
  const int failure = errno;
  sodium_memzero(der, sizeof der);
  sodium_memzero(base64, sizeof base64);
  sodium_memzero(text.data(), text.size());
  if (!written)
    return makeErrnoError(failure, "cannot write key file '" + path + "'");
  return {};
}

Expected<PublicKey> PublicKey::load(const std::string &path) {
  PGKP_ASSIGN(auto raw, loadPem(path, "PUBLIC KEY", kPublicPrefix));
  return PublicKey(raw);
}

Status PublicKey::save(const std::string &path) const {
  return savePem(path, "PUBLIC KEY", kPublicPrefix, bytes, 0644);
}

std::string PublicKey::name() const {
  char text[2 * 8 + 1];
  sodium_bin2hex(text, sizeof text, bytes.data(), 8);
  return text;
}

static crypto_sign_state hashed(std::string_view domain,
                                std::span<const uint8_t> message) {
  crypto_sign_state state;
  crypto_sign_init(&state);
  crypto_sign_update(&state, reinterpret_cast<const uint8_t *>(domain.data()),
                     domain.size());
  crypto_sign_update(&state, message.data(), message.size());
  return state;
}

bool PublicKey::verifies(const Signature &signature, std::string_view domain,
                         std::span<const uint8_t> message) const {
  if (!ready())
    return false;
  crypto_sign_state state = hashed(domain, message);
  return crypto_sign_final_verify(&state, signature.data(), bytes.data()) == 0;
}

Expected<SecretKey> SecretKey::fromSeed(std::span<const uint8_t, 32> seed) {
  SecretKey key;
  uint8_t publicPart[crypto_sign_PUBLICKEYBYTES];
  static_assert(sizeof key.bytes == crypto_sign_SECRETKEYBYTES);
  if (crypto_sign_seed_keypair(publicPart, key.bytes.data(), seed.data()) != 0)
    return makeError(Code::internal, "libsodium makes no key");
  return key;
}

Expected<SecretKey> SecretKey::generate() {
  PGKP_TRY(ready());
  std::array<uint8_t, crypto_sign_SEEDBYTES> seed;
  randombytes_buf(seed.data(), seed.size());
  Expected<SecretKey> key = fromSeed(seed);
  sodium_memzero(seed.data(), seed.size());
  return key;
}

Expected<SecretKey> SecretKey::load(const std::string &path) {
  PGKP_ASSIGN(auto seed, loadPem(path, "PRIVATE KEY", kSecretPrefix));
  Expected<SecretKey> key = fromSeed(seed);
  sodium_memzero(seed.data(), seed.size());
  return key;
}

SecretKey::~SecretKey() { sodium_memzero(bytes.data(), bytes.size()); }

PublicKey SecretKey::publicKey() const {
  std::array<uint8_t, kRawBytes> raw;
  std::copy_n(bytes.begin() + crypto_sign_SEEDBYTES, raw.size(), raw.begin());
  return PublicKey(raw);
}

Signature SecretKey::sign(std::string_view domain,
                          std::span<const uint8_t> message) const {
  Signature signature;
  static_assert(sizeof signature == crypto_sign_BYTES);
  crypto_sign_state state = hashed(domain, message);
  crypto_sign_final_create(&state, signature.data(), nullptr, bytes.data());
  return signature;
}

Status SecretKey::save(const std::string &path) const {
  return savePem(path, "PRIVATE KEY", kSecretPrefix,
                 std::span(bytes).first(crypto_sign_SEEDBYTES), 0600);
}

} // namespace pgkp::rt
