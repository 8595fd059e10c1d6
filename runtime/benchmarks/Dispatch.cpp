// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A dispatch, from extents to the return of a trivial kernel, beside its floor
// (an indirect call of the same kernel) and its currency (one look-up of the
// same key in a good hash map). The argument is the number of keys that calls
// go over, in random order: with 1 the inline cache hits, with 4,096 it never
// does.
#include "base/Random.h"
#include "devices/host/HostDevice.h"
#include "dispatch/DispatchTable.h"

#include <array>
#include <benchmark/benchmark.h>
#include <boost/unordered/unordered_flat_map.hpp>
#include <numeric>
#include <vector>

using namespace pgkp::rt;
namespace schema = pgkp::schema;

namespace {

constexpr size_t kRank = 3, kGuards = 16;
/// Dispatches in one session: a decoder layer has about that many.
constexpr size_t kSession = 16;
using Extents = std::array<int64_t, kRank>;

[[gnu::noinline]] void trivialKernel(void *const *args) {
  ++*static_cast<int64_t *>(args[0]);
}

schema::Fact fact(schema::FactKind kind, unsigned dim, int64_t a,
                  int64_t b = 0) {
  return {kind, static_cast<uint16_t>(dim), a, b};
}

/// `count` different extents vectors: m below 1024 (a token count), n and k
/// multiples of 64. 64 of them to each of 16 bands of m, n, k together.
std::vector<Extents> makeKeys(size_t count) {
  std::vector<Extents> keys;
  for (size_t i = 0; i < count; ++i)
    keys.push_back({static_cast<int64_t>(i % 1024 + 1),
                    static_cast<int64_t>(64 * (1 + i / 1024)), 4096});
  return keys;
}

/// Positions in random order, visited cyclically. A power of two of them.
class Walk {
public:
  explicit Walk(size_t count) : order(count), mask(count - 1) {
    std::iota(order.begin(), order.end(), 0u);
    SeededRandom random(1);
    for (size_t i = count; i > 1; --i)
      std::swap(order[i - 1], order[random.below(i)]);
  }
  uint32_t next() { return order[at++ & mask]; }

private:
  std::vector<uint32_t> order;
  size_t mask, at = 0;
};

/// Fast for these keys; the same kind of mixing as the dispatch table's.
struct ExtentsHash {
  using is_avalanching = void;
  size_t operator()(const Extents &extents) const {
    const uint64_t hash =
        static_cast<uint64_t>(extents[0]) * 0x9e3779b97f4a7c15 +
        static_cast<uint64_t>(extents[1]) * 0xbf58476d1ce4e5b9 +
        static_cast<uint64_t>(extents[2]) * 0x94d049bb133111eb;
    return hash ^ hash >> 32;
  }
};

void BM_IndirectCall(benchmark::State &state) {
  const auto count = static_cast<size_t>(state.range(0));
  std::vector<pgkp_host_kernel_fn> kernels(count, trivialKernel);
  benchmark::DoNotOptimize(kernels.data());
  Walk walk(count);
  int64_t calls = 0;
  void *args[] = {&calls, &calls, &calls, nullptr};
  for (auto _ : state)
    kernels[walk.next()](args);
  benchmark::DoNotOptimize(calls);
}

void BM_FlatHashMapFind(benchmark::State &state) {
  const auto count = static_cast<size_t>(state.range(0));
  const std::vector<Extents> keys = makeKeys(count);
  boost::unordered_flat_map<Extents, const void *, ExtentsHash> map;
  for (const Extents &key : keys)
    map.emplace(key, &key);
  Walk walk(count);
  for (auto _ : state)
    benchmark::DoNotOptimize(map.find(keys[walk.next()])->second);
}

/// One kernel with these variants, dispatched for each key in turn.
void dispatchKeys(benchmark::State &state, std::vector<Variant> variants,
                  DispatchReason expected) {
  const auto count = static_cast<size_t>(state.range(0));
  const std::vector<Extents> keys = makeKeys(count);
  const uint32_t ranks[] = {kRank};
  DispatchTable table(ranks);
  if (!table.publish(0, std::move(variants)))
    return state.SkipWithError("cannot publish");
  DispatchTable::Reader reader(table);
  auto device = makeHostDevice();
  auto stream = device->createStream();
  if (!stream)
    return state.SkipWithError("no stream");
  {
    DispatchTable::Session session(reader);
    for (const Extents &key : keys)
      if (reader.lookup(0, key).reason != expected)
        return state.SkipWithError("a key is dispatched for another reason");
  }

  Walk walk(count);
  int64_t calls = 0;
  void *args[] = {&calls, &calls, &calls};
  size_t dispatches = 0;
  reader.enter();
  for (auto _ : state) {
    if (++dispatches % kSession == 0) {
      reader.leave();
      reader.enter();
    }
    const Extents &extents = keys[walk.next()];
    const Resolved &found = reader.lookup(0, extents);
    const Status launched = device->launch(
        **stream, found.handle, {args, extents, found.workspaceBytes});
    benchmark::DoNotOptimize(&launched);
  }
  reader.leave();
  if (calls != static_cast<int64_t>(dispatches))
    state.SkipWithError("a kernel did not run");
}

Variant makeVariant(KeyId key, std::vector<schema::Fact> facts) {
  Variant variant;
  variant.key = key;
  variant.facts = std::move(facts);
  variant.image = makeHostImage(trivialKernel);
  return variant;
}

void BM_DispatchHit(benchmark::State &state) {
  std::vector<Variant> variants;
  variants.push_back(makeVariant(~1u, {}));
  for (const Extents &key : makeKeys(static_cast<size_t>(state.range(0)))) {
    std::vector<schema::Fact> facts;
    for (unsigned dim = 0; dim < kRank; ++dim)
      facts.push_back(fact(schema::FactKind::eq, dim, key[dim]));
    variants.push_back(
        makeVariant(static_cast<KeyId>(variants.size()), std::move(facts)));
  }
  dispatchKeys(state, std::move(variants), DispatchReason::exact);
}

/// 16 bands of m, n and k aligned: `m in [64 i + 1, 64 i + 64], n % 64, k %
/// 16`.
std::vector<Variant> guarded(int64_t alignment) {
  std::vector<Variant> variants;
  variants.push_back(makeVariant(~1u, {}));
  for (int64_t i = 0; i < static_cast<int64_t>(kGuards); ++i)
    variants.push_back(
        makeVariant(static_cast<KeyId>(i),
                    {fact(schema::FactKind::range, 0, 64 * i + 1, 64 * i + 64),
                     fact(schema::FactKind::divisible, 1, alignment),
                     fact(schema::FactKind::divisible, 2, 16)}));
  return variants;
}

void BM_DispatchClass(benchmark::State &state) {
  dispatchKeys(state, guarded(64), DispatchReason::classMatch);
}

void BM_DispatchGeneric(benchmark::State &state) {
  // n is at most 256: no guard holds.
  dispatchKeys(state, guarded(4096), DispatchReason::generic);
}

BENCHMARK(BM_IndirectCall)->Arg(1)->Arg(4096);
BENCHMARK(BM_FlatHashMapFind)->Arg(1)->Arg(4096);
BENCHMARK(BM_DispatchHit)->Arg(1)->Arg(4096);
BENCHMARK(BM_DispatchClass)->Arg(1)->Arg(4096);
BENCHMARK(BM_DispatchGeneric)->Arg(1)->Arg(4096);

} // namespace
