// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an application may expect of a library that starts threads and
// processes: each test in a process of its own.
#include "engine/Axpy.h"

#include "base/TempDir.h"
#include "engine/EngineFixture.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <grp.h>
#include <gtest/gtest.h>
#include <map>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace pgkp::rt;
using namespace pgkp::rt::testing;
namespace fs = std::filesystem;

namespace {

constexpr int kSkip = 77;

/// Runs the body in a child process; its word is what went wrong, empty if
/// nothing, "skip: why" where it cannot be tried here.
std::string inChild(const std::function<std::string()> &body) {
  int report[2];
  if (pipe(report) != 0)
    return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    close(report[0]);
    const std::string word = body();
    if (write(report[1], word.data(), word.size()) < 0)
      _exit(1);
    // The end of a program, not of a test: static destructors and all.
    std::exit(word.starts_with("skip: ") ? kSkip : !word.empty());
  }
  close(report[1]);
  std::string word;
  char piece[512];
  for (ssize_t got; (got = read(report[0], piece, sizeof piece)) > 0;)
    word.append(piece, static_cast<size_t>(got));
  close(report[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (word.empty() && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
    return fmt::format("the child ended with status {:#x}", status);
  return word;
}

#define EXPECT_IN_CHILD(...)                                                   \
  do {                                                                         \
    const std::string word = inChild(__VA_ARGS__);                             \
    if (word.starts_with("skip: "))                                            \
      GTEST_SKIP() << word.substr(6);                                          \
    EXPECT_EQ(word, "");                                                       \
  } while (false)

EngineOptions hostOptions(const std::string &policy) {
  EngineOptions options = simOptions(policy);
  options.device = "host";
  return options;
}

/// By name. ThreadSanitizer has a thread of its own, which comes and goes.
std::map<std::string, size_t> threads() {
  std::map<std::string, size_t> names;
  for (const auto &task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    std::getline(file, name);
#ifdef __SANITIZE_THREAD__
    if (name != "pgkp-workers" && name != "pgkp-planner" &&
        name != "pgkp-loader")
      continue;
#endif
    ++names[name];
  }
  return names;
}

/// Children of this process that live.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  for (const auto &task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "children");
    for (pid_t pid; file >> pid;)
      found.push_back(pid);
  }
  return found;
}

bool eventually(const std::function<bool()> &condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition())
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// Empty if an engine with these options prepares a variant and computes with
/// it.
std::string prepares(EngineOptions options,
                     std::shared_ptr<Engine> *kept = {}) {
  options.policy = "lazy";
  auto engine = Engine::create(options);
  if (!engine)
    return engine.error().message;
  Axpy axpy(*engine);
  if (std::string wrong = axpy.run(64); !wrong.empty())
    return wrong;
  if (!eventually([&] { return axpy.ready(64); })) {
    const int64_t extents[] = {64};
    return "never ready: " + axpy.module->explain(0, extents);
  }
  if (kept)
    *kept = *engine;
  return axpy.run(64);
}

/// Mounts of our own, where we may have them.
bool enterMountNamespace() {
  if (unshare(CLONE_NEWNS) != 0)
    return false;
  return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

TEST(Lifecycle, ThreeNamedThreadsAndTheWorkers) {
  EXPECT_IN_CHILD([]() -> std::string {
    const auto before = threads();
    std::shared_ptr<Engine> engine;
    if (std::string wrong = prepares(hostOptions("lazy"), &engine);
        !wrong.empty())
      return wrong;
    auto now = threads();
    for (const auto &[name, count] : before)
      now[name] -= count;
    std::erase_if(now, [](const auto &entry) { return entry.second == 0; });
    const std::map<std::string, size_t> expected{
        {"pgkp-loader", 1}, {"pgkp-planner", 1}, {"pgkp-workers", 1}};
    if (now != expected)
      return fmt::format("{} kinds of new threads", now.size());
    if (children().size() != 1)
      return fmt::format("{} children", children().size());
    engine.reset();
    return threads() == before && children().empty() ? "" : "something stays";
  });
}

TEST(Lifecycle, DisabledOrStaticStartsNothing) {
  for (const bool disabled : {true, false})
    EXPECT_IN_CHILD([disabled]() -> std::string {
      if (disabled)
        setenv("PGKP_DISABLE", "1", 1);
      const auto before = threads();
      auto engine = Engine::create(hostOptions("eager"));
      if (!engine)
        return engine.error().message;
      Axpy axpy(*engine, /*dynamic=*/disabled);
      for (int i = 0; i < 3; ++i)
        if (std::string wrong = axpy.run(64); !wrong.empty())
          return wrong;
      if (threads() != before)
        return "a thread was started";
      return children().empty() ? "" : "a process was started";
    });
}

TEST(Lifecycle, ReleaseEndsWhateverGoesOn) {
  TempDir dir;
  EXPECT_IN_CHILD([&]() -> std::string {
    setenv("TMPDIR", dir.path.c_str(), 1);
    std::ofstream(dir / "worker-mode") << "hang";
    auto engine = Engine::create(hostOptions("lazy"));
    auto axpy = std::make_unique<Axpy>(*engine);
    if (std::string wrong = axpy->run(64); !wrong.empty())
      return wrong;
    if (!eventually([] { return !children().empty(); }))
      return "no worker";
    const pid_t worker = children().at(0);
    axpy.reset();
    const auto begin = std::chrono::steady_clock::now();
    engine->reset();
    // Two seconds are promised; a loaded machine gets as many again.
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(4))
      return "it took too long";
    return kill(worker, 0) == 0 ? "the worker lives" : "";
  });
}

TEST(Lifecycle, SafeAtExit) {
  TempDir dir;
  EXPECT_IN_CHILD([&]() -> std::string {
    setenv("TMPDIR", dir.path.c_str(), 1);
    std::ofstream(dir / "worker-mode") << "hang";
    // Destroyed by exit(), in an order that nobody has thought about.
    static std::shared_ptr<Engine> engine =
        *Engine::create(hostOptions("lazy"));
    static Axpy axpy(engine);
    if (std::string wrong = axpy.run(64); !wrong.empty())
      return wrong;
    return eventually([] { return !children().empty(); }) ? "" : "no worker";
  });
}

TEST(Lifecycle, AForkedChildIsGenericOnlyUntilItHasAnEngine) {
  EXPECT_IN_CHILD([]() -> std::string {
    auto engine = *Engine::create(hostOptions("lazy"));
    Axpy axpy(engine);
    if (std::string wrong = axpy.run(64); !wrong.empty())
      return wrong;
    if (!eventually([&] { return axpy.ready(64); }))
      return "never ready";
    for (int i = 0; i < 5; ++i) {
      const std::string word = inChild([&]() -> std::string {
        for (int64_t n : {64, 5, 1000})
          if (std::string wrong = axpy.run(n); !wrong.empty())
            return wrong;
        const int64_t extents[] = {64};
        if (axpy.module->explain(0, extents).find("forked") ==
            std::string::npos)
          return "it does not know";
        if (axpy.module->announce(0, {}, 0))
          return "it takes announcements";
        if (!axpy.module->quiesce(kNsPerSecond) || !engine->events().empty())
          return "it waits for what it does not have";
        if (!children().empty())
          return "it has children";
#ifdef __SANITIZE_THREAD__ // no threads after such a fork
        return "";
#else
        return prepares(hostOptions("lazy"));
#endif
      });
      if (!word.empty())
        return "in the child: " + word;
      if (std::string wrong = axpy.run(32); !wrong.empty())
        return wrong;
    }
    return axpy.ready(64) ? "" : "the parent lost its variant";
  });
}

TEST(Lifecycle, SignalsAreTheApplications) {
  EXPECT_IN_CHILD([]() -> std::string {
    std::vector<struct sigaction> before(65), after(65);
    for (int signal = 1; signal <= 64; ++signal)
      sigaction(signal, nullptr, &before[static_cast<size_t>(signal)]);
    std::shared_ptr<Engine> engine;
    if (std::string wrong = prepares(hostOptions("lazy"), &engine);
        !wrong.empty())
      return wrong;
    for (int signal = 1; signal <= 64; ++signal) {
      sigaction(signal, nullptr, &after[static_cast<size_t>(signal)]);
      if (before[static_cast<size_t>(signal)].sa_handler !=
          after[static_cast<size_t>(signal)].sa_handler)
        return fmt::format("signal {} has another handler", signal);
    }
    size_t ours = 0;
    for (const auto &task : fs::directory_iterator("/proc/self/task")) {
      std::ifstream comm(task.path() / "comm"), status(task.path() / "status");
      std::string name, line;
      std::getline(comm, name);
      if (!name.starts_with("pgkp-"))
        continue;
      ++ours;
      while (std::getline(status, line) && !line.starts_with("SigBlk:"))
        ;
      // All but KILL and STOP, and the two of the C library.
      const uint64_t blocked = std::stoull(line.substr(8), nullptr, 16);
      for (int signal : {SIGTERM, SIGINT, SIGCHLD, SIGUSR1, SIGPROF, SIGALRM})
        if (!(blocked >> (signal - 1) & 1))
          return name + " takes signals";
    }
    return ours == 3 ? "" : "not three threads";
  });
}

TEST(Lifecycle, TheApplicationsChildrenAreItsOwn) {
  EXPECT_IN_CHILD([]() -> std::string {
    const pid_t own = fork();
    if (own == 0)
      _exit(42);
    auto engine = *Engine::create(hostOptions("lazy"));
    Axpy axpy(engine);
    if (std::string wrong = axpy.run(64); !wrong.empty())
      return wrong;
    if (!eventually([&] { return axpy.ready(64); }))
      return "never ready";
    std::vector<pid_t> workers = children();
    std::erase(workers, own);
    for (pid_t pid : workers)
      kill(pid, SIGKILL);
    // The dead worker is reaped, the application's child is left.
    if (!eventually(
            [&] { return workers.size() == 1 && kill(workers[0], 0) != 0; }))
      return "the worker was not reaped";
    int status = 0;
    return waitpid(own, &status, 0) == own && WEXITSTATUS(status) == 42
               ? ""
               : "somebody has waited for the application's child";
  });
}

TEST(Lifecycle, WithoutHomeAndWithoutFolders) {
  EXPECT_IN_CHILD([]() -> std::string {
    for (const char *name :
         {"HOME", "XDG_CACHE_HOME", "PGKP_CACHE_DIR", "TMPDIR", "PATH", "USER"})
      unsetenv(name);
    if (chdir("/proc/self/fdinfo") != 0)
      return "skip: no folder that cannot be written";
    EngineOptions options = hostOptions("lazy");
    options.cacheDir.reset();
    return prepares(options);
  });
}

TEST(Lifecycle, AnyUser) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can become somebody else";
  TempDir dir; // root's, closed to others
  const std::string program = "/proc/self/exe";
  EXPECT_IN_CHILD([&]() -> std::string {
    EngineOptions options = hostOptions("lazy");
    options.cacheDir = dir / "store";
    setenv("HOME", "/root", 1);
    if (setgroups(0, nullptr) != 0 || setresgid(31337, 31337, 31337) != 0 ||
        setresuid(31337, 31337, 31337) != 0)
      return "skip: the user cannot be changed";
    if (access(options.worker->c_str(), X_OK) != 0)
      return "skip: the build folder is closed to others";
    return prepares(options);
  });
}

TEST(Lifecycle, ReadOnlyRoot) {
  EXPECT_IN_CHILD([]() -> std::string {
    if (!enterMountNamespace())
      return "skip: no mount namespace";
    if (mount("/", "/", nullptr, MS_BIND | MS_REC, nullptr) != 0 ||
        chroot("/") != 0 ||
        mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY,
              nullptr) != 0)
      return "skip: the root cannot be made read-only";
    EngineOptions options = hostOptions("lazy");
    options.cacheDir = "/var/cache/pgkp-lifecycle-test";
    return prepares(options);
  });
}

TEST(Lifecycle, TemporaryFolderThatExecutesNothing) {
  TempDir dir;
  EXPECT_IN_CHILD([&]() -> std::string {
    if (!enterMountNamespace() || mount("tmpfs", dir.path.c_str(), "tmpfs",
                                        MS_NOEXEC | MS_NOSUID, "size=4m") != 0)
      return "skip: no mount namespace";
    setenv("TMPDIR", dir.path.c_str(), 1);
    EngineOptions options = hostOptions("lazy");
    options.cacheDir = dir / "store";
    return prepares(options);
  });
}

TEST(Lifecycle, FirstProcessOfItsNamespace) {
  EXPECT_IN_CHILD([]() -> std::string {
    if (unshare(CLONE_NEWPID) != 0)
      return "skip: no process namespace";
    return inChild([]() -> std::string {
      if (getpid() != 1)
        return "not the first process";
      auto engine = *Engine::create(hostOptions("lazy"));
      Axpy axpy(engine);
      if (std::string wrong = axpy.run(64); !wrong.empty())
        return wrong;
      // A process whose parent went becomes ours.
      const pid_t parent = fork();
      if (parent == 0) {
        if (fork() == 0) {
          usleep(100'000);
          _exit(0);
        }
        _exit(0);
      }
      waitpid(parent, nullptr, 0);
      if (!eventually([&] { return axpy.ready(64); }))
        return "never ready";
      return axpy.run(64);
    });
  });
}

TEST(Lifecycle, WithoutThreadsGenericRuns) {
  if (geteuid() != 0)
    GTEST_SKIP() << "the limit of processes binds a user with no other process";
  EXPECT_IN_CHILD([]() -> std::string {
    if (setresuid(31338, 31338, 31338) != 0)
      return "skip: the user cannot be changed";
    const rlimit one{1, 1};
    setrlimit(RLIMIT_NPROC, &one);
    for (const char *policy : {"lazy", "eager"}) {
      auto engine = Engine::create(hostOptions(policy));
      if (!engine)
        return engine.error().message;
      Axpy axpy(*engine);
      for (int64_t n : {1, 64, 17})
        if (std::string wrong = axpy.run(n); !wrong.empty())
          return wrong;
    }
    return "";
  });
}

} // namespace
