// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/Failpoint.h"
#include "base/Clock.h"

#include <cerrno>
#include <gtest/gtest.h>

using namespace pgkp::rt;

namespace {
struct FailpointTest : testing::Test {
  FailpointTest() { clearFailpoints(); }
  ~FailpointTest() override { clearFailpoints(); }
};
} // namespace

TEST_F(FailpointTest, NothingArmed) { EXPECT_EQ(failpoint("a"), 0); }

TEST_F(FailpointTest, FiresOnceAtTheNthHit) {
  setFailpoint("a", FailpointAction::error, ENOSPC, 2);
  EXPECT_EQ(failpoint("b"), 0);
  EXPECT_EQ(failpoint("a"), 0);
  EXPECT_EQ(failpoint("a"), ENOSPC);
  EXPECT_EQ(failpoint("a"), 0);
}

TEST_F(FailpointTest, ZeroMeansEveryHit) {
  setFailpoint("a", FailpointAction::error, EIO, 0);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(failpoint("a"), EIO);
}

TEST_F(FailpointTest, Delays) {
  setFailpoint("a", FailpointAction::delay, 20);
  SteadyClock clock;
  const TimeNs start = clock.now();
  EXPECT_EQ(failpoint("a"), 0);
  EXPECT_GE(clock.now() - start, 20 * kNsPerMs);
}

TEST_F(FailpointTest, ParsesLists) {
  ASSERT_TRUE(setFailpoints("a=error:ENOSPC@2,b=error,,c=error:13"));
  EXPECT_EQ(failpoint("a"), 0);
  EXPECT_EQ(failpoint("a"), ENOSPC);
  EXPECT_EQ(failpoint("b"), EIO);
  EXPECT_EQ(failpoint("c"), EACCES);
  for (const char *bad : {"a", "=error", "a=explode", "a=error:x", "a=error:0",
                          "a=kill:1", "a=delay", "a=error@", "a=error@x"})
    EXPECT_EQ(setFailpoints(bad).error().code, Code::invalidArgument) << bad;
}

TEST_F(FailpointTest, RecordsOnlyWhenAsked) {
  failpoint("before");
  recordFailpoints(true);
  failpoint("x");
  failpoint("y");
  failpoint("x");
  recordFailpoints(false);
  failpoint("after");
  EXPECT_EQ(failpointsSeen(), (std::vector<std::string>{"x", "y"}));
}
