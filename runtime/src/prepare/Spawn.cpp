// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "prepare/Spawn.h"

#include "base/Failpoint.h"
#include "prepare/Sandbox.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif

namespace pgkp::rt {

namespace {
/// What the child needs, made ready before it exists.
struct Plan {
  const char *path;
  char *const *arguments, *const *environment;
  int socket, errors, null;
  pid_t parent;
  uint64_t memoryBytes;
  bool background;
  sock_fprog filter;
  int *failure; ///< errno of exec, in memory that the child shares
};

/// Memory that parent and child see: the child's stack, and how it failed.
class SharedMemory {
public:
  static constexpr size_t kBytes = 64 << 10;
  SharedMemory() = default;
  ~SharedMemory() {
    if (base != MAP_FAILED)
      munmap(base, kBytes);
  }
  SharedMemory(const SharedMemory &) = delete;
  SharedMemory &operator=(const SharedMemory &) = delete;

  bool valid() const { return base != MAP_FAILED; }
  int *failure() const { return static_cast<int *>(base); } // zero at first
  char *stackTop() const { return static_cast<char *>(base) + kBytes; }

private:
  void *base = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
};
} // namespace

static constexpr int kSocketFd = 3;

// The child shares our memory, and with it what sanitizers and the C library
// keep about descriptors and signal handlers. Plain system calls leave that
// alone.
#define PGKP_IN_CHILD                                                          \
  __attribute__((no_sanitize("address", "thread", "undefined")))

PGKP_IN_CHILD static void closeFrom(unsigned first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, first, ~0u, 0) == 0)
    return;
#endif
  for (int fd = static_cast<int>(first); fd < 65536; ++fd)
    syscall(SYS_close, fd);
}

PGKP_IN_CHILD static void limit(int resource, uint64_t value) {
  const uint64_t both[2] = {value, value};
  syscall(SYS_prlimit64, 0, resource, both, nullptr);
}

PGKP_IN_CHILD static void resetSignals() {
  // The kernel's struct sigaction, whose order of fields differs between
  // architectures: all zero is SIG_DFL without flags in each.
  const uint64_t standard[4] = {};
  const uint64_t none = 0;
  for (int signal = 1; signal <= 64; ++signal)
    syscall(SYS_rt_sigaction, signal, standard, nullptr, sizeof none);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
}

PGKP_IN_CHILD [[noreturn]] static void leave() {
  for (;;)
    syscall(SYS_exit_group, 127);
}

// Limits and priorities are wishes: the worker runs without them too.
PGKP_IN_CHILD static int runChild(void *argument) {
  Plan &plan = *static_cast<Plan *>(argument);
  syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (syscall(SYS_getppid) != plan.parent)
    leave();                  // the parent is gone already
  syscall(SYS_setpgid, 0, 0); // a Ctrl-C at the terminal is not for us
  syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

  // First out of the way of the numbers that they will get.
  const long socket = syscall(SYS_fcntl, plan.socket, F_DUPFD, 16);
  const long errors = syscall(SYS_fcntl, plan.errors, F_DUPFD, 16);
  const long null = syscall(SYS_fcntl, plan.null, F_DUPFD, 16);
  if (syscall(SYS_dup3, null, 0, 0) < 0 || syscall(SYS_dup3, null, 1, 0) < 0 ||
      syscall(SYS_dup3, errors, 2, 0) < 0 ||
      syscall(SYS_dup3, socket, kSocketFd, 0) < 0) {
    *plan.failure = errno;
    leave();
  }
  closeFrom(kSocketFd + 1);

  limit(RLIMIT_CORE, 0);
  if (plan.memoryBytes > 0)
    limit(RLIMIT_AS, plan.memoryBytes);
  if (plan.background) {
    const int priority = 0; // struct sched_param
    syscall(SYS_sched_setscheduler, 0, SCHED_IDLE, &priority);
    syscall(SYS_setpriority, PRIO_PROCESS, 0, 19);
    constexpr int ioprioWhoProcess = 1, ioprioIdle = 3 << 13;
    syscall(SYS_ioprio_set, ioprioWhoProcess, 0, ioprioIdle);
  }
  const long score = syscall(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj",
                             O_WRONLY | O_CLOEXEC);
  if (score >= 0)
    syscall(SYS_write, score, "800", 3);
  resetSignals();
#ifdef SYS_seccomp
  if (plan.filter.len > 0)
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &plan.filter);
#endif
  syscall(SYS_execve, plan.path, plan.arguments, plan.environment);
  *plan.failure = errno;
  leave();
}

/// Sleeps until the child runs its program or is gone. No fork handler runs.
static pid_t startChild(Plan &plan, char *stackTop, int *pidfd) {
  constexpr int flags = CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
#ifdef __SANITIZE_THREAD__
  // ThreadSanitizer would take a child in our memory for a thread of ours: it
  // gets a copy, by a system call that no interceptor sees.
  (void)stackTop;
  const long pid = syscall(SYS_clone, flags, nullptr, pidfd, nullptr, nullptr);
  if (pid == 0)
    runChild(&plan);
  return static_cast<pid_t>(pid);
#else
  // It borrows our memory, as vfork's does, but on a stack of its own. Copying
  // the page tables of a large application would stall it.
  return clone(runChild, stackTop, flags | CLONE_VM, &plan, pidfd);
#endif
}

static bool injected(std::string_view name) {
  if (const int value = failpoint(name)) {
    errno = value;
    return true;
  }
  return false;
}

static Status makeNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return makeErrnoError(errno, "cannot prepare the worker socket");
  return {};
}

static std::vector<char *> pointers(const std::vector<std::string> &strings) {
  std::vector<char *> result;
  for (const std::string &text : strings)
    result.push_back(const_cast<char *>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

Expected<Child> spawn(const SpawnOptions &options) {
  int sockets[2], pipes[2];
  if (injected("worker.socketpair") ||
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return makeErrnoError(errno, "cannot make a socket for a worker");
  Child child;
  child.socket.reset(sockets[0]);
  UniqueFd theirSocket(sockets[1]);
  if (injected("worker.pipe") || pipe2(pipes, O_CLOEXEC) != 0)
    return makeErrnoError(errno, "cannot make a pipe for a worker");
  child.errors.reset(pipes[0]);
  UniqueFd theirErrors(pipes[1]);
  PGKP_TRY(makeNonBlocking(child.socket.get()));
  PGKP_TRY(makeNonBlocking(child.errors.get()));
  UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null)
    return makeErrnoError(errno, "cannot open /dev/null for a worker");

  const std::vector<std::string> arguments{options.path,
                                           fmt::format("--fd={}", kSocketFd)};
  const std::vector<char *> argv = pointers(arguments);
  const std::vector<char *> envp = pointers(options.environment);
  SharedMemory shared;
  if (!shared.valid())
    return makeErrnoError(errno, "cannot get memory for a worker's start");
  std::vector<sock_filter> filter = sandboxFilter();
  Plan plan{options.path.c_str(),
            argv.data(),
            envp.data(),
            theirSocket.get(),
            theirErrors.get(),
            null.get(),
            getpid(),
            options.memoryMib << 20,
            options.background,
            {static_cast<unsigned short>(filter.size()), filter.data()},
            shared.failure()};
  sigset_t all, before;
  sigfillset(&all);
  int pidfd = -1;
  pid_t pid = -1;
  if (!injected("worker.spawn")) {
    // No handler of the application may run in the child.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = startChild(plan, shared.stackTop(), &pidfd);
    const int failure = errno;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = failure;
  }
  if (pid < 0)
    return makeErrnoError(errno, "cannot start worker '" + options.path + "'");
  child.pid = pid;
  child.pidfd.reset(pidfd);
  if (const int failure = *shared.failure(); failure != 0) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR)
      ;
    return makeErrnoError(failure,
                          "cannot start worker '" + options.path + "'");
  }
  return child;
}

} // namespace pgkp::rt
