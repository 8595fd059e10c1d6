// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dispatch/DispatchTable.h"

#include "dispatch/ExactMap.h"
#include "dispatch/GuardIndex.h"

#include <algorithm>
#include <map>
#include <optional>

namespace pgkp::rt {
namespace {

DispatchReason reasonOf(std::span<const schema::Fact> facts) {
  if (facts.empty())
    return DispatchReason::generic;
  return std::all_of(facts.begin(), facts.end(),
                     [](const schema::Fact &fact) {
                       return fact.kind() == schema::FactKind::eq;
                     })
             ? DispatchReason::exact
             : DispatchReason::classMatch;
}

/// The one extents vector for which the facts hold, if they pin every extent.
std::optional<std::vector<int64_t>>
pinnedExtents(std::span<const schema::Fact> facts, unsigned rank) {
  std::vector<int64_t> extents(rank);
  std::vector<bool> pinned(rank, false);
  for (const schema::Fact &fact : facts) {
    if (fact.kind() != schema::FactKind::eq)
      return std::nullopt;
    if (pinned[fact.dim()] && extents[fact.dim()] != fact.a())
      return std::nullopt; // contradicts itself: the guard index drops it
    pinned[fact.dim()] = true;
    extents[fact.dim()] = fact.a();
  }
  if (rank == 0 ||
      std::find(pinned.begin(), pinned.end(), false) != pinned.end())
    return std::nullopt;
  return extents;
}

/// Nothing: the expression has no value there, or a negative one.
std::optional<uint64_t> workspaceFor(const Variant &variant,
                                     std::span<const int64_t> extents) {
  if (variant.workspace.empty())
    return 0;
  const std::optional<int64_t> bytes = variant.workspace.evaluate(extents);
  if (!bytes || *bytes < 0)
    return std::nullopt;
  return static_cast<uint64_t>(*bytes);
}

} // namespace

struct DispatchTable::Table {
  ExactMap exact;
  uint32_t rank = 0;
  GuardIndex guards;
  std::vector<const Variant *> guarded;
  const Variant *generic = nullptr;
  std::vector<std::shared_ptr<const Variant>> owned;

  Table(uint32_t rank, std::vector<std::shared_ptr<const Variant>> variants);

  Resolved findGeneric(std::span<const int64_t> extents) const {
    return generic ? resolve(*generic, extents) : Resolved{};
  }
};

DispatchTable::Table::Table(
    uint32_t rank, std::vector<std::shared_ptr<const Variant>> variants)
    : rank(rank), owned(std::move(variants)) {
  std::map<std::vector<int64_t>, const Variant *> pinned;
  for (const auto &variant : owned) {
    if (variant->facts.empty()) {
      generic = variant.get();
    } else if (auto extents = pinnedExtents(variant->facts, rank)) {
      // Two keys for one vector: the better one stays.
      const Variant *&best = pinned[std::move(*extents)];
      if (!best || variant->gain > best->gain)
        best = variant.get();
    } else {
      guarded.push_back(variant.get());
    }
  }

  std::stable_sort(guarded.begin(), guarded.end(),
                   [](const Variant *a, const Variant *b) {
                     if (a->gain != b->gain)
                       return a->gain > b->gain;
                     return a->key < b->key;
                   });
  std::vector<std::span<const schema::Fact>> facts;
  for (const Variant *variant : guarded)
    facts.emplace_back(variant->facts);
  guards = GuardIndex(facts, rank);

  std::vector<ExactMap::Item> items;
  for (const auto &[extents, variant] : pinned)
    items.push_back(
        {extents,
         {variant, variant->image->handle(),
          workspaceFor(*variant, extents).value_or(0), DispatchReason::exact}});
  if (!items.empty())
    exact = ExactMap(items, rank);
}

DispatchTable::DispatchTable(std::span<const uint32_t> kernelRanks)
    : count(kernelRanks.size()), ranks(new uint32_t[count]),
      slots(new Slot[count]), current(new std::shared_ptr<const Table>[count]) {
  std::copy(kernelRanks.begin(), kernelRanks.end(), ranks.get());
  for (size_t kernel = 0; kernel < count; ++kernel) {
    current[kernel] = std::make_shared<const Table>(
        ranks[kernel], std::vector<std::shared_ptr<const Variant>>{});
    slots[kernel].table.store(current[kernel].get(), std::memory_order_relaxed);
  }
}

DispatchTable::~DispatchTable() = default;

DispatchTable::Reader::Reader(DispatchTable &table)
    : slots(table.slots.get()), last(table.count), epoch(table.epochs) {}

Status DispatchTable::publish(uint32_t kernel, Variant variant) {
  std::vector<Variant> one;
  one.push_back(std::move(variant));
  return publish(kernel, std::move(one));
}

Status DispatchTable::publish(uint32_t kernel, std::vector<Variant> variants) {
  if (kernel >= count)
    return makeError(Code::invalidArgument,
                     "kernel {} of {}: cannot publish a variant", kernel,
                     count);
  for (Variant &variant : variants) {
    if (!variant.image)
      return makeError(Code::invalidArgument, "key {}: variant without image",
                       variant.key);
    for (const schema::Fact &fact : variant.facts)
      if (fact.dim() >= ranks[kernel])
        return makeError(Code::invalidArgument,
                         "key {}: fact on extent {} of a kernel with {}",
                         variant.key, fact.dim(), ranks[kernel]);
    variant.reason = reasonOf(variant.facts);
    if (auto extents = pinnedExtents(variant.facts, ranks[kernel]);
        extents && !workspaceFor(variant, *extents))
      return makeError(Code::invalidArgument,
                       "key {}: workspace expression has no value for {}",
                       variant.key, toString(variant.facts));
  }

  std::lock_guard lock(writers);
  std::vector<std::shared_ptr<const Variant>> next = current[kernel]->owned;
  for (Variant &variant : variants) {
    auto shared = std::make_shared<const Variant>(std::move(variant));
    auto old = std::find_if(next.begin(), next.end(), [&](const auto &other) {
      return other->key == shared->key;
    });
    if (old != next.end())
      *old = std::move(shared);
    else
      next.push_back(std::move(shared));
  }
  replace(kernel, std::move(next));
  return {};
}

bool DispatchTable::withdraw(uint32_t kernel, KeyId key) {
  if (kernel >= count)
    return false;
  std::lock_guard lock(writers);
  std::vector<std::shared_ptr<const Variant>> next = current[kernel]->owned;
  if (std::erase_if(next,
                    [&](const auto &other) { return other->key == key; }) == 0)
    return false;
  replace(kernel, std::move(next));
  return true;
}

void DispatchTable::replace(
    uint32_t kernel, std::vector<std::shared_ptr<const Variant>> variants) {
  auto next = std::make_shared<const Table>(ranks[kernel], std::move(variants));
  std::swap(current[kernel], next);
  slots[kernel].table.store(current[kernel].get(), std::memory_order_seq_cst);
  slots[kernel].generation.fetch_add(1, std::memory_order_seq_cst);
  epochs.retire(std::move(next));
}

std::shared_ptr<const Variant> DispatchTable::find(uint32_t kernel,
                                                   KeyId key) const {
  if (kernel >= count)
    return nullptr;
  std::lock_guard lock(writers);
  for (const auto &variant : current[kernel]->owned)
    if (variant->key == key)
      return variant;
  return nullptr;
}

std::shared_ptr<const Variant>
DispatchTable::share(uint32_t kernel, const Variant *variant) const {
  if (kernel >= count)
    return nullptr;
  std::lock_guard lock(writers);
  for (const auto &published : current[kernel]->owned)
    if (published.get() == variant)
      return published;
  return nullptr;
}

Resolved DispatchTable::resolve(const Variant &variant,
                                std::span<const int64_t> extents) {
  const std::optional<uint64_t> bytes = workspaceFor(variant, extents);
  if (!bytes)
    return {};
  return {&variant, variant.image->handle(), *bytes, variant.reason};
}

std::vector<std::shared_ptr<const Variant>>
DispatchTable::variants(uint32_t kernel) const {
  if (kernel >= count)
    return {};
  std::lock_guard lock(writers);
  return current[kernel]->owned;
}

Resolved
DispatchTable::Reader::lookupGeneric(uint32_t kernel,
                                     std::span<const int64_t> extents) {
  assert(kernel < last.size() && epoch.inside());
  return slots[kernel]
      .table.load(std::memory_order_seq_cst)
      ->findGeneric(extents);
}

const Resolved &DispatchTable::Reader::lookupTable(uint32_t kernel,
                                                   const int64_t *extents,
                                                   uint64_t generation) {
  const Table &table = *slots[kernel].table.load(std::memory_order_seq_cst);
  if (const Answer *answer = table.exact.findShort(extents)) [[likely]] {
    // The table may be newer than `generation`; then this is stale at once.
    last[kernel].generation = generation;
    last[kernel].answer = answer;
    last[kernel].first = extents[0];
    return answer->found;
  }
  return lookupOther(kernel, extents, generation);
}

const Resolved &DispatchTable::Reader::lookupOther(uint32_t kernel,
                                                   const int64_t *extents,
                                                   uint64_t generation) {
  const Table &table = *slots[kernel].table.load(std::memory_order_seq_cst);
  const std::span<const int64_t> all(extents, table.rank);
  Last &line = last[kernel];
  line.generation = 0; // long keys stay so
  line.answer = &line.own;
  Resolved &found = line.own.found;
  found = {};
  if (const Answer *answer = table.exact.find(extents))
    found = answer->found;
  if (!found.variant && !table.guarded.empty()) {
    const size_t guard = table.guards.first(extents);
    if (guard != GuardIndex::kNone)
      found = resolve(*table.guarded[guard], all);
  }
  if (!found.variant)
    found = table.findGeneric(all);
  if (found.variant && table.rank <= kInlineExtents) {
    copyExtents(extents, line.own.extents, table.rank);
    line.generation = generation;
    if (table.rank)
      line.first = extents[0];
  }
  return found;
}

} // namespace pgkp::rt
