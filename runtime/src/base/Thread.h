// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Threads of the runtime: named, and deaf to the application's signals.
#pragma once

#include <csignal>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <utility>

namespace pgkp::rt {

/// Starts a thread with all signals blocked. `name`: at most 15 characters. Not
/// joinable where the system gives no thread (a container's limit of
/// processes).
template <typename Function>
std::thread startThread(const char *name, Function &&function) {
  sigset_t all, before;
  sigfillset(&all);
  // Blocked here, not in the new thread, which would take signals until then.
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::forward<Function>(function));
    pthread_setname_np(thread.native_handle(), name);
  } catch (const std::system_error &) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

} // namespace pgkp::rt
