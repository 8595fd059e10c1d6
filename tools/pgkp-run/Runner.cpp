// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runner.h"

#include "Npy.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

namespace pgkp::rt {

namespace {

/// The state of one entry's arguments.
struct EntryState {
  std::vector<Tensor> args;    ///< of the current request
  std::vector<Tensor> results; ///< of the last request
  std::vector<bool> seeded;    ///< persistent arguments that hold something
  std::vector<bool> dumped; ///< persistent arguments whose content is on disk
};

Expected<std::vector<int64_t>> evaluateShape(const std::vector<Expr> &shape,
                                             std::span<const int64_t> roots,
                                             const std::string &what) {
  std::vector<int64_t> extents;
  for (const Expr &expr : shape) {
    const auto value = expr.evaluate(roots);
    if (!value || *value < 0)
      return makeError(Code::invalidArgument,
                       "{}: the extents [{}] give no valid shape", what,
                       fmt::join(roots, ", "));
    extents.push_back(*value);
  }
  return extents;
}

} // namespace

struct Runner::Impl {
  std::shared_ptr<LoadedModule> module;
  RunnerOptions options;
  std::unique_ptr<Context> context, reference;
  std::vector<EntryState> entries;

  /// A tensor's content depends on seed, entry, argument and request alone.
  SeededRandom random(uint32_t entry, size_t arg, uint64_t request) const {
    Hasher hasher;
    const Digest digest = hasher.add(static_cast<int64_t>(options.seed))
                              .add(entry)
                              .add(static_cast<int64_t>(arg))
                              .add(static_cast<int64_t>(request))
                              .finish();
    uint64_t state;
    std::memcpy(&state, digest.bytes.data(), sizeof state);
    return SeededRandom(state);
  }

  /// Fits the entry's tensors to the request: persistent ones keep what they
  /// hold, others are seeded anew.
  Status prepareArgs(const Request &request, uint64_t number) {
    const EntryInfo &info = module->module().entries()[request.entry];
    EntryState &state = entries[request.entry];
    state.args.resize(info.args.size());
    state.seeded.resize(info.args.size());
    state.dumped.resize(info.args.size());
    for (size_t i = 0; i < info.args.size(); ++i) {
      const EntryInfo::Arg &arg = info.args[i];
      PGKP_ASSIGN(
          auto shape,
          evaluateShape(arg.shape, request.roots,
                        fmt::format("entry '{}', argument {}", info.name, i)));
      if (arg.persistent) {
        if (state.seeded[i] && state.args[i].shape() == shape)
          continue;
        PGKP_ASSIGN(Tensor fresh, Tensor::create(arg.element, shape));
        SeededRandom source = random(request.entry, i, 0);
        fillSeeded(fresh, arg.range, source);
        if (state.seeded[i])
          copyOverlap(state.args[i], fresh);
        state.args[i] = std::move(fresh);
        state.seeded[i] = true;
        state.dumped[i] = false;
      } else {
        if (state.args[i].shape() != shape || state.args[i].bytes() == 0) {
          PGKP_ASSIGN(state.args[i], Tensor::create(arg.element, shape));
        }
        SeededRandom source = random(request.entry, i, number + 1);
        fillSeeded(state.args[i], arg.range, source);
      }
    }
    return {};
  }

  Expected<std::vector<Tensor>> makeResults(const Request &request) const {
    const EntryInfo &info = module->module().entries()[request.entry];
    std::vector<Tensor> results;
    for (size_t i = 0; i < info.results.size(); ++i) {
      PGKP_ASSIGN(
          auto shape,
          evaluateShape(info.results[i].shape, request.roots,
                        fmt::format("entry '{}', result {}", info.name, i)));
      PGKP_ASSIGN(Tensor tensor,
                  Tensor::create(info.results[i].element, std::move(shape)));
      results.push_back(std::move(tensor));
    }
    return results;
  }

  Status call(Context &target, const Request &request,
              std::vector<Tensor> &results) {
    EntryState &state = entries[request.entry];
    std::vector<void *> args;
    for (Tensor &tensor : state.args)
      args.push_back(tensor.descriptor());
    for (Tensor &tensor : results)
      args.push_back(tensor.descriptor());
    PGKP_TRY(target.call(request.entry, request.roots, args));
    return target.synchronize();
  }

  /// Results become the arguments that they carry.
  void carry(const Request &request, std::vector<Tensor> &results) {
    const EntryInfo &info = module->module().entries()[request.entry];
    EntryState &state = entries[request.entry];
    for (size_t i = 0; i < info.results.size(); ++i)
      if (info.results[i].carries >= 0)
        setArg(state, info.results[i].carries, std::move(results[i]));
  }

  static void setArg(EntryState &state, size_t number, Tensor tensor) {
    state.args[number] = std::move(tensor);
    state.dumped[number] = false;
  }

  std::string dumpPath(size_t request, const char *what, size_t number) const {
    return fmt::format("{}/{}-{}{}.npy", options.dump, request, what, number);
  }

  Status dumpArgs(const Request &request, size_t number) {
    const EntryInfo &info = module->module().entries()[request.entry];
    EntryState &state = entries[request.entry];
    for (size_t i = 0; i < state.args.size(); ++i) {
      if (state.dumped[i])
        continue;
      PGKP_TRY(writeNpy(dumpPath(number, "arg", i), state.args[i]));
      state.dumped[i] = info.args[i].persistent;
    }
    return {};
  }

  Status dumpResults(size_t number, const std::vector<Tensor> &results) const {
    for (size_t i = 0; i < results.size(); ++i)
      PGKP_TRY(writeNpy(dumpPath(number, "result", i), results[i]));
    return {};
  }

  Status checkAgainstGeneric(const Request &request, size_t number,
                             const std::vector<Tensor> &results,
                             RunnerResult &result) {
    PGKP_ASSIGN(std::vector<Tensor> want, makeResults(request));
    PGKP_TRY(call(*reference, request, want));
    for (size_t i = 0; i < want.size(); ++i) {
      const auto mismatch = compare(results[i], want[i]);
      if (!mismatch)
        continue;
      if (result.mismatches++ == 0)
        result.firstMismatch = fmt::format(
            "request {} ({}), result {}, element {}: got {}, generic gives {}",
            number, fmt::join(request.roots, ", "), i, mismatch->index,
            mismatch->got, mismatch->want);
    }
    return {};
  }

  Status serve(const Request &request, size_t number, RunnerResult &result) {
    PGKP_TRY(prepareArgs(request, number));
    PGKP_ASSIGN(std::vector<Tensor> results, makeResults(request));
    if (!options.dump.empty())
      PGKP_TRY(dumpArgs(request, number));
    PGKP_TRY(call(*context, request, results));
    if (!options.dump.empty())
      PGKP_TRY(dumpResults(number, results));
    if (options.check)
      PGKP_TRY(checkAgainstGeneric(request, number, results, result));
    carry(request, results);
    return {};
  }
};

Runner::Runner(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Runner::~Runner() = default;

Expected<std::unique_ptr<Runner>>
Runner::create(std::shared_ptr<LoadedModule> module, RunnerOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->module = module;
  impl->options = std::move(options);
  impl->entries.resize(module->module().entries().size());
  PGKP_ASSIGN(impl->context, Context::create(module));
  PGKP_ASSIGN(impl->reference, Context::create(module));
  impl->reference->setReferenceOnly(true);
  return std::unique_ptr<Runner>(new Runner(std::move(impl)));
}

Expected<RunnerResult> Runner::run(const std::vector<Request> &requests) {
  Engine &engine = *impl->module->engine();
  const RunnerOptions &options = impl->options;
  auto sleepUntil = [&](TimeNs t) {
    const TimeNs now = engine.now();
    if (t > now)
      std::this_thread::sleep_for(std::chrono::nanoseconds(t - now));
  };

  sleepUntil(engine.now() + fromSeconds(options.lead));
  const TimeNs begin = engine.now();
  const double firstArrival = requests.front().arrival;
  auto arrival = [&](size_t i) {
    return options.pace <= 0
               ? TimeNs{0}
               : begin + fromSeconds((requests[i].arrival - firstArrival) /
                                     options.pace);
  };

  RunnerResult result;
  size_t announced = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request &request = requests[i];
    // With a pace, requests queue up behind a slow one: the runtime hears of
    // each when it has arrived. Back to back, the next one arrives when this
    // one is done.
    if (options.pace > 0) {
      sleepUntil(arrival(i));
      announced = std::max(announced, i + 1);
      while (options.announce && announced < requests.size() &&
             arrival(announced) <= engine.now()) {
        PGKP_TRY(impl->module->announce(requests[announced].entry,
                                        requests[announced].roots, 0));
        ++announced;
      }
    }
    if (Status status = impl->serve(request, i, result); !status)
      return makeError(status.error().code, "request {} ({}): {}", i,
                       fmt::join(request.roots, ", "), status.error().message);
    ++result.requests;
    if (options.progress)
      options.progress(i + 1, requests.size());
  }
  return result;
}

Status Runner::runPairs(const std::vector<Request> &requests, unsigned pairs,
                        double secondsPerSide) {
  Engine &engine = *impl->module->engine();
  const Request &request = requests.back();
  PGKP_TRY(impl->prepareArgs(request, requests.size()));
  PGKP_ASSIGN(std::vector<Tensor> results, impl->makeResults(request));

  auto medianRequest = [&]() -> Expected<double> {
    std::vector<double> samples;
    const TimeNs end = engine.now() + fromSeconds(secondsPerSide);
    do {
      const TimeNs t = engine.now();
      PGKP_TRY(impl->call(*impl->context, request, results));
      samples.push_back(toSeconds(engine.now() - t));
    } while (engine.now() < end);
    std::nth_element(samples.begin(), samples.begin() + samples.size() / 2,
                     samples.end());
    return samples[samples.size() / 2];
  };

  impl->module->quiesce(60 * kNsPerSecond);
  impl->module->pausePreparation(true); // both sides run the same variants
  impl->context->setRecording(false);
  for (unsigned i = 0; i < pairs; ++i) {
    double running = 0, paused = 0;
    for (unsigned side = 0; side < 2; ++side) {
      const bool preparing = (side + i) % 2 == 0;
      impl->module->exercisePreparation(preparing);
      PGKP_ASSIGN((preparing ? running : paused), medianRequest());
    }
    impl->module->exercisePreparation(false);
    engine.record({.t = engine.now(),
                   .kind = EventKind::pair,
                   .value = running,
                   .value2 = paused});
  }
  impl->context->setRecording(true);
  impl->module->pausePreparation(false);
  return {};
}

} // namespace pgkp::rt
