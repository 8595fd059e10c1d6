// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/Fork.h"

#include <atomic>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace pgkp::rt;

namespace {

/// The exit status of a child that runs `body`; -1: it did not exit.
template <typename Body> int inChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ForkMark, KnowsItsProcess) {
  const ForkMark mark;
  EXPECT_FALSE(mark.forked());
  EXPECT_EQ(inChild([&] {
              const ForkMark own; // objects of the child are its own
              const int grandchild = inChild(
                  [&] { return mark.forked() && own.forked() ? 1 : 2; });
              return mark.forked() && !own.forked() && grandchild == 1 ? 7 : 8;
            }),
            7);
  EXPECT_FALSE(mark.forked());
}

TEST(ForkSafeMutex, IsFreeInTheChild) {
  ForkSafeMutex mutex;
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      std::lock_guard lock(mutex);
    }
  });
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(inChild([&] {
                std::lock_guard lock(mutex);
                return 5;
              }),
              5);
  stop = true;
  busy.join();
}

} // namespace
