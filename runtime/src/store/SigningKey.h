// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Ed25519 keys (RFC 8032) in the files that everybody's tools write:
/// PEM, PKCS #8 and SubjectPublicKeyInfo as RFC 8410 defines them.
///
///   openssl genpkey -algorithm ed25519 -out key.pem
///   openssl pkey -in key.pem -pubout -out key.pub.pem
#pragma once

#include "base/Status.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pgkp::rt {

using Signature = std::array<uint8_t, 64>;

/// Thread-safe: immutable.
class PublicKey {
public:
  /// A PEM file "PUBLIC KEY". invalidArgument: it is something else; notFound,
  /// io and so on.
  static Expected<PublicKey> load(const std::string &path);
  explicit PublicKey(const std::array<uint8_t, 32> &bytes) : bytes(bytes) {}

  /// Whether whoever has the secret key signed `domain` and `message`.
  bool verifies(const Signature &signature, std::string_view domain,
                std::span<const uint8_t> message) const;
  /// The first 16 hexadecimal digits, for messages.
  std::string name() const;
  /// Writes the PEM file; one that exists is not overwritten.
  Status save(const std::string &path) const;
  const std::array<uint8_t, 32> &raw() const { return bytes; }
  bool operator==(const PublicKey &) const = default;

private:
  std::array<uint8_t, 32> bytes;
};

/// Its memory is wiped at the end. Thread-safe: immutable.
class SecretKey {
public:
  static Expected<SecretKey> generate();
  /// A PEM file "PRIVATE KEY" without a pass phrase; errors as above.
  static Expected<SecretKey> load(const std::string &path);
  SecretKey(SecretKey &&) noexcept = default;
  ~SecretKey();

  /// Ed25519ph (RFC 8032, section 5.1) over `domain`, then `message`. A domain
  /// is the constant that all messages of one kind begin with.
  Signature sign(std::string_view domain,
                 std::span<const uint8_t> message) const;
  PublicKey publicKey() const;
  /// Writes the PEM file with mode 0600; one that exists is not overwritten.
  Status save(const std::string &path) const;

private:
  SecretKey() = default;
  static Expected<SecretKey> fromSeed(std::span<const uint8_t, 32> seed);
  std::array<uint8_t, 64> bytes{}; ///< seed, then public key
};

} // namespace pgkp::rt
