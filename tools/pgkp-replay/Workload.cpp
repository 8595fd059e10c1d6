// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Workload.h"
#include "Csv.h"
#include "KernelModule.h"
#include "Synthetic.h"

#include "base/Random.h"
#include "schema/Envelope.h"

#include <span>

namespace pgkp::rt {

static constexpr std::string_view kSynthetic = "synthetic:";

Expected<Slice> parseSlice(const std::string &text) {
  const size_t colon = text.find(':');
  Slice slice;
  if (colon == std::string::npos ||
      !parseNumber(std::string_view(text).substr(0, colon), slice.begin) ||
      !parseNumber(std::string_view(text).substr(colon + 1), slice.end) ||
      !(slice.begin >= 0 && slice.begin < slice.end && slice.end <= 1))
    return makeError(Code::invalidArgument,
                     "'{}' is no part of a trace; expected BEGIN:END with 0 <= "
                     "BEGIN < END <= 1",
                     text);
  return slice;
}

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

static Expected<Trace> loadTrace(const WorkloadOptions &options) {
  const std::string_view path = options.path;
  if (!path.starts_with(kSynthetic) && path != kSynthetic.substr(0, 9))
    return readTrace(options.path, options.format);
  PGKP_ASSIGN(
      const SyntheticOptions synthetic,
      parseSynthetic(path.substr(std::min(kSynthetic.size(), path.size()))));
  return Trace(makeSynthetic(synthetic));
}

/// Fisher-Yates over one member of the elements, the others stay.
template <typename T, typename Swap>
static void shuffle(std::vector<T> &all, uint64_t seed, Swap swapMembers) {
  SeededRandom random(seed);
  for (size_t i = all.size(); i > 1; --i)
    swapMembers(all[i - 1], all[random.below(i)]);
}

Expected<WorkloadSource> WorkloadSource::open(const WorkloadOptions &options) {
  WorkloadSource source;
  source.options = options;
  source.options.serving.entry = options.entry;
  PGKP_ASSIGN(Trace trace, loadTrace(options));
  if (const auto *kernels = std::get_if<KernelTrace>(&trace)) {
    PGKP_ASSIGN(ReplayWorkload workload, workloadOf(*kernels));
    source.module = workload.module;
    source.launches = std::move(workload.launches);
    if (options.shuffle)
      shuffle(source.launches, *options.shuffle, [](auto &a, auto &b) {
        std::swap(a.key, b.key);
        std::swap(a.seconds, b.seconds);
      });
    return source;
  }
  PGKP_ASSIGN(source.module, loadModule(options));
  if (const auto *recorded = std::get_if<ForwardTrace>(&trace)) {
    PGKP_ASSIGN(auto requests,
                bindForwards(*recorded, *source.module, options.entry));
    for (Request &request : requests) {
      ReplayRequest forward;
      forward.arrival = request.arrival;
      forward.entry = request.entry;
      forward.roots = std::move(request.roots);
      source.forwards.push_back(std::move(forward));
    }
    if (options.shuffle)
      shuffle(source.forwards, *options.shuffle, [](auto &a, auto &b) {
        std::swap(a.entry, b.entry);
        std::swap(a.roots, b.roots);
      });
    return source;
  }
  source.served = std::get<ServingTrace>(std::move(trace));
  if (options.shuffle)
    shuffle(source.served->requests, *options.shuffle, [](auto &a, auto &b) {
      std::swap(a.prompt, b.prompt);
      std::swap(a.output, b.output);
    });
  return source;
}

template <typename T>
static std::span<const T> sliceOf(const std::vector<T> &all, Slice slice) {
  const auto at = [&](double share) {
    return static_cast<size_t>(share * static_cast<double>(all.size()));
  };
  const size_t begin = at(slice.begin);
  return std::span(all).subspan(begin, at(slice.end) - begin);
}

Expected<ReplayWorkload> WorkloadSource::part(Slice slice) const {
  ReplayWorkload workload;
  workload.module = module;
  if (served) {
    ServingTrace trace;
    const auto part = sliceOf(served->requests, slice);
    trace.requests.assign(part.begin(), part.end());
    for (ServingTrace::Request &request : trace.requests)
      request.arrival -= part[0].arrival;
    if (!trace.requests.empty())
      PGKP_TRY(serve(trace, options.serving, workload));
  } else if (!launches.empty()) {
    const auto part = sliceOf(launches, slice);
    workload.launches.assign(part.begin(), part.end());
    for (ReplayLaunch &launch : workload.launches)
      launch.start -= part[0].start;
  } else {
    const auto part = sliceOf(forwards, slice);
    workload.requests.assign(part.begin(), part.end());
  }
  if (workload.requests.empty() && workload.launches.empty())
    return makeError(Code::invalidArgument,
                     "{}: nothing in the part {}:{} of the trace", options.path,
                     slice.begin, slice.end);
  return workload;
}

} // namespace pgkp::rt
