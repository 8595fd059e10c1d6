// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Workload.h"
#include "KernelModule.h"

#include "schema/Envelope.h"

namespace pgkp::rt {

static Expected<std::shared_ptr<const Module>>
loadModule(const WorkloadOptions &options) {
  if (options.bundle.empty())
    return makeError(Code::invalidArgument,
                     "{}: requests need --bundle=X.pgkp, which says what they "
                     "run; only kernel traces stand alone",
                     options.path);
  PGKP_ASSIGN(auto payload, readSealed(FileKind::bundle, options.bundle));
  return Module::load(std::move(payload));
}

static Status addForwards(const ForwardTrace &trace,
                          const WorkloadOptions &options,
                          ReplayWorkload &workload) {
  PGKP_ASSIGN(auto recorded,
              bindForwards(trace, *workload.module, options.entry));
  for (Request &request : recorded) {
    ReplayRequest forward;
    forward.arrival = request.arrival;
    forward.entry = request.entry;
    forward.roots = std::move(request.roots);
    workload.requests.push_back(std::move(forward));
  }
  return {};
}

Expected<ReplayWorkload> loadWorkload(const WorkloadOptions &options) {
  PGKP_ASSIGN(Trace trace, readTrace(options.path, options.format));
  if (const auto *kernels = std::get_if<KernelTrace>(&trace))
    return workloadOf(*kernels);
  ReplayWorkload workload;
  PGKP_ASSIGN(workload.module, loadModule(options));
  if (const auto *forwards = std::get_if<ForwardTrace>(&trace))
    PGKP_TRY(addForwards(*forwards, options, workload));
  else
    return makeError(Code::unsupported, "{}: no serving loop yet",
                     options.path);
  return workload;
}

} // namespace pgkp::rt
