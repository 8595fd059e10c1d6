// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "prepare/WorkerPool.h"

#include "base/Failpoint.h"
#include "base/File.h"
#include "base/Log.h"
#include "base/Thread.h"
#include "prepare/Process.h"
#include "prepare/Request.h"
#include "schema/Frame.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace pgkp::rt {

// After its socket closed, a worker has this long to end and tell its exit
// status.
static constexpr TimeNs kGrace = 300 * kNsPerMs;
// Stopping: idle workers get kGrace, all of them this long to be reaped.
static constexpr TimeNs kStopLimit = 1500 * kNsPerMs;
// A job at idle priority on a busy machine hardly runs. It is not hung for
// that, unless it takes this many times its limit.
static constexpr int kStarvedFactor = 10;
static constexpr size_t kErrorTailBytes = 4096;

namespace {

enum class Source : uint64_t { command, socket, process, errors };

/// Why we ended a worker; what happens to its job and to the counters follows
/// from it.
enum class Ending : uint8_t { none, hung, cancelled, garbage, skewed, retired };

struct Worker {
  uint64_t serial = 0;
  Child child;
  bool socketClosed = false;
  Ending ending = Ending::none;
  TimeNs killAt = kForever; ///< when grace is over

  std::optional<CompileJob> job;
  TimeNs started = 0, limit = 0, deadline = kForever;
  double cpuBefore = 0;
  bool urgent = false;      ///< raised for this job
  TimeNs idleSince = 0;     ///< while it has no job
  std::vector<uint8_t> out; ///< header and request, from `sent` on
  size_t sent = 0;
  std::vector<uint8_t> in;
  unsigned jobsDone = 0;
  std::string errorTail;

  /// No descriptor tells that it ended, or the telling may have gone wrong.
  bool needsPolling() const { return !child.pidfd || ending != Ending::none; }
  bool takesJobs() const {
    return !job && ending == Ending::none && !socketClosed;
  }
};

bool injected(std::string_view name) {
  if (const int value = failpoint(name)) {
    errno = value;
    return true;
  }
  return false;
}

/// What a program's file is, so that a replaced one is noticed.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  time_t seconds = 0;
  long nanoseconds = 0;
  bool operator==(const FileIdentity &) const = default;
};

FileIdentity identify(const std::string &path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0)
    return {};
  return {info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
          info.st_mtim.tv_nsec};
}

/// The line of standard error that says most about a crash.
std::string lastWords(const std::string &tail) {
  static constexpr std::string_view telling[] = {"LLVM ERROR", "Assertion",
                                                 "terminate called", "ERROR:"};
  std::string_view last, best;
  for (size_t start = 0; start < tail.size();) {
    const size_t end = std::min(tail.find('\n', start), tail.size());
    const std::string_view line(tail.data() + start, end - start);
    if (!line.empty())
      last = line;
    for (std::string_view word : telling)
      if (best.empty() && line.find(word) != std::string_view::npos)
        best = line;
    start = end + 1;
  }
  std::string result(best.empty() ? last : best);
  result.resize(std::min<size_t>(result.size(), 400));
  for (char &c : result)
    if (static_cast<unsigned char>(c) < ' ')
      c = ' ';
  return result;
}

} // namespace

struct WorkerPool::Impl {
  explicit Impl(WorkerOptions given) : options(std::move(given)) {}

  const WorkerOptions options;
  const SteadyClock clock;
  const pid_t owner = getpid();

  // Shared with callers.
  mutable std::mutex mutex;
  Callback callback;
  std::deque<CompileJob> submitted;
  std::vector<JobId> cancelled, raised;
  std::vector<pid_t> pids;
  std::string producer;
  bool stopping = false;
  std::unique_ptr<std::thread> thread; ///< null before the first job
  UniqueFd wake, epoll;
  std::atomic<unsigned> outstanding{0}, limit{~0u};
  std::atomic<uint64_t> started{0}, killed{0}, hung{0}, restarts{0}, garbage{0},
      skewed{0};

  // The thread's own.
  std::vector<std::unique_ptr<Worker>> workers;
  uint64_t nextSerial = 1;
  unsigned lost = 0; ///< to be replaced, for `restarts`
  std::string path;  ///< of the worker, as resolved at the last start
  /// The program that gave an identity which a job did not expect.
  std::optional<FileIdentity> skewedFile;
  std::string skewedProducer;
  TimeNs nextCheck = 0; ///< of the idle workers
  bool serving = true;
  bool saidUnavailable = false;

  bool startThread();
  void serve();
  void wakeUp() const;
  bool handleCommands();
  void cancelJob(JobId id);
  void raiseJob(JobId id);
  void assign(CompileJob job);
  Expected<Worker *> takeWorker(const CompileJob &job);
  void refuse(const CompileJob &job, JobOutcome outcome, std::string message);
  Expected<Worker *> start();
  void watch(Worker &worker, bool forWriting) const;
  void onSocket(Worker &worker);
  void send(Worker &worker);
  void receive(Worker &worker);
  void onFrame(Worker &worker, std::span<const uint8_t> frame);
  void onErrors(Worker &worker);
  void onGarbage(Worker &worker, const std::string &reason);
  void onSkew(Worker &worker, const std::string &found);
  bool tryReap(Worker &worker);
  void onDeadlines(TimeNs now);
  void end(Worker &worker, Ending ending);
  void retire(Worker &worker);
  void checkIdle(TimeNs now);
  void stopAll();
  void reportPids();
  void deliver(CompileResult result);
  void deliverFor(Worker &worker, JobOutcome outcome, std::string message);
  Worker *find(uint64_t serial);
  TimeNs nextDeadline() const;
};

WorkerPool::WorkerPool(WorkerOptions options)
    : impl(std::make_unique<Impl>(std::move(options))) {}

WorkerPool::~WorkerPool() {
  if (getpid() != impl->owner) {
    // After fork there is no such thread here, the workers are not ours, and
    // the mutex may have been held by a thread that is not here either.
    (void)impl->thread.release();
    return;
  }
  std::unique_ptr<std::thread> thread;
  {
    std::lock_guard lock(impl->mutex);
    impl->stopping = true;
    thread = std::move(impl->thread);
  }
  if (!thread)
    return;
  impl->wakeUp();
  thread->join();
}

void WorkerPool::onResult(Callback callback) {
  std::lock_guard lock(impl->mutex);
  impl->callback = std::move(callback);
}

bool WorkerPool::submit(CompileJob job) {
  if (getpid() != impl->owner)
    return false;
  std::unique_lock lock(impl->mutex);
  if (impl->stopping ||
      impl->outstanding >= std::min(impl->options.workers, impl->limit.load()))
    return false;
  ++impl->outstanding;
  if (!impl->thread && !impl->startThread()) {
    lock.unlock();
    impl->refuse(job, JobOutcome::unavailable,
                 "no thread can be started to serve workers");
    return true;
  }
  impl->submitted.push_back(std::move(job));
  impl->wakeUp();
  return true;
}

void WorkerPool::cancel(JobId id) {
  if (getpid() != impl->owner)
    return;
  std::lock_guard lock(impl->mutex);
  if (!impl->thread)
    return;
  impl->cancelled.push_back(id);
  impl->wakeUp();
}

void WorkerPool::raise(JobId id) {
  if (getpid() != impl->owner)
    return;
  std::lock_guard lock(impl->mutex);
  if (!impl->thread)
    return;
  impl->raised.push_back(id);
  impl->wakeUp();
}

unsigned WorkerPool::capacity() const { return impl->options.workers; }
unsigned WorkerPool::running() const { return impl->outstanding; }
void WorkerPool::setLimit(unsigned jobs) { impl->limit = jobs; }

WorkerCounts WorkerPool::counts() const {
  WorkerCounts counts;
  counts.started = impl->started;
  counts.killed = impl->killed;
  counts.hung = impl->hung;
  counts.restarts = impl->restarts;
  counts.garbage = impl->garbage;
  counts.skewed = impl->skewed;
  return counts;
}

std::vector<pid_t> WorkerPool::pids() const {
  std::lock_guard lock(impl->mutex);
  return impl->pids;
}

std::string WorkerPool::producer() const {
  std::lock_guard lock(impl->mutex);
  return impl->producer;
}

// Under the mutex.
bool WorkerPool::Impl::startThread() {
  wake.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll.reset(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(Source::command);
  if (!wake || !epoll ||
      epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    log(LogLevel::warning, "cannot serve workers: {}", std::strerror(errno));
    return false;
  }
  std::thread started =
      pgkp::rt::startThread("pgkp-workers", [this] { serve(); });
  if (!started.joinable()) {
    log(LogLevel::warning, "cannot serve workers: no thread can be started");
    return false;
  }
  thread = std::make_unique<std::thread>(std::move(started));
  return true;
}

void WorkerPool::Impl::wakeUp() const {
  const uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(wake.get(), &one, sizeof one);
}

Worker *WorkerPool::Impl::find(uint64_t serial) {
  for (const auto &worker : workers)
    if (worker->serial == serial)
      return worker.get();
  return nullptr;
}

TimeNs WorkerPool::Impl::nextDeadline() const {
  TimeNs next = kForever;
  for (const auto &worker : workers) {
    next = std::min({next, worker->deadline, worker->killAt});
    if (worker->takesJobs())
      next = std::min(next, nextCheck);
    if (worker->needsPolling())
      next = std::min(next, clock.now() + 50 * kNsPerMs);
  }
  return next;
}

static uint64_t tag(uint64_t serial, Source source) {
  return serial << 2 | static_cast<uint64_t>(source);
}

void WorkerPool::Impl::serve() {
  std::vector<epoll_event> events(64);
  while (serving) {
    const TimeNs next = nextDeadline();
    int timeout = -1;
    if (next != kForever)
      timeout = static_cast<int>(std::clamp<TimeNs>(
          (next - clock.now() + kNsPerMs - 1) / kNsPerMs, 0, 60'000));
    const int count = epoll_wait(epoll.get(), events.data(),
                                 static_cast<int>(events.size()), timeout);
    for (int i = 0; i < count; ++i) {
      const auto source = static_cast<Source>(events[i].data.u64 & 3);
      if (source == Source::command) {
        uint64_t ignored;
        [[maybe_unused]] ssize_t got =
            read(wake.get(), &ignored, sizeof ignored);
        continue;
      }
      // An earlier event of this round may have removed it.
      Worker *worker = find(events[i].data.u64 >> 2);
      if (!worker)
        continue;
      switch (source) {
      case Source::socket:
        onSocket(*worker);
        break;
      case Source::errors:
        onErrors(*worker);
        break;
      case Source::process:
        tryReap(*worker);
        break;
      case Source::command:
        break;
      }
    }
    for (size_t i = workers.size(); i-- > 0;)
      if (workers[i]->needsPolling())
        tryReap(*workers[i]);
    onDeadlines(clock.now());
    if (const TimeNs now = clock.now(); now >= nextCheck) {
      nextCheck = now + options.checkPeriod;
      checkIdle(now);
    }
    if (!handleCommands())
      stopAll();
  }
}

/// \returns false when it is time to stop.
bool WorkerPool::Impl::handleCommands() {
  for (;;) {
    std::optional<CompileJob> job;
    std::vector<JobId> toCancel, toRaise;
    {
      std::lock_guard lock(mutex);
      if (stopping)
        return false;
      toCancel.swap(cancelled);
      if (toCancel.empty() && submitted.empty())
        toRaise.swap(raised); // when all of them have a worker
      if (toCancel.empty() && toRaise.empty() && submitted.empty())
        return true;
      if (toCancel.empty() && !submitted.empty()) {
        job = std::move(submitted.front());
        submitted.pop_front();
      }
    }
    for (JobId id : toCancel)
      cancelJob(id);
    for (JobId id : toRaise)
      raiseJob(id);
    if (job)
      assign(std::move(*job));
  }
}

void WorkerPool::Impl::cancelJob(JobId id) {
  for (const auto &worker : workers)
    if (worker->job && worker->job->id == id) {
      deliverFor(*worker, JobOutcome::cancelled, "cancelled");
      end(*worker, Ending::cancelled);
      return;
    }
  std::optional<CompileJob> waiting;
  {
    std::lock_guard lock(mutex);
    const auto it =
        std::find_if(submitted.begin(), submitted.end(),
                     [&](const CompileJob &job) { return job.id == id; });
    if (it == submitted.end())
      return;
    waiting = std::move(*it);
    submitted.erase(it);
  }
  refuse(*waiting, JobOutcome::cancelled, "cancelled");
}

void WorkerPool::Impl::raiseJob(JobId id) {
  for (const auto &worker : workers)
    if (options.background && worker->job && worker->job->id == id)
      worker->urgent = setUrgent(worker->child, true);
}

/// The result of a job that no worker has had.
void WorkerPool::Impl::refuse(const CompileJob &job, JobOutcome outcome,
                              std::string message) {
  CompileResult result;
  result.id = job.id;
  result.contentKey = job.contentKey;
  result.outcome = outcome;
  result.message = std::move(message);
  result.started = result.finished = clock.now();
  deliver(std::move(result));
}

static bool isBundleRequest(const CompileJob &job) {
  return flatbuffers::GetRoot<schema::RequestMessage>(job.request.data())
             ->request_type() == schema::Request::BundleRequest;
}

void WorkerPool::Impl::assign(CompileJob job) {
  if (job.request.size() > kMaxFrameBytes)
    return refuse(job, JobOutcome::rejected,
                  fmt::format("'{}' is a request of {} bytes; a worker takes "
                              "{} at most",
                              job.label, job.request.size(), kMaxFrameBytes));
  Expected<Worker *> found = takeWorker(job);
  if (!found) {
    if (!std::exchange(saidUnavailable, true))
      log(LogLevel::warning, "no kernels are prepared, generic ones run: {}",
          found.error().message);
    return refuse(job, JobOutcome::unavailable, found.error().message);
  }
  Worker *worker = *found;
  worker->started = clock.now();
  worker->limit =
      isBundleRequest(job) ? options.bundleTimeout : options.jobTimeout;
  worker->deadline = worker->started + worker->limit;
  worker->cpuBefore = cpuSecondsOf(worker->child);
  // Should we be stopped ourselves, nobody else would end a loop in there.
  limitCpu(worker->child,
           1 + toSeconds(worker->limit) *
                   static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)));
  FrameHeader header;
  header.size = job.request.size();
  worker->out.resize(sizeof header + job.request.size());
  std::memcpy(worker->out.data(), &header, sizeof header);
  std::copy(job.request.begin(), job.request.end(),
            worker->out.begin() + sizeof header);
  worker->sent = 0;
  worker->in.clear();
  worker->job = std::move(job);
  send(*worker);
}

static std::string skewText(const std::string &path, const std::string &found,
                            const std::string &expected) {
  return fmt::format("worker '{}' is '{}', the bundle was built by '{}'; build "
                     "the bundle again or set PGKP_WORKER",
                     path, found, expected);
}

/// An idle one, else a new one.
Expected<Worker *> WorkerPool::Impl::takeWorker(const CompileJob &job) {
  checkIdle(clock.now());
  path = options.path;
  if (path.empty()) {
    PGKP_ASSIGN(path, findWorker());
  }
  // Until somebody puts another program there.
  if (skewedFile && *skewedFile != identify(path))
    skewedFile.reset();
  if (skewedFile && !job.producer.empty() && job.producer != skewedProducer)
    return makeError(Code::unavailable, "{}",
                     skewText(path, skewedProducer, job.producer));
  for (size_t i = workers.size(); i-- > 0;)
    if (workers[i]->takesJobs())
      return workers[i].get(); // the warmest
  return start();
}

Expected<Worker *> WorkerPool::Impl::start() {
  SpawnOptions spawning;
  spawning.path = path;
  spawning.environment = options.workerEnvironment();
  spawning.memoryMib = options.memoryMib;
  spawning.background = options.background;
  PGKP_ASSIGN(Child child, spawn(spawning));
  workers.push_back(std::make_unique<Worker>());
  Worker *result = workers.back().get();
  result->child = std::move(child);
  result->serial = nextSerial++;
  auto add = [&](int fd, Source source) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = tag(result->serial, source);
    return fd < 0 || epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  };
  ++started;
  if (lost > 0) {
    --lost;
    ++restarts;
  }
  if (!add(result->child.socket.get(), Source::socket) ||
      !add(result->child.errors.get(), Source::errors) ||
      !add(result->child.pidfd.get(), Source::process)) {
    const int failure = errno;
    end(*result, Ending::retired);
    return makeErrnoError(failure, "cannot watch a worker");
  }
  reportPids();
  return result;
}

void WorkerPool::Impl::watch(Worker &worker, bool forWriting) const {
  epoll_event event{};
  event.events = EPOLLIN | (forWriting ? static_cast<uint32_t>(EPOLLOUT) : 0);
  event.data.u64 = tag(worker.serial, Source::socket);
  epoll_ctl(epoll.get(), EPOLL_CTL_MOD, worker.child.socket.get(), &event);
}

void WorkerPool::Impl::onSocket(Worker &worker) {
  if (worker.sent < worker.out.size())
    send(worker);
  receive(worker);
}

void WorkerPool::Impl::send(Worker &worker) {
  while (worker.sent < worker.out.size()) {
    const ssize_t put =
        injected("worker.send")
            ? -1
            : ::send(worker.child.socket.get(), worker.out.data() + worker.sent,
                     worker.out.size() - worker.sent, MSG_NOSIGNAL);
    if (put < 0) {
      if (errno == EINTR)
        continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        watch(worker, true);
        return;
      }
      break; // it is gone; the end of its stream or of the process tells
    }
    worker.sent += static_cast<size_t>(put);
  }
  // A worker whose socket failed under it gets the grace of one that closed it.
  if (worker.sent < worker.out.size())
    worker.killAt = std::min(worker.killAt, clock.now() + kGrace);
  worker.out.clear();
  worker.sent = 0;
  watch(worker, false);
}

void WorkerPool::Impl::receive(Worker &worker) {
  // Read in pieces: the announced size alone must not make us allocate it.
  uint8_t piece[64 << 10];
  while (!worker.socketClosed && worker.ending == Ending::none) {
    const ssize_t got =
        injected("worker.recv")
            ? -1
            : recv(worker.child.socket.get(), piece, sizeof piece, 0);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    if (got <= 0) {
      worker.socketClosed = true;
      worker.killAt = std::min(worker.killAt, clock.now() + kGrace);
      epoll_ctl(epoll.get(), EPOLL_CTL_DEL, worker.child.socket.get(), nullptr);
      return;
    }
    if (!worker.job) {
      onGarbage(worker, "it spoke without being asked");
      return;
    }
    worker.in.insert(worker.in.end(), piece, piece + got);
    FrameHeader header;
    if (worker.in.size() < sizeof header)
      continue;
    std::memcpy(&header, worker.in.data(), sizeof header);
    if (Status status = checkFrameHeader(header); !status) {
      onGarbage(worker, status.error().message);
      return;
    }
    const size_t whole = sizeof header + header.size;
    if (worker.in.size() < whole)
      continue;
    if (worker.in.size() > whole) {
      onGarbage(worker, "it said more than one answer");
      return;
    }
    // Alone in its buffer: FlatBuffers must start at the allocator's alignment.
    const std::vector<uint8_t> frame(worker.in.begin() + sizeof header,
                                     worker.in.end());
    worker.in.clear();
    onFrame(worker, frame);
  }
}

void WorkerPool::Impl::onFrame(Worker &worker, std::span<const uint8_t> frame) {
  Expected<CompileResult> result = verifyAnswer(*worker.job, frame);
  if (!result) {
    onGarbage(worker, result.error().message);
    return;
  }
  const std::string &expected = worker.job->producer;
  if (!expected.empty() && result->producer != expected) {
    onSkew(worker, result->producer);
    return;
  }
  result->started = worker.started;
  result->finished = clock.now();
  // It may report less than it used, but not more than the machine could give.
  const double wall = toSeconds(result->finished - result->started);
  const double most = wall * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  result->cpuSeconds = std::max(std::min(result->cpuSeconds, most),
                                cpuSecondsOf(worker.child) - worker.cpuBefore);
  worker.job.reset();
  worker.deadline = kForever;
  worker.idleSince = result->finished;
  worker.errorTail.clear();
  ++worker.jobsDone;
  if (std::exchange(worker.urgent, false))
    setUrgent(worker.child, false);
  if (worker.jobsDone >= options.jobsPerWorker ||
      result->peakRssKib > options.recycleRssKib)
    retire(worker);
  {
    std::lock_guard lock(mutex);
    producer = result->producer;
  }
  deliver(std::move(*result));
}

void WorkerPool::Impl::onErrors(Worker &worker) {
  char piece[4096];
  for (;;) {
    const ssize_t got = read(worker.child.errors.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return;
    if (got == 0) {
      epoll_ctl(epoll.get(), EPOLL_CTL_DEL, worker.child.errors.get(), nullptr);
      return;
    }
    worker.errorTail.append(piece, static_cast<size_t>(got));
    // The first lines of a crash say why, the rest is the stack: keep the
    // start.
    if (worker.errorTail.size() > kErrorTailBytes)
      worker.errorTail.resize(kErrorTailBytes);
    if (logEnabled(LogLevel::debug))
      log(LogLevel::debug, "worker {}: {}", worker.child.pid,
          std::string_view(piece, static_cast<size_t>(got)));
  }
}

void WorkerPool::Impl::onGarbage(Worker &worker, const std::string &reason) {
  ++garbage;
  ++lost;
  log(LogLevel::warning, "worker {} gave a wrong answer and is killed: {}",
      worker.child.pid, reason);
  end(worker, Ending::garbage);
  if (worker.job)
    deliverFor(worker, JobOutcome::rejected,
               fmt::format("the worker's answer to '{}' is wrong: {}",
                           worker.job->label, reason));
}

/// It is not the build that the bundle was made by. Said once; no job of that
/// bundle is given to this program again.
void WorkerPool::Impl::onSkew(Worker &worker, const std::string &found) {
  ++skewed;
  skewedFile = identify(path);
  skewedProducer = found;
  const std::string text = skewText(path, found, worker.job->producer);
  log(LogLevel::warning, "{}", text);
  saidUnavailable = true; // so no other line
  end(worker, Ending::skewed);
  deliverFor(worker, JobOutcome::unavailable, text);
}

/// Kills it. Its job, if any, is the caller's to deliver.
void WorkerPool::Impl::end(Worker &worker, Ending ending) {
  worker.ending = ending;
  worker.deadline = worker.killAt = kForever;
  epoll_ctl(epoll.get(), EPOLL_CTL_DEL, worker.child.socket.get(), nullptr);
  killGroup(worker.child);
}

/// Lets it leave by itself.
void WorkerPool::Impl::retire(Worker &worker) {
  worker.ending = Ending::retired;
  worker.killAt = clock.now() + kGrace;
  shutdown(worker.child.socket.get(), SHUT_RDWR);
  epoll_ctl(epoll.get(), EPOLL_CTL_DEL, worker.child.socket.get(), nullptr);
}

/// Those that somebody stopped would hang a job, and be counted only then;
/// those that have had nothing to do for long keep memory from others.
void WorkerPool::Impl::checkIdle(TimeNs now) {
  for (const auto &worker : workers) {
    if (!worker->takesJobs())
      continue;
    if (isStopped(worker->child)) {
      ++hung;
      ++lost;
      end(*worker, Ending::hung);
    } else if (now - worker->idleSince >= options.idleTimeout) {
      retire(*worker);
    }
  }
}

/// For a job that wants to run, its limit is one of CPU time.
static TimeNs extendedDeadline(const Worker &worker, TimeNs now) {
  const TimeNs used =
      fromSeconds(cpuSecondsOf(worker.child) - worker.cpuBefore);
  if (used >= worker.limit || !isRunnable(worker.child))
    return worker.deadline;
  return std::min(now + worker.limit - used,
                  worker.started + kStarvedFactor * worker.limit);
}

void WorkerPool::Impl::onDeadlines(TimeNs now) {
  for (const auto &worker : workers) {
    if (now >= worker->deadline && worker->job)
      worker->deadline = extendedDeadline(*worker, now);
    if (now >= worker->deadline) {
      ++hung;
      ++lost;
      const TimeNs limit = worker->limit;
      end(*worker, Ending::hung);
      if (worker->job)
        deliverFor(*worker, JobOutcome::hung,
                   fmt::format("worker gave no answer within {:g} s while "
                               "building '{}'",
                               toSeconds(limit), worker->job->label));
    } else if (now >= worker->killAt) {
      worker->killAt = kForever;
      killGroup(worker->child);
    }
  }
}

/// \returns true if the worker ended; then it does not exist any more.
bool WorkerPool::Impl::tryReap(Worker &worker) {
  // It may have answered before it ended.
  if (!worker.socketClosed)
    receive(worker);
  onErrors(worker);
  const std::optional<Exit> exit = reap(worker.child);
  if (!exit)
    return false;
  if (worker.ending == Ending::none) {
    ++killed;
    ++lost;
    const std::string words = lastWords(worker.errorTail);
    if (worker.job) {
      const double cpu = exit->cpuSeconds - worker.cpuBefore;
      CompileResult result;
      result.id = worker.job->id;
      result.contentKey = worker.job->contentKey;
      result.outcome = JobOutcome::killed;
      result.message = fmt::format("worker died while building '{}': it {}{}{}",
                                   worker.job->label, exit->text(),
                                   words.empty() ? "" : ": ", words);
      result.started = worker.started;
      result.finished = clock.now();
      result.cpuSeconds = std::max(cpu, 0.0);
      worker.job.reset();
      deliver(std::move(result));
    } else {
      log(LogLevel::info, "idle worker {} {}", worker.child.pid, exit->text());
    }
  }
  std::erase_if(workers,
                [&](const auto &other) { return other.get() == &worker; });
  reportPids();
  return true;
}

void WorkerPool::Impl::reportPids() {
  std::lock_guard lock(mutex);
  pids.clear();
  for (const auto &worker : workers)
    if (worker->ending == Ending::none)
      pids.push_back(worker->child.pid);
}

void WorkerPool::Impl::deliverFor(Worker &worker, JobOutcome outcome,
                                  std::string message) {
  CompileResult result;
  result.id = worker.job->id;
  result.contentKey = worker.job->contentKey;
  result.outcome = outcome;
  result.message = std::move(message);
  result.started = worker.started;
  result.finished = clock.now();
  result.cpuSeconds =
      std::max(cpuSecondsOf(worker.child) - worker.cpuBefore, 0.0);
  worker.job.reset();
  worker.deadline = kForever;
  deliver(std::move(result));
}

void WorkerPool::Impl::deliver(CompileResult result) {
  Callback target;
  {
    std::lock_guard lock(mutex);
    target = callback;
  }
  // Free before the caller hears of it, so that it can submit the next job at
  // once.
  --outstanding;
  if (target)
    target(std::move(result));
}

void WorkerPool::Impl::stopAll() {
  const TimeNs begin = clock.now();
  for (size_t i = workers.size(); i-- > 0;)
    tryReap(*workers[i]); // those that died just now were not cancelled
  for (const auto &worker : workers) {
    if (worker->ending == Ending::none && isStopped(worker->child)) {
      ++hung;
      if (worker->job)
        deliverFor(*worker, JobOutcome::hung, "worker was stopped");
      end(*worker, Ending::hung);
    } else if (worker->job) {
      deliverFor(*worker, JobOutcome::cancelled, "cancelled: the pool stops");
      end(*worker, Ending::cancelled);
    } else if (worker->ending == Ending::none) {
      if (worker->socketClosed)
        continue; // it died by itself, and is counted below
      retire(*worker);
    }
  }
  for (;;) {
    std::optional<CompileJob> job;
    {
      std::lock_guard lock(mutex);
      if (submitted.empty())
        break;
      job = std::move(submitted.front());
      submitted.pop_front();
    }
    refuse(*job, JobOutcome::cancelled, "cancelled: the pool stops");
  }
  while (!workers.empty() && clock.now() - begin < kStopLimit) {
    for (size_t i = workers.size(); i-- > 0;)
      tryReap(*workers[i]);
    onDeadlines(clock.now());
    if (!workers.empty()) {
      const timespec pause{0, 2'000'000};
      nanosleep(&pause, nullptr);
    }
  }
  if (!workers.empty())
    log(LogLevel::warning, "{} workers did not end in time", workers.size());
  serving = false;
}

} // namespace pgkp::rt
