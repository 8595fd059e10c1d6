// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file One thread that serves every module of an engine in turn.
#pragma once

#include "base/Clock.h"

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace pgkp::rt {

/// Calls each member's round when somebody woke the loop or the member's time
/// has come. The thread starts with the first member and ends with the loop, so
/// that modules without work to prepare cost none. Thread-safe.
class SharedLoop {
public:
  /// Does what is due. \returns when it wants to be called next at the latest;
  /// kForever: not before wake().
  using Round = std::function<TimeNs(TimeNs now)>;

  /// `name`: of the thread, at most 15 characters. The clock must outlive the
  /// loop.
  SharedLoop(const char *name, const Clock &clock) : name(name), clock(clock) {}
  ~SharedLoop();
  SharedLoop(const SharedLoop &) = delete;
  SharedLoop &operator=(const SharedLoop &) = delete;

  /// `member` identifies it; its first round runs at once. False: the system
  /// gives no thread, and nothing was added.
  bool add(const void *member, Round round);
  /// When it returns, the member's round does not run and will not run again.
  /// Not to be called from a round.
  void remove(const void *member);
  /// Every member's round runs soon.
  void wake();

private:
  struct Member {
    Round round;
    TimeNs due = 0;
  };

  void run();

  const char *const name;
  const Clock &clock;
  std::mutex mutex; ///< all below
  std::condition_variable changed;
  std::map<const void *, Member> members;
  const void *running = nullptr; ///< the member whose round runs
  bool woken = false, stopping = false;
  std::thread thread;
};

} // namespace pgkp::rt
