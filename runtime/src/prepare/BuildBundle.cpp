// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "prepare/BuildBundle.h"

#include "prepare/Request.h"

#include <condition_variable>
#include <mutex>
#include <optional>

namespace pgkp::rt {

namespace {
/// Outlives the call: a result could come late.
struct Waiting {
  std::mutex mutex;
  std::condition_variable arrived;
  std::optional<CompileResult> result;
};
} // namespace

static Code codeOf(JobOutcome outcome) {
  switch (outcome) {
  case JobOutcome::rejected:
    return Code::invalidArgument;
  case JobOutcome::hung:
    return Code::deadline;
  case JobOutcome::cancelled:
    return Code::cancelled;
  case JobOutcome::done:
  case JobOutcome::killed:
  case JobOutcome::unavailable:
    break;
  }
  return Code::unavailable;
}

Expected<std::vector<uint8_t>> buildBundle(Compiler &compiler,
                                           const BundleSource &source) {
  auto waiting = std::make_shared<Waiting>();
  compiler.onResult([waiting](CompileResult result) {
    std::lock_guard lock(waiting->mutex);
    waiting->result = std::move(result);
    waiting->arrived.notify_all();
  });
  if (!compiler.submit(makeBundleJob(1, source.name, source.module,
                                     source.targets, source.profile)))
    return makeError(Code::unavailable, "no worker is free to build '{}'",
                     source.name);
  std::unique_lock lock(waiting->mutex);
  waiting->arrived.wait(lock, [&] { return waiting->result.has_value(); });
  CompileResult &result = *waiting->result;
  if (result.outcome == JobOutcome::done)
    return std::move(result.payload);
  return makeError(codeOf(result.outcome), "{}", result.message);
}

Expected<std::vector<uint8_t>> buildBundle(WorkerOptions options,
                                           const BundleSource &source) {
  options.workers = 1;
  options.background = false;
  WorkerPool pool(std::move(options));
  return buildBundle(pool, source);
}

Expected<std::vector<schema::TargetT>>
parseTargets(const std::vector<std::string> &names,
             const schema::TargetT &host) {
  std::vector<schema::TargetT> targets;
  for (const std::string &name : names) {
    schema::TargetT target;
    if (name == "host") {
      target = host;
    } else if (name.starts_with("sm_") && name.size() > 4 && name.size() < 10 &&
               name.find_first_not_of("0123456789af", 3) == std::string::npos) {
      target.device = schema::DeviceKind::cuda;
      target.chip = name;
    } else {
      return makeError(Code::invalidArgument,
                       "unknown target '{}'; expected host or sm_NN", name);
    }
    targets.push_back(std::move(target));
  }
  return targets;
}

} // namespace pgkp::rt
