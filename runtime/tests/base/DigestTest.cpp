// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/Digest.h"

#include <gtest/gtest.h>
#include <vector>

using namespace pgkp::rt;

// Computed with Python's hashlib.blake2b(data, digest_size=32).
TEST(Digest, MatchesPublishedBlake2b) {
  EXPECT_EQ(hashBytes({}).hex(),
            "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  const std::vector<uint8_t> abc{'a', 'b', 'c'};
  EXPECT_EQ(hashBytes(abc).hex(),
            "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

TEST(Digest, HexRoundTrip) {
  const Digest d = Hasher().add(std::string_view("x")).finish();
  EXPECT_EQ(Digest::fromHex(d.hex()), d);
  EXPECT_FALSE(Digest::fromHex(d.hex().substr(1)));
  EXPECT_FALSE(Digest::fromHex(std::string(64, 'g')));
  EXPECT_FALSE(Digest::fromHex(std::string(64, 'A')));
  EXPECT_TRUE(Digest().isZero());
  EXPECT_FALSE(d.isZero());
}

TEST(Digest, FieldBordersCount) {
  using View = std::string_view;
  EXPECT_NE(Hasher().add(View("ab")).add(View("c")).finish(),
            Hasher().add(View("a")).add(View("bc")).finish());
  EXPECT_NE(Hasher().add(int64_t{1}).finish(),
            Hasher().add(int64_t{256}).finish());
}
