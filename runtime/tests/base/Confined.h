// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A thread that may only compute: it dies at its first system call, and
/// what it allocates and locks is counted. Include it in one file of a test
/// program; it replaces malloc and the locks of pthreads there.
#pragma once

// Sanitizers replace malloc and make system calls of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PGKP_CAN_CONFINE 1

#include <cstddef>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pgkp::rt::testing {

struct Confinement {
  bool on = false;
  unsigned allocations = 0, locks = 0;
};
inline thread_local Confinement confinement
    __attribute__((tls_model("initial-exec")));

/// What the body did besides computing; empty: nothing.
inline std::string confined(const std::function<bool()> &body) {
  struct Run {
    const std::function<bool()> &body;
    enum { refused, died, failed, done } outcome = refused;
    Confinement counted;
  } run{body};
  // A thread and not a process: the runtime knows a forked child.
  auto thread = [](void *argument) -> void * {
    Run &run = *static_cast<Run *>(argument);
    // A thread's first allocation maps an arena; later ones need not.
    void *volatile memory = ::malloc(16);
    ::free(memory);
    // exit is what a thread ends with; nothing else is let through.
    sock_filter rules[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_exit},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_THREAD}};
    const sock_fprog program{std::size(rules), rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      return nullptr;
    run.outcome = Run::died;
    confinement.on = true;
    const bool good = run.body();
    confinement.on = false;
    run.counted = confinement;
    run.outcome = good ? Run::done : Run::failed;
    syscall(SYS_exit, 0); // the C library's way out makes other calls
    return nullptr;
  };
  pthread_t id;
  if (pthread_create(&id, nullptr, thread, &run) != 0 ||
      pthread_join(id, nullptr) != 0)
    return "no thread";
  switch (run.outcome) {
  case Run::refused:
    return "skip: system calls cannot be confined here";
  case Run::died:
    return "a system call";
  case Run::failed:
    return "a wrong result";
  case Run::done:
    break;
  }
  if (run.counted.allocations)
    return std::to_string(run.counted.allocations) + " allocations";
  if (run.counted.locks)
    return std::to_string(run.counted.locks) + " locks";
  return "";
}

} // namespace pgkp::rt::testing

extern "C" void *__libc_malloc(size_t);
extern "C" void *malloc(size_t bytes) {
  auto &here = pgkp::rt::testing::confinement;
  here.allocations += here.on;
  return __libc_malloc(bytes);
}

#define PGKP_COUNT_LOCK(function, type)                                        \
  extern "C" int function(type *lock) noexcept {                               \
    static const auto real =                                                   \
        reinterpret_cast<int (*)(type *)>(dlsym(RTLD_NEXT, #function));        \
    auto &here = pgkp::rt::testing::confinement;                               \
    here.locks += here.on;                                                     \
    return real(lock);                                                         \
  }
PGKP_COUNT_LOCK(pthread_mutex_lock, pthread_mutex_t)
PGKP_COUNT_LOCK(pthread_mutex_trylock, pthread_mutex_t)
PGKP_COUNT_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
PGKP_COUNT_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)
#undef PGKP_COUNT_LOCK

#endif // not under a sanitizer
