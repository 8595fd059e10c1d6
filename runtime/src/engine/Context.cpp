// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// The request path: what generated code and applications call.

#include "engine/ModuleState.h"

#include <array>
#include <csetjmp>
#include <cstring>
#include <utility>

namespace pgkp::rt {

struct Context::Impl {
  std::shared_ptr<LoadedModule> loaded;
  LoadedModule::Impl &module;
  Engine::Impl &engine;
  std::unique_ptr<Stream> stream;
  DispatchTable::Reader reader;
  bool referenceOnly = false, recording = true, working = false;
  uint32_t streamNumber;
  uint32_t dispatches = 0; ///< on this stream, recorded ones
  uint64_t request = 0;
  Status status;
  /// Where a request ends that cannot go on; set while an entry runs.
  std::jmp_buf *escape = nullptr;
  std::vector<void *> live; ///< memory that an escape would leak

  /// The last call of each kernel: classification is skipped when extents
  /// repeat.
  struct LastKey {
    KeyId key = kNoKey;
    std::array<int64_t, 6> extents;
  };
  std::vector<LastKey> lastKeys;

  Impl(std::shared_ptr<LoadedModule> loaded)
      : loaded(loaded), module(loaded->get()), engine(loaded->engine()->get()),
        reader(*module.table), lastKeys(module.module->kernels().size()) {
    static std::atomic<uint32_t> streams{0};
    streamNumber = streams++;
  }

  KeyId classify(uint32_t kernel, std::span<const int64_t> extents) {
    LastKey &last = lastKeys[kernel];
    if (extents.size() > last.extents.size())
      return module.module->classify(kernel, extents);
    if (last.key != kNoKey && std::memcmp(last.extents.data(), extents.data(),
                                          extents.size_bytes()) == 0)
      return last.key;
    last.key = module.module->classify(kernel, extents);
    std::copy(extents.begin(), extents.end(), last.extents.begin());
    return last.key;
  }

  // What the loader takes for work in flight ends when the stream is known to
  // be idle.
  void beginWork() {
    if (!std::exchange(working, true))
      module.activity.begin();
  }
  void endWork() {
    if (std::exchange(working, false))
      module.activity.end();
  }

  /// Nothing prepares variants in a forked child.
  void noticeFork() {
    if (engine.made.forked()) [[unlikely]]
      referenceOnly = true;
  }

  void failOnce(Error error) {
    if (status)
      status = tl::unexpected<Error>(std::move(error));
  }

  void dispatch(uint32_t kernel, std::span<const int64_t> extents,
                std::span<void *const> args);
  void dispatchReference(uint32_t kernel, std::span<const int64_t> extents,
                         std::span<void *const> args);
};

namespace {

Context::Impl &implOf(pgkp_context_t *ctx);

void apiObserve(pgkp_context_t *ctx, uint32_t entry, const int64_t *roots,
                uint32_t numRoots) {
  Context::Impl &c = implOf(ctx);
  LoadedModule::Impl &m = c.module;
  if (c.referenceOnly || !c.recording || !m.prepares)
    return;
  m.push(RequestInput{entry, {roots, roots + numRoots}}, /*wake=*/m.speculates);
}

void apiPrepare(pgkp_context_t *ctx, uint32_t kernel, const int64_t *extents,
                uint32_t numExtents, double probability, double slack, uint32_t,
                uint32_t) {
  Context::Impl &c = implOf(ctx);
  LoadedModule::Impl &m = c.module;
  if (c.referenceOnly || !c.recording || !m.speculates ||
      kernel >= m.module->kernels().size() ||
      numExtents != m.module->kernels()[kernel].dims.size())
    return;
  // Once the variant is settled the hint has nothing to add.
  const KeyId key = m.module->classify(kernel, {extents, numExtents});
  if (m.module->isGeneric(key) ||
      m.flags[key].settled.load(std::memory_order_acquire))
    return;
  m.push(HintInput{key, probability, slack, {extents, extents + numExtents}},
         /*wake=*/false);
}

void apiDispatch(pgkp_context_t *ctx, uint32_t kernel, const int64_t *extents,
                 uint32_t numExtents, void *const *args, uint32_t numArgs) {
  implOf(ctx).dispatch(kernel, {extents, numExtents}, {args, numArgs});
}

void apiAwait(pgkp_context_t *ctx, uint32_t kernel, const int64_t *extents,
              uint32_t numExtents, int64_t timeoutUs) {
  Context::Impl &c = implOf(ctx);
  LoadedModule::Impl &m = c.module;
  if (c.referenceOnly || !m.prepares || kernel >= m.module->kernels().size() ||
      numExtents != m.module->kernels()[kernel].dims.size())
    return;
  const KeyId key = m.module->classify(kernel, {extents, numExtents});
  if (!m.module->isGeneric(key))
    m.waitFor(key, std::max<int64_t>(0, timeoutUs) * kNsPerUs);
}

void *apiAlloc(pgkp_context_t *ctx, uint64_t bytes) {
  Context::Impl &c = implOf(ctx);
  auto memory = c.engine.device->allocate(*c.stream, bytes);
  if (!memory) {
    c.failOnce(memory.error());
    // Generated code has nothing to unwind, and no way to go on without the
    // memory.
    if (c.escape)
      std::longjmp(*c.escape, 1);
    return nullptr;
  }
  c.live.push_back(*memory);
  return *memory;
}

void apiFree(pgkp_context_t *ctx, void *memory) {
  Context::Impl &c = implOf(ctx);
  // Freed in reverse order of allocation, nearly always.
  for (size_t i = c.live.size(); i-- > 0;)
    if (c.live[i] == memory) {
      c.live[i] = c.live.back();
      c.live.pop_back();
      c.engine.device->release(*c.stream, memory);
      return;
    }
}

void apiCopy(pgkp_context_t *ctx, uint32_t rank, uint32_t elementBytes,
             const void *src, const void *dst) {
  Context::Impl &c = implOf(ctx);
  if (Status s =
          c.engine.device->copyStrided(*c.stream, rank, elementBytes, src, dst);
      !s)
    c.failOnce(s.error());
}

void apiFail(pgkp_context_t *ctx, const char *message) {
  implOf(ctx).failOnce(
      Error{Code::invalidArgument, message ? message : "the program failed"});
}

constexpr pgkp_program_api_t kProgramApi = {
    PGKP_PROGRAM_ABI, sizeof(pgkp_program_api_t),
    apiObserve,       apiPrepare,
    apiDispatch,      apiAwait,
    apiAlloc,         apiFree,
    apiCopy,          apiFail};

} // namespace

// Context derives from the struct that generated code sees; its Impl is reached
// through it.
struct ContextAccess {
  static Context::Impl &impl(pgkp_context_t *ctx) {
    return *static_cast<Context *>(ctx)->impl;
  }
};
namespace {
Context::Impl &implOf(pgkp_context_t *ctx) { return ContextAccess::impl(ctx); }
} // namespace

void Context::Impl::dispatchReference(uint32_t kernel,
                                      std::span<const int64_t> extents,
                                      std::span<void *const> args) {
  const auto &generic = module.generics[kernel];
  LaunchArgs launch{args, extents, 0};
  if (!generic.workspace.empty())
    launch.workspaceBytes =
        static_cast<uint64_t>(generic.workspace.evaluate(extents).value_or(0));
  if (Status s = engine.device->launch(*stream, *generic.image, launch); !s)
    failOnce(s.error());
}

void Context::Impl::dispatch(uint32_t kernel, std::span<const int64_t> extents,
                             std::span<void *const> args) {
  if (kernel >= module.module->kernels().size() ||
      extents.size() != module.module->kernels()[kernel].dims.size())
    return failOnce(Error{Code::invalidArgument,
                          fmt::format("dispatch: no kernel {} with {} extents",
                                      kernel, extents.size())});
  if (!status)
    return; // the request has failed: its results are void
  if (referenceOnly)
    return dispatchReference(kernel, extents, args);

  const TimeNs entered = engine.clock.now();
  const KeyId key = classify(kernel, extents);
  LoadedModule::Impl::KeyFlags &flags = module.flags[key];
  const bool wasReady = flags.ready.load(std::memory_order_acquire);
  Resolved found = reader.lookup(kernel, extents);
  TimeNs waited = 0;
  if (module.blocksOnMiss && !flags.settled.load(std::memory_order_acquire))
      [[unlikely]] {
    waited = module.waitFor(key, engine.options.waitLimit);
    found = reader.lookup(kernel, extents);
  }
  if (!found.variant)
    return failOnce(
        Error{Code::internal,
              fmt::format("dispatch of '{}': no variant takes these extents",
                          module.module->kernels()[kernel].name)});

  const TimeNs issued = engine.clock.now();
  if (Status s = engine.device->launch(*stream, found.handle,
                                       {args, extents, found.workspaceBytes});
      !s)
    return failOnce(s.error());
  if (!recording)
    return;
  const TimeNs done = engine.clock.now();

  const bool own = found.variant->key == key;
  if (module.prepares) {
    module.history.push({.key = key,
                         .stream = streamNumber,
                         .number = dispatches,
                         .at = entered,
                         .ran = found.variant->key,
                         .kernelNs = done - issued});
    if (!own && !flags.noticed.exchange(true, std::memory_order_relaxed))
        [[unlikely]]
      module.push(MissInput{key, {extents.begin(), extents.end()}},
                  /*wake=*/true);
  }
  engine.record({.t = entered,
                 .kind = EventKind::dispatch,
                 .key = module.keyBase + key,
                 .ran = own ? kNoKey : module.keyBase + found.variant->key,
                 .stream = streamNumber,
                 .id = request,
                 .a = static_cast<int64_t>(waited > 0 ? DispatchReason::waited
                                                      : found.reason),
                 .b = wasReady,
                 .value = toSeconds(issued - entered),
                 .value2 = toSeconds(waited),
                 .value3 = toSeconds(done - issued)});
  ++dispatches;
}

Context::Context() { api = &kProgramApi; }
Context::~Context() {
  if (impl && impl->engine.made.forked())
    abandon(std::move(impl));
  else if (impl && impl->stream && impl->working)
    (void)synchronize();
}

Expected<std::unique_ptr<Context>>
Context::create(std::shared_ptr<LoadedModule> module) {
  std::unique_ptr<Context> context(new Context());
  context->impl = std::make_unique<Impl>(std::move(module));
  PGKP_ASSIGN(context->impl->stream,
              context->impl->engine.device->createStream());
  return context;
}

Status Context::call(uint32_t entry, std::span<const int64_t> roots,
                     std::span<void *const> args) {
  impl->noticeFork();
  LoadedModule::Impl &m = impl->module;
  if (entry >= m.module->entries().size())
    return makeError(Code::invalidArgument, "'{}' has no entry {}",
                     m.module->name(), entry);
  const EntryInfo &info = m.module->entries()[entry];
  if (roots.size() != info.roots.size())
    return makeError(Code::invalidArgument, "entry '{}' has {} roots; got {}",
                     info.name, info.roots.size(), roots.size());
  if (args.size() != info.args.size() + info.results.size())
    return makeError(Code::invalidArgument,
                     "entry '{}' takes {} arguments and results; got {}",
                     info.name, info.args.size() + info.results.size(),
                     args.size());
  for (size_t i = 0; i < roots.size(); ++i)
    if (roots[i] < 0)
      return makeError(Code::invalidArgument,
                       "entry '{}': {} is {}; expected an extent >= 0",
                       info.name, info.roots[i], roots[i]);
  if (auto broken = info.brokenLimit(roots))
    return makeError(Code::invalidArgument, "entry '{}': {}", info.name,
                     *broken);
  if (!m.entryFunctions[entry])
    return makeError(Code::unsupported,
                     "the bundle of '{}' has no program for entry '{}'",
                     m.module->name(), info.name);

  static std::atomic<uint64_t> requests{0};
  impl->status = {};
  const bool log = impl->recording && !impl->referenceOnly;
  if (log) {
    impl->request = requests++;
    impl->engine.record({.t = impl->engine.clock.now(),
                         .kind = EventKind::requestBegin,
                         .stream = impl->streamNumber,
                         .id = impl->request,
                         .a = entry});
  }
  impl->beginWork();
  {
    DispatchTable::Session session(impl->reader);
    std::jmp_buf escape;
    impl->escape = &escape;
    // Generated frames hold nothing that needs a destructor.
    if (setjmp(escape) == 0)
      m.entryFunctions[entry](this, args.data());
    impl->escape = nullptr;
  }
  for (void *memory : impl->live)
    impl->engine.device->release(*impl->stream, memory);
  impl->live.clear();
  if (impl->stream->idle())
    impl->endWork();
  if (log) {
    impl->engine.record({.t = impl->engine.clock.now(),
                         .kind = EventKind::requestEnd,
                         .stream = impl->streamNumber,
                         .id = impl->request,
                         .a = !impl->status});
    if (m.prepares)
      m.push(RequestDoneInput{}, /*wake=*/false);
  }
  return impl->status;
}

Status Context::dispatch(uint32_t kernel, std::span<const int64_t> extents,
                         std::span<void *const> args) {
  impl->noticeFork();
  impl->status = {};
  DispatchTable::Session session(impl->reader);
  impl->dispatch(kernel, extents, args);
  return impl->status;
}

Status Context::synchronize() {
  Status status = impl->stream->synchronize();
  impl->endWork();
  return status;
}
void Context::setReferenceOnly(bool on) { impl->referenceOnly = on; }
void Context::setRecording(bool on) { impl->recording = on; }

} // namespace pgkp::rt
