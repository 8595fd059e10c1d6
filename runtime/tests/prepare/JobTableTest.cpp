// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "prepare/JobTable.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <thread>

using namespace pgkp::rt;

namespace {

Digest keyOf(int64_t n) { return Hasher().add(n).finish(); }

/// Takes jobs up to its capacity and finishes them when told.
struct ToldCompiler final : Compiler {
  explicit ToldCompiler(unsigned slots) : slots(slots) {}
  ~ToldCompiler() override {
    while (!jobs.empty())
      finish(jobs.begin()->first, JobOutcome::cancelled);
  }
  void onResult(Callback given) override { callback = std::move(given); }
  bool submit(CompileJob job) override {
    if (jobs.size() >= slots)
      return false;
    ++started;
    jobs.emplace(job.id, job.contentKey);
    return true;
  }
  void cancel(JobId id) override {
    if (jobs.contains(id))
      finish(id, JobOutcome::cancelled);
  }
  void raise(JobId id) override { raised.push_back(id); }
  unsigned capacity() const override { return slots; }
  unsigned running() const override {
    return static_cast<unsigned>(jobs.size());
  }
  void setLimit(unsigned jobs) override { slots = jobs; }

  void finish(JobId id, JobOutcome outcome) {
    CompileResult result;
    result.id = id;
    result.contentKey = jobs.at(id);
    result.outcome = outcome;
    result.cpuSeconds = 2;
    result.payload = {1, 2, 3};
    jobs.erase(id);
    callback(std::move(result));
  }

  unsigned slots, started = 0;
  std::map<JobId, Digest> jobs;
  std::vector<JobId> raised;
  Callback callback;
};

struct JobTableTest : testing::Test {
  JobTableTest() {
    auto told = std::make_unique<ToldCompiler>(2);
    compiler = told.get();
    table = std::make_unique<JobTable>(std::move(told));
    table->onResult([this](CompileResult result) {
      EXPECT_FALSE(results.contains(result.id)) << "two results";
      results.emplace(result.id, std::move(result));
    });
  }
  bool submit(JobId id, int64_t key) {
    return table->submit({.id = id, .contentKey = keyOf(key)});
  }
  JobOutcome outcome(JobId id) const { return results.at(id).outcome; }

  ToldCompiler *compiler;
  std::map<JobId, CompileResult> results;
  std::unique_ptr<JobTable> table;
};

TEST_F(JobTableTest, OneCompilationForAKeyAndAResultForEachJob) {
  EXPECT_TRUE(submit(1, 7));
  EXPECT_TRUE(submit(2, 7));
  EXPECT_TRUE(submit(3, 8));
  EXPECT_FALSE(submit(4, 9)) << "no slot";
  EXPECT_TRUE(submit(5, 8)) << "joining takes no slot";
  EXPECT_EQ(compiler->started, 2u);
  EXPECT_EQ(table->running(), 2u);
  EXPECT_EQ(table->joined(), 2u);
  compiler->finish(1, JobOutcome::done);
  EXPECT_EQ(outcome(1), JobOutcome::done);
  EXPECT_EQ(outcome(2), JobOutcome::done);
  EXPECT_EQ(results.at(2).payload, results.at(1).payload);
  EXPECT_EQ(results.at(1).cpuSeconds + results.at(2).cpuSeconds, 2)
      << "it was spent once";
  compiler->finish(3, JobOutcome::killed);
  EXPECT_EQ(outcome(3), JobOutcome::killed);
  EXPECT_EQ(outcome(5), JobOutcome::killed);
  EXPECT_TRUE(table->jobs().empty());
  EXPECT_TRUE(submit(6, 7)) << "it is over: a new compilation";
  EXPECT_EQ(compiler->started, 3u);
}

TEST_F(JobTableTest, TheLastToLeaveStopsTheCompilation) {
  ASSERT_TRUE(submit(1, 7));
  ASSERT_TRUE(submit(2, 7));
  table->cancel(1); // the one that started it
  EXPECT_EQ(outcome(1), JobOutcome::cancelled);
  EXPECT_FALSE(results.contains(2));
  EXPECT_EQ(compiler->running(), 1u);
  ASSERT_TRUE(submit(3, 7));
  table->cancel(99);
  compiler->finish(1, JobOutcome::done);
  EXPECT_EQ(outcome(2), JobOutcome::done);
  EXPECT_EQ(outcome(3), JobOutcome::done);

  ASSERT_TRUE(submit(4, 7));
  ASSERT_TRUE(submit(5, 7));
  table->cancel(4);
  table->cancel(5);
  EXPECT_EQ(outcome(5), JobOutcome::cancelled);
  EXPECT_EQ(compiler->running(), 0u);
}

TEST_F(JobTableTest, RaisingAnyRaisesTheCompilationOnce) {
  ASSERT_TRUE(submit(1, 7));
  ASSERT_TRUE(submit(2, 7));
  table->raise(2);
  table->raise(1);
  table->raise(99);
  EXPECT_EQ(compiler->raised, (std::vector<JobId>{1}));
  const auto jobs = table->jobs();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].id, 1u);
  EXPECT_EQ(jobs[0].contentKey, keyOf(7));
  EXPECT_EQ(jobs[0].waiting, 2u);
  EXPECT_TRUE(jobs[0].raised);
}

TEST_F(JobTableTest, JobsWithoutAKeyAreNotJoined) {
  EXPECT_TRUE(table->submit({.id = 1}));
  EXPECT_TRUE(table->submit({.id = 2}));
  EXPECT_EQ(compiler->started, 2u);
  EXPECT_FALSE(table->submit({.id = 3}));
}

TEST_F(JobTableTest, EndDeliversAll) {
  ASSERT_TRUE(submit(1, 7));
  ASSERT_TRUE(submit(2, 7));
  ASSERT_TRUE(submit(3, 8));
  table.reset();
  for (JobId id : {1, 2, 3})
    EXPECT_EQ(outcome(id), JobOutcome::cancelled);
}

RC_GTEST_PROP(JobTableProperty, EveryAcceptedJobGetsOneResult, ()) {
  auto told = std::make_unique<ToldCompiler>(3);
  ToldCompiler &compiler = *told;
  std::map<JobId, int> results;
  JobId next = 1;
  std::vector<JobId> accepted;
  {
    JobTable table(std::move(told));
    table.onResult([&](CompileResult result) { ++results[result.id]; });
    for (int step = 0; step < 60; ++step) {
      switch (*rc::gen::inRange(0, 4)) {
      case 0:
      case 1:
        if (table.submit(
                {.id = next, .contentKey = keyOf(*rc::gen::inRange(0, 5))}))
          accepted.push_back(next);
        ++next;
        break;
      case 2:
        table.cancel(*rc::gen::inRange<JobId>(1, next + 1));
        break;
      default:
        if (!compiler.jobs.empty())
          compiler.finish(compiler.jobs.begin()->first, JobOutcome::done);
      }
      std::map<Digest, int> compiling;
      for (const auto &[id, key] : compiler.jobs)
        RC_ASSERT(++compiling[key] == 1);
    }
  }
  RC_ASSERT(results.size() == accepted.size());
  for (JobId id : accepted)
    RC_ASSERT(results[id] == 1);
}

} // namespace
