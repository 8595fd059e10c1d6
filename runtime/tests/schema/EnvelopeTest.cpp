// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "schema/Envelope.h"
#include "base/File.h"
#include "base/TempDir.h"
#include "schema/SkewedFile.h"

#include <gtest/gtest.h>

using namespace pgkp::rt;

TEST(Envelope, RoundTrip) {
  const std::vector<uint8_t> payload{1, 2, 3};
  const std::vector<uint8_t> file = seal(FileKind::artifact, payload);
  EXPECT_EQ(file.size(), kEnvelopeBytes + 3);
  auto inside = unseal(FileKind::artifact, file, "x");
  ASSERT_TRUE(inside);
  EXPECT_EQ(std::vector<uint8_t>(inside->begin(), inside->end()), payload);
  EXPECT_TRUE(unseal(FileKind::bundle, seal(FileKind::bundle, {}), "x"));
}

TEST(Envelope, EveryByteIsProtected) {
  const std::vector<uint8_t> file =
      seal(FileKind::artifact, std::vector<uint8_t>(100, 7));
  for (size_t i = 0; i < file.size(); ++i)
    for (uint8_t flip : {0x01, 0x80, 0xff}) {
      std::vector<uint8_t> bad = file;
      bad[i] ^= flip;
      EXPECT_FALSE(unseal(FileKind::artifact, bad, "x")) << i;
    }
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_EQ(unseal(FileKind::artifact, {file.data(), size}, "x").error().code,
              Code::corrupt);
  std::vector<uint8_t> longer = file;
  longer.push_back(0);
  EXPECT_FALSE(unseal(FileKind::artifact, longer, "x"));
}

TEST(Envelope, ErrorsTellApart) {
  std::vector<uint8_t> file = seal(FileKind::profile, {});
  EXPECT_EQ(unseal(FileKind::bundle, file, "p").error().message,
            "'p' is a PGKP profile, expected a bundle");
  // A damaged version number is damage; only a whole header tells of another
  // version.
  std::vector<uint8_t> damaged = file;
  damaged[12] = 9;
  EXPECT_EQ(unseal(FileKind::profile, damaged, "p").error().code,
            Code::corrupt);
  EXPECT_EQ(unseal(FileKind::profile, fixtures::withFormat(file, 9), "p")
                .error()
                .code,
            Code::unsupported);
}

TEST(Envelope, Files) {
  TempDir dir;
  const std::vector<uint8_t> payload(1000, 42);
  ASSERT_TRUE(writeSealed(FileKind::profile, dir / "p", payload));
  EXPECT_EQ(readSealed(FileKind::profile, dir / "p").value(), payload);
  EXPECT_EQ(readSealed(FileKind::profile, dir / "q").error().code,
            Code::notFound);
}
