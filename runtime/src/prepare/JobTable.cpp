// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "prepare/JobTable.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

namespace pgkp::rt {

namespace {
/// A compilation, known to the compiler by the number of the first that wanted
/// it, which may have left meanwhile.
struct Flight {
  Digest contentKey;
  std::vector<JobId> waiting;
  bool raised = false;
};
} // namespace

struct JobTable::Impl {
  std::unique_ptr<Compiler> compiler;
  mutable std::mutex mutex; ///< never held while the compiler is called back
  Callback callback;
  std::map<JobId, Flight> flights; ///< by the compiler's number
  std::unordered_map<Digest, JobId, DigestHash> byKey;
  uint64_t joined = 0;

  /// Under the mutex. The flight that `id` waits for.
  std::map<JobId, Flight>::iterator find(JobId id) {
    return std::find_if(flights.begin(), flights.end(), [&](const auto &entry) {
      const std::vector<JobId> &waiting = entry.second.waiting;
      return std::find(waiting.begin(), waiting.end(), id) != waiting.end();
    });
  }

  bool join(const CompileJob &job);
  void finish(CompileResult result);
};

/// \returns false if nobody compiles the key.
bool JobTable::Impl::join(const CompileJob &job) {
  const auto known = byKey.find(job.contentKey);
  if (known == byKey.end())
    return false;
  flights.at(known->second).waiting.push_back(job.id);
  ++joined;
  return true;
}

void JobTable::Impl::finish(CompileResult result) {
  std::vector<JobId> waiting;
  Callback target;
  {
    std::lock_guard lock(mutex);
    const auto flight = flights.find(result.id);
    if (flight == flights.end())
      return;
    waiting = std::move(flight->second.waiting);
    byKey.erase(flight->second.contentKey);
    flights.erase(flight);
    target = callback;
  }
  if (!target)
    return;
  for (size_t i = 0; i < waiting.size(); ++i) {
    CompileResult own = i + 1 < waiting.size() ? result : std::move(result);
    own.id = waiting[i];
    if (i > 0)
      own.cpuSeconds = 0; // it was spent once
    target(std::move(own));
  }
}

JobTable::JobTable(std::unique_ptr<Compiler> compiler)
    : impl(std::make_unique<Impl>()) {
  impl->compiler = std::move(compiler);
  impl->compiler->onResult([table = impl.get()](CompileResult result) {
    table->finish(std::move(result));
  });
}

JobTable::~JobTable() { impl->compiler.reset(); }

void JobTable::onResult(Callback callback) {
  std::lock_guard lock(impl->mutex);
  impl->callback = std::move(callback);
}

bool JobTable::submit(CompileJob job) {
  const JobId id = job.id;
  const Digest key = job.contentKey;
  {
    std::lock_guard lock(impl->mutex);
    if (impl->join(job))
      return true;
    // Entered first: the result may be there before submit returns.
    impl->flights[id] = {key, {id}};
    if (!key.isZero())
      impl->byKey[key] = id;
  }
  if (impl->compiler->submit(std::move(job)))
    return true;
  // Whoever joined in this moment was accepted, and is told that it was not to
  // be.
  CompileResult result;
  result.id = id;
  result.contentKey = key;
  result.outcome = JobOutcome::cancelled;
  result.message = "cancelled: no worker was free";
  {
    std::lock_guard lock(impl->mutex);
    std::erase(impl->flights.at(id).waiting, id);
  }
  impl->finish(std::move(result));
  return false;
}

void JobTable::cancel(JobId id) {
  CompileResult result;
  JobId last = 0;
  Callback target;
  {
    std::lock_guard lock(impl->mutex);
    const auto flight = impl->find(id);
    if (flight == impl->flights.end())
      return;
    if (flight->second.waiting.size() == 1) {
      last = flight->first;
    } else {
      std::erase(flight->second.waiting, id);
      result.contentKey = flight->second.contentKey;
      target = impl->callback;
    }
  }
  if (last != 0) {
    impl->compiler->cancel(last);
  } else if (target) {
    result.id = id;
    result.outcome = JobOutcome::cancelled;
    result.message = "cancelled";
    target(std::move(result));
  }
}

void JobTable::raise(JobId id) {
  JobId raised;
  {
    std::lock_guard lock(impl->mutex);
    const auto flight = impl->find(id);
    if (flight == impl->flights.end() ||
        std::exchange(flight->second.raised, true))
      return;
    raised = flight->first;
  }
  impl->compiler->raise(raised);
}

unsigned JobTable::capacity() const { return impl->compiler->capacity(); }
unsigned JobTable::running() const { return impl->compiler->running(); }
void JobTable::setLimit(unsigned jobs) { impl->compiler->setLimit(jobs); }

std::vector<JobTable::Job> JobTable::jobs() const {
  std::lock_guard lock(impl->mutex);
  std::vector<Job> result;
  for (const auto &[id, flight] : impl->flights)
    result.push_back(
        {id, flight.contentKey, flight.waiting.size(), flight.raised});
  return result;
}

uint64_t JobTable::joined() const {
  std::lock_guard lock(impl->mutex);
  return impl->joined;
}

} // namespace pgkp::rt
