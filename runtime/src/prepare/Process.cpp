// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "prepare/Process.h"

#include "base/Failpoint.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fstream>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pgkp::rt {

std::string Exit::text() const {
  if (!known)
    return "ended";
  if (code == CLD_EXITED)
    return fmt::format("exited with status {}", status);
  return fmt::format("was ended by signal {} ({})", status,
                     sigabbrev_np(status) ? sigabbrev_np(status) : "?");
}

static int waitOn(const Child &child, siginfo_t *info, int options,
                  rusage *usage) {
  const int kind = child.pidfd ? 3 /* P_PIDFD */ : static_cast<int>(P_PID);
  const int id = child.pidfd ? child.pidfd.get() : child.pid;
  // The C library's waitid does not give resource usage.
  return static_cast<int>(
      syscall(SYS_waitid, kind, id, info, options | __WALL, usage));
}

std::optional<Exit> reap(const Child &child) {
  siginfo_t info{};
  rusage usage{};
  errno = failpoint("worker.wait");
  if (errno != 0 ||
      waitOn(child, &info, WEXITED | WNOHANG | WNOWAIT, nullptr) != 0) {
    // The application may have waited for any child, or ignore SIGCHLD.
    if (errno == ECHILD)
      return Exit{};
    return std::nullopt;
  }
  if (info.si_pid == 0)
    return std::nullopt;
  // What it may have started; while it is a zombie the group's number is its
  // own.
  kill(-child.pid, SIGKILL);
  if (waitOn(child, &info, WEXITED | WNOHANG, &usage) != 0)
    return Exit{};
  auto seconds = [](const timeval &t) {
    return static_cast<double>(t.tv_sec) +
           1e-6 * static_cast<double>(t.tv_usec);
  };
  return Exit{true, info.si_code, info.si_status,
              seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

bool isStopped(const Child &child) {
  siginfo_t info{};
  return waitOn(child, &info, WSTOPPED | WNOHANG | WNOWAIT, nullptr) == 0 &&
         info.si_pid != 0;
}

/// If the application has reaped it, the number may be somebody else's by now.
static bool isGone(const Child &child) {
#ifdef SYS_pidfd_send_signal
  return child.pidfd &&
         syscall(SYS_pidfd_send_signal, child.pidfd.get(), 0, nullptr, 0) !=
             0 &&
         errno == ESRCH;
#else
  return false;
#endif
}

void killGroup(const Child &child) {
  if (isGone(child))
    return;
  kill(-child.pid, SIGKILL);
  kill(child.pid, SIGKILL);
}

double cpuSecondsOf(const Child &child) {
  clockid_t clock;
  timespec used;
  if (clock_getcpuclockid(child.pid, &clock) != 0 ||
      clock_gettime(clock, &used) != 0)
    return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * used.tv_nsec;
}

bool isRunnable(const Child &child) {
  // proc_pid_stat(5): "number (name) state ...", where the name may be
  // anything.
  std::ifstream file(fmt::format("/proc/{}/stat", child.pid));
  std::string line;
  std::getline(file, line);
  const size_t name = line.rfind(") ");
  return name != line.npos && line.compare(name + 2, 2, "R ") == 0;
}

void limitCpu(const Child &child, double seconds) {
  if (isGone(child))
    return;
  // The hard limit stays: only a soft one can be moved up again for the next
  // job. SIGXCPU's default action ends the process.
  rlimit limits;
  if (prlimit(child.pid, RLIMIT_CPU, nullptr, &limits) != 0)
    return;
  limits.rlim_cur =
      std::min(limits.rlim_max,
               static_cast<rlim_t>(std::ceil(cpuSecondsOf(child) + seconds)));
  prlimit(child.pid, RLIMIT_CPU, &limits, nullptr);
}

static bool setUrgent(pid_t thread, bool urgent) {
  constexpr int ioprioWhoProcess = 1, ioprioIdle = 3 << 13, ioprioNone = 0;
  const sched_param parameter{};
  const bool done =
      sched_setscheduler(thread, urgent ? SCHED_OTHER : SCHED_IDLE,
                         &parameter) == 0;
  setpriority(PRIO_PROCESS, static_cast<id_t>(thread), urgent ? 0 : 19);
  syscall(SYS_ioprio_set, ioprioWhoProcess, thread,
          urgent ? ioprioNone : ioprioIdle);
  return done;
}

bool setUrgent(const Child &child, bool urgent) {
  if (isGone(child))
    return false;
  const std::string tasks = fmt::format("/proc/{}/task", child.pid);
  DIR *directory = opendir(tasks.c_str());
  if (!directory)
    return setUrgent(child.pid, urgent);
  bool done = false;
  while (const dirent *entry = readdir(directory))
    if (const pid_t thread = std::atoi(entry->d_name); thread > 0)
      done |= setUrgent(thread, urgent);
  closedir(directory);
  return done;
}

} // namespace pgkp::rt
