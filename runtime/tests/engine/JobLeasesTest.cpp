// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/JobLeases.h"

#include "base/LogCapture.h"
#include "base/TempDir.h"
#include "schema/TestBundle.h"

#include <atomic>
#include <csignal>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace pgkp;
using namespace pgkp::rt;
using Turn = JobLeases::Turn;

namespace {

Digest key(int64_t n) { return toDigest(*fixtures::variant(n)->content_key); }

std::vector<uint8_t> bytesOf(int64_t n) {
  return fixtures::pack(*fixtures::variant(n));
}

struct JobLeasesTest : testing::Test {
  std::unique_ptr<Store> open() {
    StoreOptions options;
    options.directory = dir / "cache";
    return Store::open(options);
  }
  TempDir dir;
  ManualClock clock{kNsPerSecond};
  LogCapture log;
};

/// What the processes of a test share.
struct Shared {
  std::atomic<int> go{0};
  std::atomic<int> compiles[64];
  std::atomic<int> inHand{0}; ///< leases that the victim holds
};

struct SharedMemory {
  SharedMemory()
      : shared(new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {}
  ~SharedMemory() { munmap(shared, sizeof(Shared)); }
  Shared *shared;
};

/// A server that needs all keys, in an order of its own, and compiles what
/// nobody else does. \returns when every key is in the store.
void serve(Store &store, Shared &shared, unsigned seed, unsigned compileUs,
           bool victim) {
  const SteadyClock clock;
  JobLeases leases(store, clock);
  std::vector<int> keys(64);
  std::iota(keys.begin(), keys.end(), 0);
  std::shuffle(keys.begin(), keys.end(), std::mt19937(seed));
  while (!keys.empty()) {
    std::erase_if(keys, [&](int n) {
      switch (leases.take(key(n))) {
      case Turn::stored:
        return true;
      case Turn::theirs:
        return false;
      case Turn::ours:
        break;
      }
      if (victim)
        ++shared.inHand;
      ++shared.compiles[n];
      usleep(compileUs);
      EXPECT_TRUE(store.put(key(n), bytesOf(n)));
      leases.done(key(n));
      if (victim)
        --shared.inHand;
      return true;
    });
    usleep(1000);
  }
}

} // namespace

TEST_F(JobLeasesTest, OneCompilesAndTheOthersFindIt) {
  auto first = open(), second = open();
  JobLeases mine(*first, clock), theirs(*second, clock);
  EXPECT_EQ(mine.take(key(1)), Turn::ours);
  EXPECT_EQ(mine.take(key(1)), Turn::ours); // still
  EXPECT_EQ(theirs.take(key(1)), Turn::theirs);
  EXPECT_EQ(theirs.take(key(2)), Turn::ours);
  EXPECT_FALSE(theirs.poll());
  ASSERT_TRUE(first->put(key(1), bytesOf(1)));
  mine.done(key(1));
  clock.advance(kNsPerSecond);
  EXPECT_TRUE(theirs.poll());
  EXPECT_EQ(theirs.take(key(1)), Turn::stored);
  EXPECT_FALSE(theirs.poll()); // nobody waits any more
}

TEST_F(JobLeasesTest, AFailedCompileIsTheNextOnesTurn) {
  auto first = open(), second = open();
  JobLeases mine(*first, clock), theirs(*second, clock);
  EXPECT_EQ(mine.take(key(1)), Turn::ours);
  EXPECT_EQ(theirs.take(key(1)), Turn::theirs);
  mine.done(key(1));
  clock.advance(kNsPerSecond);
  EXPECT_TRUE(theirs.poll());
  EXPECT_EQ(theirs.take(key(1)), Turn::ours);
}

TEST_F(JobLeasesTest, WhoWaitsTooLongCompilesPrivately) {
  auto first = open(), second = open();
  JobLeases mine(*first, clock), theirs(*second, clock);
  EXPECT_EQ(mine.take(key(1)), Turn::ours);
  for (int s = 0; s < 60; ++s) {
    EXPECT_EQ(theirs.take(key(1)), Turn::theirs) << s;
    clock.advance(kNsPerSecond);
  }
  EXPECT_TRUE(theirs.poll());
  EXPECT_EQ(theirs.take(key(1)), Turn::ours);
  EXPECT_EQ(theirs.privately(), 1u);
  // Both put: losing the race is success.
  ASSERT_TRUE(first->put(key(1), bytesOf(1)));
  ASSERT_TRUE(second->put(key(1), bytesOf(1)));
  EXPECT_EQ(second->stats().writeErrors, 0u);
}

TEST_F(JobLeasesTest, ADeadHoldersLeaseIsTakenOverAtOnce) {
  const pid_t child = fork();
  if (child == 0) {
    auto store = open();
    JobLeases leases(*store, clock);
    (void)leases.take(key(1));
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  auto store = open();
  JobLeases leases(*store, clock);
  EXPECT_EQ(leases.take(key(1)), Turn::ours);
}

// A child that the application forked keeps the lock of its dead parent: then
// process number and start time tell.
TEST_F(JobLeasesTest, ADeadHoldersChildDoesNotKeepItsLease) {
  int pipeEnds[2];
  ASSERT_EQ(pipe(pipeEnds), 0);
  const pid_t holder = fork();
  if (holder == 0) {
    auto store = open();
    JobLeases leases(*store, clock);
    (void)leases.take(key(1));
    const pid_t heir = fork();
    if (heir == 0) {
      [[maybe_unused]] ssize_t put = write(pipeEnds[1], "x", 1);
      for (;;)
        pause();
    }
    [[maybe_unused]] ssize_t told = write(pipeEnds[1], &heir, sizeof heir);
    for (;;)
      pause();
  }
  char text[1 + sizeof(pid_t)];
  for (size_t got = 0; got < sizeof text;) {
    const ssize_t n = read(pipeEnds[0], text + got, sizeof text - got);
    ASSERT_GT(n, 0);
    got += static_cast<size_t>(n);
  }
  pid_t heir;
  memcpy(&heir, text[0] == 'x' ? text + 1 : text, sizeof heir);
  auto store = open();
  JobLeases leases(*store, clock);
  EXPECT_EQ(leases.take(key(1)), Turn::theirs); // the holder lives
  kill(holder, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(holder, &status, 0), holder);
  EXPECT_EQ(leases.take(key(1)), Turn::ours);
  kill(heir, SIGKILL);
  close(pipeEnds[0]);
  close(pipeEnds[1]);
}

TEST_F(JobLeasesTest, WithoutADiskEverybodyCompilesForHimself) {
  StoreOptions options;
  options.directory = "none";
  auto store = Store::open(options);
  JobLeases a(*store, clock), b(*store, clock);
  EXPECT_EQ(a.take(key(1)), Turn::ours);
  EXPECT_EQ(b.take(key(1)), Turn::ours);
}

TEST_F(JobLeasesTest, EightProcessesCompileSixtyFourKeysOnce) {
  SharedMemory memory;
  std::vector<pid_t> children;
  for (unsigned n = 0; n < 8; ++n) {
    const pid_t child = fork();
    if (child == 0) {
      auto store = open();
      while (!memory.shared->go)
        usleep(100);
      serve(*store, *memory.shared, n, 2000, false);
      bool whole = !testing::Test::HasFailure();
      for (int k = 0; k < 64; ++k)
        whole &= store->get(key(k)).has_value();
      _exit(whole ? 0 : 1);
    }
    children.push_back(child);
  }
  memory.shared->go = 1;
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  for (int k = 0; k < 64; ++k)
    EXPECT_EQ(memory.shared->compiles[k], 1) << k;
}

TEST_F(JobLeasesTest, EightThreadsCompileSixtyFourKeysOnce) {
  SharedMemory memory;
  auto store = open();
  std::vector<std::thread> threads;
  for (unsigned n = 0; n < 8; ++n)
    threads.emplace_back(
        [&, n] { serve(*store, *memory.shared, n, 500, false); });
  for (std::thread &thread : threads)
    thread.join();
  for (int k = 0; k < 64; ++k)
    EXPECT_EQ(memory.shared->compiles[k], 1) << k;
}

TEST_F(JobLeasesTest, AKilledProcessCostsOneCompileForEachKeyItHeld) {
  std::mt19937 random(7);
  for (int round = 0; round < 5; ++round) {
    std::filesystem::remove_all(dir / "cache");
    SharedMemory memory;
    std::vector<pid_t> children;
    for (unsigned n = 0; n < 8; ++n) {
      const pid_t child = fork();
      if (child == 0) {
        auto store = open();
        while (!memory.shared->go)
          usleep(100);
        serve(*store, *memory.shared, n, 2000, n == 0);
        _exit(testing::Test::HasFailure() ? 1 : 0);
      }
      children.push_back(child);
    }
    memory.shared->go = 1;
    usleep(random() % 60'000);
    kill(children[0], SIGKILL);
    for (pid_t child : children) {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      if (child != children[0]) {
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      }
    }
    int compiles = 0;
    for (int k = 0; k < 64; ++k) {
      EXPECT_LE(memory.shared->compiles[k], 2) << k;
      compiles += memory.shared->compiles[k];
    }
    EXPECT_GE(compiles, 64);
    EXPECT_LE(compiles, 64 + memory.shared->inHand);
    auto store = open();
    for (int k = 0; k < 64; ++k)
      EXPECT_TRUE(store->get(key(k)));
  }
}
