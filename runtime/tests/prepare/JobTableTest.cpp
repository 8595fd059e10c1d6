// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "prepare/JobTable.h"

#include <gtest/gtest.h>
#include <thread>

using namespace pgkp::rt;

namespace {
struct JobTableTest : testing::Test {
  static Digest key(int64_t n) { return Hasher().add(n).finish(); }

  void finish(int64_t n, JobOutcome outcome, const std::string &message = "") {
    CompileResult result;
    result.contentKey = key(n);
    result.id = jobs.view(key(n)).id;
    result.outcome = outcome;
    result.message = message;
    jobs.finished(result);
  }
  JobState state(int64_t n) { return jobs.view(key(n)).state; }

  ManualClock clock{1000};
  JobTable jobs{clock};
};
} // namespace

TEST_F(JobTableTest, OneJobForAKey) {
  const JobTable::Answer first = jobs.want(key(1), false);
  EXPECT_EQ(first.want, Want::start);
  EXPECT_EQ(jobs.want(key(1), false).want, Want::joined);
  jobs.started(key(1));
  EXPECT_EQ(state(1), JobState::running);
  const JobTable::Answer raised = jobs.want(key(1), true);
  EXPECT_EQ(raised.want, Want::raised);
  EXPECT_EQ(raised.id, first.id);
  EXPECT_EQ(jobs.want(key(1), true).want, Want::joined);
  EXPECT_TRUE(jobs.view(key(1)).demanded);
  finish(1, JobOutcome::done);
  EXPECT_EQ(jobs.want(key(1), true).want, Want::ready);
  EXPECT_EQ(jobs.want(key(2), false).want, Want::start);
  EXPECT_NE(jobs.view(key(2)).id, first.id);
}

TEST_F(JobTableTest, BackoffDoublesUpToALimit) {
  TimeNs expected[] = {1, 2, 4, 8, 16, 32, 60, 60};
  for (TimeNs seconds : expected) {
    ASSERT_EQ(jobs.want(key(1), true).want, Want::start);
    finish(1, JobOutcome::killed, "boom");
    EXPECT_EQ(jobs.want(key(1), true).want, Want::later);
    EXPECT_EQ(jobs.view(key(1)).retryAt, clock.now() + seconds * kNsPerSecond);
    EXPECT_EQ(jobs.view(key(1)).reason, "boom");
    clock.advance(seconds * kNsPerSecond - 1);
    EXPECT_EQ(jobs.want(key(1), true).want, Want::later);
    clock.advance(1);
  }
  ASSERT_EQ(jobs.want(key(1), true).want, Want::start);
  finish(1, JobOutcome::done);
  EXPECT_EQ(jobs.view(key(1)).failures, 0u);
}

TEST_F(JobTableTest, HungAndUnavailableBackOffToo) {
  jobs.want(key(1), false);
  finish(1, JobOutcome::hung);
  jobs.want(key(2), false);
  finish(2, JobOutcome::unavailable);
  EXPECT_EQ(state(1), JobState::backoff);
  EXPECT_EQ(state(2), JobState::backoff);
  EXPECT_EQ(jobs.failures().size(), 2u);
}

TEST_F(JobTableTest, RejectedIsForThisRunWithItsReason) {
  jobs.want(key(1), false);
  finish(1, JobOutcome::rejected, "no body");
  clock.advance(3600 * kNsPerSecond);
  EXPECT_EQ(jobs.want(key(1), true).want, Want::refused);
  ASSERT_EQ(jobs.failures().size(), 1u);
  EXPECT_EQ(jobs.failures()[0].job.reason, "no body");
  jobs.forget(key(1));
  EXPECT_EQ(jobs.want(key(1), true).want, Want::start);
}

TEST_F(JobTableTest, CancelledAndWithdrawnStartAnew) {
  jobs.want(key(1), false);
  jobs.started(key(1));
  finish(1, JobOutcome::cancelled);
  EXPECT_EQ(jobs.want(key(1), false).want, Want::start);
  jobs.withdraw(key(1));
  EXPECT_EQ(state(1), JobState::none);
  jobs.want(key(1), false);
  jobs.started(key(1));
  jobs.withdraw(key(1)); // too late
  EXPECT_EQ(state(1), JobState::running);
}

TEST_F(JobTableTest, LateResultOfAnOlderJobIsIgnored) {
  jobs.want(key(1), false);
  CompileResult old;
  old.contentKey = key(1);
  old.id = jobs.view(key(1)).id;
  old.outcome = JobOutcome::rejected;
  jobs.withdraw(key(1));
  jobs.want(key(1), false);
  jobs.finished(old);
  EXPECT_EQ(state(1), JobState::queued);
}

TEST_F(JobTableTest, MarkReadyNeedsNoJob) {
  jobs.markReady(key(1));
  EXPECT_EQ(jobs.want(key(1), true).want, Want::ready);
}

TEST_F(JobTableTest, WaitersJoinAndTimeOut) {
  EXPECT_EQ(jobs.wait(key(1), clock.now()), JobState::none);
  jobs.want(key(1), true);
  EXPECT_EQ(jobs.wait(key(1), clock.now()), JobState::queued);
  jobs.started(key(1));
  std::thread late([&] { clock.advance(10); });
  EXPECT_EQ(jobs.wait(key(1), 1010), JobState::running);
  late.join();
  std::vector<std::thread> waiters;
  std::atomic<int> woken{0};
  for (int i = 0; i < 4; ++i)
    waiters.emplace_back([&] {
      if (jobs.wait(key(1), kForever) == JobState::ready)
        ++woken;
    });
  finish(1, JobOutcome::done);
  for (std::thread &waiter : waiters)
    waiter.join();
  EXPECT_EQ(woken, 4);
}
