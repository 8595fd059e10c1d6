// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "prepare/WorkerPool.h"

#include "base/Failpoint.h"
#include "base/File.h"
#include "base/LogCapture.h"
#include "base/TempDir.h"
#include "prepare/BuildBundle.h"
#include "prepare/Process.h"
#include "prepare/Request.h"
#include "schema/Frame.h"
#include "schema/TestBundle.h"

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sched.h>
#include <set>
#include <sys/wait.h>
#include <thread>

using namespace pgkp;
using namespace pgkp::rt;
namespace fs = std::filesystem;

namespace {

WorkerOptions testOptions(unsigned workers = 1) {
  WorkerOptions options;
  options.path =
      (fs::canonical("/proc/self/exe").parent_path() / "pgkp_test_worker")
          .string();
  options.workers = workers;
  options.memoryMib = 0; // sanitizers reserve terabytes
  options.jobTimeout = 30 * kNsPerSecond;
  return options;
}

Digest keyOf(const std::string &name) {
  return Hasher().add(std::string_view(name)).finish();
}

CompileJob job(JobId id, const std::string &kernel) {
  static const std::vector<uint8_t> bytecode{1, 2, 3};
  const std::vector<schema::Fact> facts{fixtures::eq(0, 1)};
  CompileSpec spec;
  spec.kernelHash = fixtures::matmulHash();
  spec.kernel = kernel;
  spec.bytecode = bytecode;
  spec.facts = facts;
  spec.target.chip = "x86-64";
  return makeCompileJob(id, keyOf(kernel), spec, kernel + "[d0 == 1]");
}

struct PoolTest : ::testing::Test {
  ~PoolTest() override {
    pool.reset();
    clearFailpoints();
  }

  void start(WorkerOptions options) {
    pool = std::make_unique<WorkerPool>(std::move(options));
    pool->onResult([this](CompileResult result) {
      std::lock_guard lock(mutex);
      EXPECT_FALSE(results.contains(result.id)) << "two results";
      results.emplace(result.id, std::move(result));
      changed.notify_all();
    });
  }

  CompileResult waitFor(JobId id) {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, std::chrono::seconds(30),
                          [&] { return results.contains(id); })) {
      ADD_FAILURE() << "no result for job " << id;
      return {};
    }
    return results.at(id);
  }
  CompileResult run(const std::string &kernel) {
    const JobId id = ++lastId;
    EXPECT_TRUE(pool->submit(job(id, kernel)));
    return waitFor(id);
  }
  /// Until the condition holds, at most 20 s.
  template <typename Condition> bool eventually(Condition condition) {
    const TimeNs end = clock.now() + 20 * kNsPerSecond;
    while (!condition()) {
      if (clock.now() > end)
        return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  SteadyClock clock;
  LogCapture log;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<JobId, CompileResult> results;
  JobId lastId = 0;
  std::unique_ptr<WorkerPool> pool;
};

bool isStopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  return text.find(") T ") != std::string::npos;
}

bool exists(pid_t pid) { return kill(pid, 0) == 0; }

size_t threadsNamed(const std::string &name) {
  size_t count = 0;
  for (auto &task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string line;
    std::getline(file, line);
    count += line == name;
  }
  return count;
}

} // namespace

TEST_F(PoolTest, CompilesAndKeepsTheWorkerWarm) {
  start(testOptions());
  EXPECT_EQ(threadsNamed("pgkp-workers"), 0u);
  for (int i = 0; i < 5; ++i) {
    const CompileResult result = run("ok");
    ASSERT_EQ(result.outcome, JobOutcome::done) << result.message;
    EXPECT_EQ(result.contentKey, keyOf("ok"));
    EXPECT_EQ(result.producer, "test worker 1");
    EXPECT_GE(result.finished, result.started);
    flatbuffers::Verifier verifier(result.payload.data(),
                                   result.payload.size());
    EXPECT_TRUE(schema::VerifyArtifactBuffer(verifier));
  }
  EXPECT_EQ(threadsNamed("pgkp-workers"), 1u);
  EXPECT_EQ(pool->counts().started, 1u);
  EXPECT_EQ(pool->counts().restarts, 0u);
  EXPECT_EQ(pool->producer(), "test worker 1");
  EXPECT_EQ(pool->pids().size(), 1u);
}

TEST_F(PoolTest, NothingStartsBeforeAJob) {
  start(testOptions(4));
  EXPECT_EQ(pool->capacity(), 4u);
  EXPECT_TRUE(pool->pids().empty());
  pool.reset();
}

TEST_F(PoolTest, LargeArtifactsAndManyWorkers) {
  start(testOptions(3));
  std::set<JobId> ids;
  for (int i = 0; i < 12; ++i) {
    const JobId id = ++lastId;
    while (!pool->submit(job(id, i % 2 ? "big" : "ok")))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ids.insert(id);
  }
  for (JobId id : ids)
    EXPECT_EQ(waitFor(id).outcome, JobOutcome::done);
  EXPECT_LE(pool->counts().started, 3u);
}

TEST_F(PoolTest, SlotsAreLimited) {
  start(testOptions(2));
  ASSERT_TRUE(pool->submit(job(1, "hang")));
  ASSERT_TRUE(pool->submit(job(2, "hang")));
  EXPECT_FALSE(pool->submit(job(3, "ok")));
  EXPECT_EQ(pool->running(), 2u);
  pool->cancel(1);
  EXPECT_EQ(waitFor(1).outcome, JobOutcome::cancelled);
  pool->setLimit(1);
  EXPECT_FALSE(pool->submit(job(3, "ok")));
  pool->setLimit(2);
  EXPECT_TRUE(pool->submit(job(3, "ok")));
  EXPECT_EQ(waitFor(3).outcome, JobOutcome::done);
  pool->cancel(2);
  pool->cancel(77); // nobody's
  EXPECT_EQ(waitFor(2).outcome, JobOutcome::cancelled);
  EXPECT_EQ(pool->counts().killed, 0u);
  EXPECT_EQ(pool->counts().hung, 0u);
}

TEST_F(PoolTest, DeadWorkersAreCountedAndReplaced) {
  start(testOptions());
  for (const char *how : {"die", "abort", "exit"}) {
    const CompileResult result = run(how);
    EXPECT_EQ(result.outcome, JobOutcome::killed) << how;
    EXPECT_NE(result.message.find(std::string("worker died while building '") +
                                  how + "[d0 == 1]'"),
              std::string::npos)
        << result.message;
  }
  EXPECT_NE(results.at(1).message.find("signal 9 (KILL)"), std::string::npos);
  EXPECT_NE(results.at(2).message.find("LLVM ERROR: out of registers"),
            std::string::npos)
      << results.at(2).message;
  EXPECT_NE(results.at(3).message.find("exited with status 3"),
            std::string::npos);
  EXPECT_EQ(run("ok").outcome, JobOutcome::done);
  EXPECT_EQ(pool->counts().killed, 3u);
  EXPECT_EQ(pool->counts().started, 4u);
  EXPECT_EQ(pool->counts().restarts, 3u);
}

TEST_F(PoolTest, WorkersKilledFromOutside) {
  start(testOptions());
  ASSERT_EQ(run("ok").outcome, JobOutcome::done);
  kill(pool->pids().at(0), SIGKILL); // idle
  ASSERT_TRUE(eventually([&] { return pool->counts().killed == 1; }));
  const JobId id = ++lastId;
  ASSERT_TRUE(pool->submit(job(id, "hang")));
  ASSERT_TRUE(eventually([&] { return pool->pids().size() == 1; }));
  kill(pool->pids().at(0), SIGKILL);
  EXPECT_EQ(waitFor(id).outcome, JobOutcome::killed);
  EXPECT_EQ(pool->counts().killed, 2u);
  EXPECT_EQ(run("ok").outcome, JobOutcome::done);
}

TEST_F(PoolTest, AnswerBeforeDeathCounts) {
  start(testOptions());
  EXPECT_EQ(run("answer-and-die").outcome, JobOutcome::done);
  ASSERT_TRUE(eventually([&] { return pool->counts().killed == 1; }));
}

TEST_F(PoolTest, HungAndStoppedWorkersAreKilledAtTheLimit) {
  WorkerOptions options = testOptions();
  options.jobTimeout = 200 * kNsPerMs;
  options.background = false; // or the last job may starve
  start(options);
  for (const char *how : {"hang", "stop", "grandchild"}) {
    const CompileResult result = run(how);
    EXPECT_EQ(result.outcome, JobOutcome::hung) << how;
    EXPECT_GE(result.finished - result.started, 200 * kNsPerMs);
    EXPECT_NE(result.message.find("no answer within 0.2 s"), std::string::npos)
        << result.message;
  }
  EXPECT_EQ(run("ok").outcome, JobOutcome::done);
  EXPECT_EQ(pool->counts().hung, 3u);
  EXPECT_EQ(pool->counts().killed, 0u);
  EXPECT_EQ(pool->counts().restarts, 3u);
}

TEST_F(PoolTest, WorkerStoppedWhileIdleCostsNoJob) {
  WorkerOptions options = testOptions();
  options.checkPeriod = 3600 * kNsPerSecond; // the next job finds it
  start(options);
  ASSERT_EQ(run("ok").outcome, JobOutcome::done);
  const pid_t pid = pool->pids().at(0);
  kill(pid, SIGSTOP);
  // The signal takes effect in its own time.
  ASSERT_TRUE(eventually([&] { return isStopped(pid); }));
  EXPECT_EQ(run("ok").outcome, JobOutcome::done);
  EXPECT_EQ(pool->counts().hung, 1u);
  EXPECT_EQ(pool->counts().restarts, 1u);
}

TEST_F(PoolTest, WorkerStoppedWhileIdleIsCountedWithoutAJob) {
  WorkerOptions options = testOptions();
  options.checkPeriod = 20 * kNsPerMs;
  start(options);
  ASSERT_EQ(run("ok").outcome, JobOutcome::done);
  kill(pool->pids().at(0), SIGSTOP);
  EXPECT_TRUE(eventually([&] { return pool->counts().hung == 1; }));
  EXPECT_TRUE(eventually([&] { return pool->pids().empty(); }));
  EXPECT_EQ(pool->counts().killed, 0u);
}

TEST_F(PoolTest, IdleWorkersLeave) {
  WorkerOptions options = testOptions();
  options.idleTimeout = 50 * kNsPerMs;
  options.checkPeriod = 10 * kNsPerMs;
  start(options);
  ASSERT_EQ(run("ok").outcome, JobOutcome::done);
  EXPECT_TRUE(eventually([&] { return pool->pids().empty(); }));
  EXPECT_EQ(run("ok").outcome, JobOutcome::done);
  EXPECT_EQ(pool->counts().started, 2u);
  EXPECT_EQ(pool->counts().killed + pool->counts().hung, 0u);
  EXPECT_EQ(pool->counts().restarts, 0u);
}

TEST_F(PoolTest, WorkersOfAnotherBuildAreRefusedOnce) {
  TempDir dir; // a program of our own, to be replaced
  WorkerOptions options = testOptions();
  fs::copy(options.path, dir / "worker");
  options.path = dir / "worker";
  start(options);
  auto runFor = [&](const std::string &kernel, const std::string &producer) {
    CompileJob wanted = job(++lastId, kernel);
    wanted.producer = producer;
    EXPECT_TRUE(pool->submit(std::move(wanted)));
    return waitFor(lastId);
  };
  EXPECT_EQ(runFor("ok", "test worker 1").outcome, JobOutcome::done);
  EXPECT_EQ(pool->counts().skewed, 0u);
  for (int i = 0; i < 3; ++i) {
    const CompileResult result = runFor("ok", "test worker 0");
    EXPECT_EQ(result.outcome, JobOutcome::unavailable);
    EXPECT_EQ(result.message,
              "worker '" + options.path +
                  "' is 'test worker 1', the bundle was built by 'test worker "
                  "0'; build the bundle again or set PGKP_WORKER");
    EXPECT_TRUE(result.payload.empty());
  }
  EXPECT_EQ(pool->counts().skewed, 1u) << "the others were not even asked";
  EXPECT_EQ(log.lines().size(), 1u);
  // Other bundles are served on.
  EXPECT_EQ(runFor("ok", "test worker 1").outcome, JobOutcome::done);
  EXPECT_EQ(runFor("ok", "").outcome, JobOutcome::done);
  // And so is this one once its program is there.
  fs::copy(testOptions().path, dir / "next");
  fs::rename(dir / "next", dir / "worker");
  EXPECT_EQ(runFor("ok", "test worker 0").outcome, JobOutcome::unavailable);
  EXPECT_EQ(pool->counts().skewed, 2u);
  EXPECT_EQ(pool->counts().garbage + pool->counts().killed, 0u);
}

TEST_F(PoolTest, WhatSomebodyWaitsForRunsAtNormalPriority) {
  if (geteuid() != 0)
    GTEST_SKIP() << "raising a priority needs a privilege";
  start(testOptions());
  const JobId id = ++lastId;
  ASSERT_TRUE(pool->submit(job(id, "wait-urgent")));
  pool->raise(77); // nobody's
  pool->raise(id);
  EXPECT_EQ(waitFor(id).outcome, JobOutcome::done);
  // Afterwards it is in the background again.
  EXPECT_NE(run("process").message.find("scheduler=5 nice=19 io=3"),
            std::string::npos);
  EXPECT_EQ(pool->counts().started, 1u);
}

TEST_F(PoolTest, AStartThatTakesLongBlocksNobody) {
  start(testOptions());
  setFailpoint("worker.socketpair", FailpointAction::delay, 1000);
  const TimeNs begin = clock.now();
  ASSERT_TRUE(pool->submit(job(1, "ok")));
  pool->cancel(77);
  (void)pool->counts();
  (void)pool->pids();
  EXPECT_LT(clock.now() - begin, 900 * kNsPerMs);
  EXPECT_EQ(waitFor(1).outcome, JobOutcome::done);
  EXPECT_GE(clock.now() - begin, 1000 * kNsPerMs);
}

TEST_F(PoolTest, RequestsThatNoFrameHoldsAreRefused) {
  start(testOptions());
  CompileJob large = job(1, "ok");
  large.request.resize(kMaxFrameBytes + 1);
  ASSERT_TRUE(pool->submit(std::move(large)));
  const CompileResult result = waitFor(1);
  EXPECT_EQ(result.outcome, JobOutcome::rejected);
  EXPECT_NE(result.message.find("a worker takes"), std::string::npos);
  EXPECT_EQ(pool->counts().started, 0u);
}

TEST_F(PoolTest, ArtifactsMustFitTheirKernel) {
  start(testOptions());
  // The worker's artifact has a fact about extent 0: too many for a kernel
  // without extents.
  CompileJob small = job(1, "ok");
  small.numDims = 0;
  ASSERT_TRUE(pool->submit(std::move(small)));
  EXPECT_EQ(waitFor(1).outcome, JobOutcome::rejected);
  EXPECT_EQ(pool->counts().garbage, 1u);
}

TEST_F(PoolTest, AStarvedJobIsNotHung) {
  // One processor, which busy threads share with a worker of idle priority.
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before))
      CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  WorkerOptions options = testOptions();
  options.jobTimeout = kNsPerSecond;
  start(options);
  const bool warm = run("ok").outcome == JobOutcome::done;
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 3; ++i)
    busy.emplace_back([&] {
      while (!stop)
        ;
    });
  const JobId id = ++lastId;
  EXPECT_TRUE(pool->submit(job(id, "burn"))); // 0.2 s of CPU time
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  EXPECT_EQ(pool->counts().hung, 0u);
  pool->cancel(id);
  stop = true;
  for (std::thread &thread : busy)
    thread.join();
  EXPECT_NE(waitFor(id).outcome, JobOutcome::hung);
  EXPECT_TRUE(warm);
  sched_setaffinity(0, sizeof before, &before);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(PoolTest, ProcessorTimeIsLimitedWhileWeAreAway) {
  // The pool's own limit is far away; the kernel's is not.
  const pid_t child = fork();
  if (child == 0)
    for (;;)
      ;
  Child process;
  process.pid = child;
  limitCpu(process, 0.1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU);
}
#endif

TEST_F(PoolTest, WrongAnswersEndTheWorker) {
  start(testOptions());
  uint64_t expected = 0;
  for (const char *how :
       {"garbage", "no-frame", "huge", "wrong-job", "wrong-key", "wrong-code",
        "wrong-kernel", "wrong-facts", "wrong-format", "wrong-status",
        "empty"}) {
    const CompileResult result = run(how);
    EXPECT_EQ(result.outcome, JobOutcome::rejected) << how;
    EXPECT_NE(result.message.find("is wrong: "), std::string::npos)
        << how << ": " << result.message;
    EXPECT_TRUE(result.payload.empty());
    EXPECT_EQ(pool->counts().garbage, ++expected) << how;
  }
  EXPECT_EQ(run("ok").outcome, JobOutcome::done);
  EXPECT_EQ(pool->counts().killed, 0u);
  EXPECT_EQ(pool->counts().restarts, expected);
}

TEST_F(PoolTest, TruncatedAnswerIsADeath) {
  start(testOptions());
  EXPECT_EQ(run("truncated").outcome, JobOutcome::killed);
  EXPECT_EQ(run("close").outcome, JobOutcome::killed);
  EXPECT_EQ(run("ok").outcome, JobOutcome::done);
}

TEST_F(PoolTest, TwoAnswersAreOneTooMany) {
  start(testOptions());
  // Both may come at once, or the second while nothing is asked.
  (void)run("twice");
  ASSERT_TRUE(eventually([&] { return pool->counts().garbage == 1; }));
  EXPECT_EQ(run("ok").outcome, JobOutcome::done);
}

TEST_F(PoolTest, RejectionsAreOneCleanLine) {
  start(testOptions());
  const CompileResult result = run("reject");
  EXPECT_EQ(result.outcome, JobOutcome::rejected);
  EXPECT_EQ(result.message, "kernel has no body [31m");
  EXPECT_EQ(run("ok").outcome, JobOutcome::done);
  EXPECT_EQ(pool->counts().started, 1u);
}

TEST_F(PoolTest, ProcessorTimeIsTheKernelsWord) {
  start(testOptions());
  CompileResult result = run("burn");
  EXPECT_GE(result.cpuSeconds, 0.15);
  EXPECT_LT(result.cpuSeconds, 5);
  result = run("lying"); // reports 1e27 s
  EXPECT_EQ(result.outcome, JobOutcome::done);
  EXPECT_LT(result.cpuSeconds, 100);
  result = run("burn-and-die");
  EXPECT_EQ(result.outcome, JobOutcome::killed);
  EXPECT_GE(result.cpuSeconds, 0.15);
}

TEST_F(PoolTest, RecycledByJobsAndMemory) {
  WorkerOptions options = testOptions();
  options.jobsPerWorker = 3;
  start(options);
  for (int i = 0; i < 7; ++i)
    EXPECT_EQ(run("ok").outcome, JobOutcome::done);
  EXPECT_EQ(pool->counts().started, 3u);
  EXPECT_EQ(run("fat").outcome, JobOutcome::done);
  EXPECT_EQ(run("ok").outcome, JobOutcome::done);
  EXPECT_EQ(pool->counts().started, 4u);
  EXPECT_EQ(pool->counts().restarts, 0u);
  EXPECT_EQ(pool->counts().killed, 0u);
}

TEST_F(PoolTest, NothingIsInherited) {
  const int leak = open("/dev/null", O_RDONLY); // no close-on-exec
  setenv("PGKP_TEST_SECRET", "secret", 1);
  signal(SIGUSR1, SIG_IGN);
  WorkerOptions options = testOptions();
  options.environment = {"EXTRA=given"};
  start(options);
  EXPECT_EQ(run("descriptors").message, "0,1,2,3");
  const std::string environment = run("environment").message;
  EXPECT_EQ(environment.find("secret"), std::string::npos);
  EXPECT_NE(environment.find("EXTRA=given;"), std::string::npos);
  EXPECT_NE(environment.find("LC_ALL=C;"), std::string::npos);
  const std::string process = run("process").message;
  EXPECT_NE(process.find("scheduler=5 nice=19 io=3 core=0 memory=0 death=9 "
                         "privileges=1 leader=true blocked=0 sigusr1=true"),
            std::string::npos)
      << process;
  signal(SIGUSR1, SIG_DFL);
  unsetenv("PGKP_TEST_SECRET");
  close(leak);
}

TEST_F(PoolTest, CallsThatNoCompilerNeedsAreRefused) {
  start(testOptions());
  const std::string text = run("sandbox").message;
  if (text == "inet=0 unix=0 keyctl=0")
    GTEST_SKIP() << "seccomp is not permitted here";
  EXPECT_EQ(text, "inet=1 unix=0 keyctl=1");
}

TEST_F(PoolTest, ForegroundWorkersRunAtNormalPriority) {
  WorkerOptions options = testOptions();
  options.background = false;
  start(options);
  EXPECT_NE(run("process").message.find("scheduler=0 nice=0"),
            std::string::npos);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(PoolTest, MemoryIsLimited) {
  WorkerOptions options = testOptions();
  options.memoryMib = 512;
  start(options);
  EXPECT_NE(run("process").message.find("memory=512"), std::string::npos);
}
#endif

TEST_F(PoolTest, StoppingIsQuickReapsAllAndDeliversAll) {
  start(testOptions(3));
  ASSERT_TRUE(pool->submit(job(1, "hang")));
  ASSERT_TRUE(pool->submit(job(2, "grandchild")));
  ASSERT_TRUE(pool->submit(job(3, "ok")));
  waitFor(3);
  ASSERT_TRUE(eventually([&] { return pool->pids().size() == 3; }));
  const std::vector<pid_t> pids = pool->pids();
  const TimeNs begin = clock.now();
  pool.reset();
  EXPECT_LT(clock.now() - begin, 2 * kNsPerSecond);
  EXPECT_EQ(results.at(1).outcome, JobOutcome::cancelled);
  EXPECT_EQ(results.at(2).outcome, JobOutcome::cancelled);
  for (pid_t pid : pids)
    EXPECT_FALSE(exists(pid));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1); // no child is left
  EXPECT_EQ(errno, ECHILD);
  EXPECT_EQ(threadsNamed("pgkp-workers"), 0u);
}

TEST_F(PoolTest, StoppedWorkersAtTheEndAreCountedBeforeItIsOver) {
  start(testOptions());
  ASSERT_TRUE(pool->submit(job(1, "stop")));
  ASSERT_TRUE(eventually([&] {
    const std::vector<pid_t> pids = pool->pids();
    return !pids.empty() && isStopped(pids[0]);
  }));
  pool.reset();
  EXPECT_EQ(results.at(1).outcome, JobOutcome::hung);
}

TEST_F(PoolTest, WorkersDieWithTheirParent) {
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto *leaked = new WorkerPool(testOptions());
    leaked->onResult([](CompileResult) {});
    leaked->submit(job(1, "hang"));
    while (leaked->pids().empty())
      usleep(1000);
    const pid_t worker = leaked->pids()[0];
    if (write(report[1], &worker, sizeof worker) != sizeof worker)
      _exit(1);
    raise(SIGKILL);
  }
  pid_t worker = -1;
  ASSERT_EQ(read(report[0], &worker, sizeof worker), ssize_t{sizeof worker});
  close(report[0]);
  close(report[1]);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(eventually([&] {
    // Whoever adopts it may be slow to reap it: a zombie is dead enough.
    std::ifstream file("/proc/" + std::to_string(worker) + "/stat");
    std::string text;
    std::getline(file, text);
    return text.empty() || text.find(") Z ") != std::string::npos;
  }));
}

TEST_F(PoolTest, ForkedCopyTakesNoJobsAndStopsNothing) {
  start(testOptions());
  ASSERT_EQ(run("ok").outcome, JobOutcome::done);
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = !pool->submit(job(50, "ok"));
    pool.reset();
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(run("ok").outcome, JobOutcome::done);
  EXPECT_EQ(pool->counts().started, 1u);
}

TEST_F(PoolTest, ApplicationThatReapsEverything) {
  start(testOptions());
  ASSERT_EQ(run("ok").outcome, JobOutcome::done);
  const pid_t worker = pool->pids().at(0);
  struct sigaction before, ignore{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGCHLD, &ignore, &before);
  kill(worker, SIGKILL);
  EXPECT_TRUE(eventually([&] { return pool->counts().killed == 1; }));
  EXPECT_EQ(run("ok").outcome, JobOutcome::done);
  EXPECT_EQ(run("die").outcome, JobOutcome::killed);
  sigaction(SIGCHLD, &before, nullptr);
}

TEST_F(PoolTest, MissingOrBrokenWorkerIsUnavailable) {
  WorkerOptions options = testOptions();
  options.path = "/nonexistent/pgkp-worker";
  start(options);
  CompileResult result = run("ok");
  EXPECT_EQ(result.outcome, JobOutcome::unavailable);
  EXPECT_NE(result.message.find("/nonexistent/pgkp-worker"), std::string::npos);
  pool.reset();
  TempDir dir;
  overwrite(dir / "text", std::vector<uint8_t>{'n', 'o', '\n'});
  fs::permissions(dir / "text", fs::perms::owner_all);
  options.path = dir / "text";
  start(options);
  EXPECT_EQ(run("ok").outcome, JobOutcome::unavailable);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(PoolTest, EveryFailedSystemCallGivesAnOutcome) {
  start(testOptions());
  for (const char *call :
       {"worker.socketpair", "worker.pipe", "worker.spawn"}) {
    setFailpoint(call, FailpointAction::error, EMFILE);
    EXPECT_EQ(run("ok").outcome, JobOutcome::unavailable) << call;
  }
  EXPECT_EQ(run("ok").outcome, JobOutcome::done);
  setFailpoint("worker.send", FailpointAction::error, EPIPE);
  EXPECT_EQ(run("ok").outcome, JobOutcome::killed);
  setFailpoint("worker.recv", FailpointAction::error, EIO);
  EXPECT_EQ(run("ok").outcome, JobOutcome::killed);
  setFailpoint("worker.wait", FailpointAction::error, EINTR);
  EXPECT_EQ(run("die").outcome, JobOutcome::killed);
  EXPECT_EQ(run("ok").outcome, JobOutcome::done);
}

TEST_F(PoolTest, Ping) {
  start(testOptions());
  ASSERT_TRUE(pool->submit(makePingJob(1)));
  const CompileResult result = waitFor(1);
  EXPECT_EQ(result.outcome, JobOutcome::done);
  EXPECT_EQ(result.producer, "test worker 1");
  EXPECT_TRUE(result.payload.empty());
}

TEST(BuildBundle, EchoedAndVerified) {
  const std::vector<uint8_t> bundle = fixtures::pack(fixtures::testBundle());
  auto built = buildBundle(testOptions(), {"model.mlir", bundle, {}});
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(*built, bundle);
  std::vector<uint8_t> damaged = bundle;
  damaged.resize(damaged.size() / 2);
  LogCapture log;
  EXPECT_FALSE(buildBundle(testOptions(), {"model.mlir", damaged, {}}));
}

TEST(BuildBundle, FailuresAreOneLine) {
  LogCapture log;
  const std::vector<uint8_t> bundle = fixtures::pack(fixtures::testBundle());
  auto built = buildBundle(testOptions(), {"die.mlir", bundle, {}});
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, Code::unavailable);
  EXPECT_NE(built.error().message.find("worker died while building 'die.mlir'"),
            std::string::npos);
  built = buildBundle(testOptions(), {"bad.mlir", bundle, {}});
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, Code::invalidArgument);
  EXPECT_EQ(built.error().message, "bad.mlir:3:7: expected operation name");
  WorkerOptions options = testOptions();
  options.bundleTimeout = 100 * kNsPerMs;
  built = buildBundle(options, {"hang.mlir", bundle, {}});
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, Code::deadline);
}

TEST(BuildBundle, Targets) {
  schema::TargetT host;
  host.chip = "x86-64-v3";
  auto targets = parseTargets({"host", "sm_90", "sm_90a"}, host);
  ASSERT_TRUE(targets);
  EXPECT_EQ((*targets)[0].chip, "x86-64-v3");
  EXPECT_EQ((*targets)[1].device, schema::DeviceKind::cuda);
  EXPECT_EQ((*targets)[2].chip, "sm_90a");
  EXPECT_FALSE(parseTargets({"gpu"}, host));
  EXPECT_FALSE(parseTargets({"sm_x"}, host));
}

TEST(FindWorker, LooksWhereItSays) {
  TempDir dir;
  setenv("PGKP_WORKER", (dir / "w").c_str(), 1);
  EXPECT_EQ(findWorker().error().code, Code::unavailable);
  overwrite(dir / "w", std::vector<uint8_t>{1});
  EXPECT_FALSE(findWorker()); // not executable
  fs::permissions(dir / "w", fs::perms::owner_all);
  EXPECT_EQ(findWorker().value(), dir / "w");
  unsetenv("PGKP_WORKER");
  const std::string before = getenv("PATH");
  setenv("PATH", dir.path.c_str(), 1);
  if (const auto found = findWorker()) {
    // A full build has one in its bin folder, which comes before PATH.
    EXPECT_TRUE(found->ends_with("/bin/pgkp-worker")) << *found;
  } else {
    EXPECT_NE(found.error().message.find("no 'pgkp-worker' beside '"),
              std::string::npos);
    fs::copy(dir / "w", dir / "pgkp-worker");
    EXPECT_EQ(findWorker().value(), dir / "pgkp-worker");
  }
  setenv("PATH", before.c_str(), 1);
}

TEST(WorkerOptionsTest, Environment) {
  setenv("PGKP_WORKERS", "0", 1);
  setenv("PGKP_JOB_TIMEOUT_S", "0.5", 1);
  setenv("PGKP_WORKER_MEMORY_MIB", "100", 1);
  const WorkerOptions options = WorkerOptions::fromEnvironment();
  EXPECT_EQ(options.workers, 0u);
  EXPECT_EQ(options.jobTimeout, 500 * kNsPerMs);
  EXPECT_EQ(options.memoryMib, 100u);
  unsetenv("PGKP_WORKERS");
  unsetenv("PGKP_JOB_TIMEOUT_S");
  unsetenv("PGKP_WORKER_MEMORY_MIB");
  EXPECT_EQ(WorkerOptions::fromEnvironment(7).workers, 7u);
}
