// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/SharedLoop.h"

#include "base/Thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace pgkp::rt {

SharedLoop::~SharedLoop() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
    changed.notify_all();
  }
  if (thread.joinable())
    thread.join();
}

bool SharedLoop::add(const void *member, Round round) {
  std::lock_guard lock(mutex);
  if (!thread.joinable())
    thread = startThread(name, [this] { run(); });
  if (!thread.joinable())
    return false;
  members[member] = {std::move(round), 0};
  woken = true;
  changed.notify_all();
  return true;
}

void SharedLoop::remove(const void *member) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return running != member; });
  members.erase(member);
}

void SharedLoop::wake() {
  std::lock_guard lock(mutex);
  woken = true;
  changed.notify_all();
}

void SharedLoop::run() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    TimeNs due = kForever;
    for (const auto &[id, member] : members)
      due = std::min(due, member.due);
    auto called = [&] { return stopping || woken; };
    if (due == kForever)
      changed.wait(lock, called);
    else if (const TimeNs left = due - clock.now(); left > 0)
      changed.wait_for(lock, std::chrono::nanoseconds(left), called);
    if (stopping)
      return;
    const bool all = std::exchange(woken, false);

    // Members come and go while a round runs: the next one is found by its key.
    auto member = members.begin();
    while (member != members.end() && !stopping) {
      const void *const id = member->first;
      if (all || member->second.due <= clock.now()) {
        running = id;
        Round &round = member->second.round;
        lock.unlock();
        const TimeNs next = round(clock.now());
        lock.lock();
        running = nullptr;
        changed.notify_all();
        if (auto it = members.find(id); it != members.end())
          it->second.due = next;
      }
      member = members.upper_bound(id);
    }
  }
}

} // namespace pgkp::rt
