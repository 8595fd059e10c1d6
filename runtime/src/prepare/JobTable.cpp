// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "prepare/JobTable.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <unordered_map>

namespace pgkp::rt {

struct JobTable::Impl {
  Impl(const Clock &clock, BackoffOptions backoff)
      : clock(clock), backoff(backoff) {}

  const Clock &clock;
  const BackoffOptions backoff;
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::unordered_map<Digest, JobView, DigestHash> jobs;
  JobId nextId = 1;

  /// Under the mutex. A back-off that is over counts as no job.
  JobState stateOf(const JobView &job) const {
    if (job.state == JobState::backoff && clock.now() >= job.retryAt)
      return JobState::none;
    return job.state;
  }

  TimeNs delayAfter(unsigned failures) const {
    TimeNs delay = backoff.first;
    for (unsigned i = 1; i < failures && delay < backoff.limit; ++i)
      delay *= 2;
    return std::min(delay, backoff.limit);
  }
};

JobTable::JobTable(const Clock &clock, BackoffOptions backoff)
    : impl(std::make_unique<Impl>(clock, backoff)) {}
JobTable::~JobTable() = default;

JobTable::Answer JobTable::want(const Digest &key, bool demand) {
  std::lock_guard lock(impl->mutex);
  JobView &job = impl->jobs[key];
  switch (impl->stateOf(job)) {
  case JobState::none:
    job.state = JobState::queued;
    job.id = impl->nextId++;
    job.demanded = demand;
    job.retryAt = 0;
    return {Want::start, job.id};
  case JobState::queued:
  case JobState::running:
    if (demand && !job.demanded) {
      job.demanded = true;
      return {Want::raised, job.id};
    }
    return {Want::joined, job.id};
  case JobState::ready:
    return {Want::ready};
  case JobState::backoff:
    return {Want::later};
  case JobState::refused:
    break;
  }
  return {Want::refused};
}

void JobTable::started(const Digest &key) {
  std::lock_guard lock(impl->mutex);
  if (const auto it = impl->jobs.find(key);
      it != impl->jobs.end() && it->second.state == JobState::queued)
    it->second.state = JobState::running;
}

void JobTable::withdraw(const Digest &key) {
  {
    std::lock_guard lock(impl->mutex);
    const auto it = impl->jobs.find(key);
    if (it == impl->jobs.end() || it->second.state != JobState::queued)
      return;
    it->second.state = JobState::none;
    it->second.demanded = false;
  }
  impl->changed.notify_all();
}

void JobTable::finished(const CompileResult &result) {
  {
    std::lock_guard lock(impl->mutex);
    const auto it = impl->jobs.find(result.contentKey);
    // A result of a job that was withdrawn or forgotten meanwhile says nothing
    // about a later one.
    if (it == impl->jobs.end() || it->second.id != result.id ||
        (it->second.state != JobState::queued &&
         it->second.state != JobState::running))
      return;
    JobView &job = it->second;
    job.demanded = false;
    switch (result.outcome) {
    case JobOutcome::done:
      job.state = JobState::ready;
      job.failures = 0;
      job.reason.clear();
      break;
    case JobOutcome::cancelled:
      job.state = JobState::none;
      break;
    case JobOutcome::rejected:
      job.state = JobState::refused;
      ++job.failures;
      job.reason = result.message;
      break;
    case JobOutcome::killed:
    case JobOutcome::hung:
    case JobOutcome::unavailable:
      job.state = JobState::backoff;
      job.retryAt = impl->clock.now() + impl->delayAfter(++job.failures);
      job.reason = result.message;
      break;
    }
  }
  impl->changed.notify_all();
}

void JobTable::markReady(const Digest &key) {
  {
    std::lock_guard lock(impl->mutex);
    JobView &job = impl->jobs[key];
    job = JobView();
    job.state = JobState::ready;
  }
  impl->changed.notify_all();
}

void JobTable::forget(const Digest &key) {
  {
    std::lock_guard lock(impl->mutex);
    impl->jobs.erase(key);
  }
  impl->changed.notify_all();
}

JobView JobTable::view(const Digest &key) const {
  std::lock_guard lock(impl->mutex);
  const auto it = impl->jobs.find(key);
  if (it == impl->jobs.end())
    return {};
  JobView job = it->second;
  job.state = impl->stateOf(job);
  return job;
}

JobState JobTable::wait(const Digest &key, TimeNs deadline) const {
  std::unique_lock lock(impl->mutex);
  for (;;) {
    const auto it = impl->jobs.find(key);
    if (it == impl->jobs.end())
      return JobState::none;
    const JobState state = impl->stateOf(it->second);
    if (state != JobState::queued && state != JobState::running)
      return state;
    const TimeNs left = deadline - impl->clock.now();
    if (deadline != kForever && left <= 0)
      return state;
    // The clock need not be the one that sleeping follows, so look again now
    // and then.
    const TimeNs nap = deadline == kForever
                           ? 20 * kNsPerMs
                           : std::min<TimeNs>(left, 20 * kNsPerMs);
    impl->changed.wait_for(lock, std::chrono::nanoseconds(nap));
  }
}

std::vector<JobTable::Failure> JobTable::failures() const {
  std::vector<Failure> result;
  {
    std::lock_guard lock(impl->mutex);
    for (const auto &[key, job] : impl->jobs)
      if (const JobState state = impl->stateOf(job);
          state == JobState::backoff || state == JobState::refused)
        result.push_back({key, job});
  }
  std::sort(result.begin(), result.end(),
            [](const Failure &l, const Failure &r) { return l.key < r.key; });
  return result;
}

} // namespace pgkp::rt
