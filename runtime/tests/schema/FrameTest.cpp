// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "schema/Frame.h"
#include "base/File.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <thread>

using namespace pgkp::rt;

namespace {
struct FrameTest : testing::Test {
  FrameTest() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
      abort();
    a.reset(fds[0]);
    b.reset(fds[1]);
  }
  UniqueFd a, b;
};
} // namespace

TEST_F(FrameTest, LargeAndEmptyFramesCrossASmallSocket) {
  std::vector<uint8_t> large(5'000'000);
  for (size_t i = 0; i < large.size(); ++i)
    large[i] = static_cast<uint8_t>(i * 7);
  std::thread writer([&] {
    EXPECT_TRUE(writeFrame(a.get(), large));
    EXPECT_TRUE(writeFrame(a.get(), {}));
    a.reset();
  });
  EXPECT_EQ(readFrame(b.get()).value(), large);
  EXPECT_TRUE(readFrame(b.get()).value().empty());
  EXPECT_EQ(readFrame(b.get()).error().code, Code::notFound);
  writer.join();
}

TEST_F(FrameTest, BadHeadersAreCorrupt) {
  FrameHeader header;
  header.size = kMaxFrameBytes + 1;
  ASSERT_EQ(write(a.get(), &header, sizeof header), ssize_t{sizeof header});
  EXPECT_EQ(readFrame(b.get()).error().code, Code::corrupt);
  header = {};
  header.magic ^= 1;
  ASSERT_EQ(write(a.get(), &header, sizeof header), ssize_t{sizeof header});
  EXPECT_EQ(readFrame(b.get()).error().code, Code::corrupt);
}

TEST_F(FrameTest, EndInsideAFrameIsCorrupt) {
  FrameHeader header;
  header.size = 100;
  ASSERT_EQ(write(a.get(), &header, sizeof header), ssize_t{sizeof header});
  a.reset();
  EXPECT_EQ(readFrame(b.get()).error().code, Code::corrupt);
}

TEST_F(FrameTest, ClosedReaderGivesAnErrorAndNoSignal) {
  b.reset();
  EXPECT_FALSE(writeFrame(a.get(), std::vector<uint8_t>(10)));
}
