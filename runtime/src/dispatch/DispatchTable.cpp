// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dispatch/DispatchTable.h"

#include "dispatch/GuardIndex.h"

#include <algorithm>
#include <bit>
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
  if (rank == 0 || std::find(pinned.begin(), pinned.end(), false) !=
                       pinned.end())
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

/// Multilinear hashing (Dietzfelbinger 1996; Lemire, Kaser 2014): a sum of
/// products with odd constants, of which the top bits are used. The products do
/// not depend on each other.
uint64_t hashExtents(const int64_t *extents, size_t rank) {
  static constexpr std::array<uint64_t, 8> kOdd = {
      0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb,
      0xd6e8feb86659fd93, 0xa0761d6478bd642f, 0xe7037ed1a0b428db,
      0x8ebc6af09c88c6e3, 0x589965cc75374cc3};
  uint64_t hash = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (i % kOdd.size() == 0)
      hash = std::rotl(hash, 29);
    hash += static_cast<uint64_t>(extents[i]) * kOdd[i % kOdd.size()];
  }
  return hash;
}

} // namespace

/// Keys of the exact map lie in the map itself, at most half full, so that a hit
/// touches one cache line (two, if it straddles).
struct DispatchTable::Table {
  struct Entry {
    const Variant *variant;
    uint64_t workspaceBytes;
  };
  static_assert(sizeof(Entry) == 2 * sizeof(int64_t));

  uint32_t rank = 0;
  unsigned shift = 63;          ///< 64 - log2(slots)
  uint64_t mask = 0;            ///< slots - 1
  std::vector<int64_t> exact;   ///< slots of {Entry, extents[rank]}; empty: none
  GuardIndex guards;
  std::vector<const Variant *> guarded;
  const Variant *generic = nullptr;
  std::vector<std::shared_ptr<const Variant>> owned;

  size_t stride() const { return 2 + rank; }

  Table(uint32_t rank, std::vector<std::shared_ptr<const Variant>> variants);

  void insertExact(const Variant &variant,
                   const std::vector<int64_t> &extents);

  Resolved findGeneric(std::span<const int64_t> extents) const {
    if (!generic)
      return {};
    const std::optional<uint64_t> bytes = workspaceFor(*generic, extents);
    return bytes ? Resolved{generic, DispatchReason::generic, *bytes}
                 : Resolved{};
  }

  Entry findExact(const int64_t *extents) const {
    for (uint64_t i = hashExtents(extents, rank) >> shift;; i = (i + 1) & mask) {
      const int64_t *slot = exact.data() + i * stride();
      Entry entry;
      std::memcpy(&entry, slot, sizeof entry);
      if (!entry.variant)
        return entry;
      uint64_t difference = 0;
      for (uint32_t d = 0; d < rank; ++d)
        difference |= static_cast<uint64_t>(slot[2 + d] ^ extents[d]);
      if (difference == 0)
        return entry;
    }
  }
};

DispatchTable::Table::Table(
    uint32_t rank, std::vector<std::shared_ptr<const Variant>> variants)
    : rank(rank), owned(std::move(variants)) {
  std::vector<std::pair<const Variant *, std::vector<int64_t>>> pinned;
  for (const auto &variant : owned) {
    if (variant->facts.empty())
      generic = variant.get();
    else if (auto extents = pinnedExtents(variant->facts, rank))
      pinned.emplace_back(variant.get(), std::move(*extents));
    else
      guarded.push_back(variant.get());
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

  if (pinned.empty())
    return;
  const uint64_t size = std::bit_ceil(2 * pinned.size());
  mask = size - 1;
  shift = 64 - std::countr_zero(size);
  exact.resize(size * stride(), 0);
  for (const auto &[variant, extents] : pinned)
    insertExact(*variant, extents);
}

void DispatchTable::Table::insertExact(const Variant &variant,
                                       const std::vector<int64_t> &extents) {
  uint64_t i = hashExtents(extents.data(), rank) >> shift;
  for (;; i = (i + 1) & mask) {
    Entry entry;
    std::memcpy(&entry, &exact[i * stride()], sizeof entry);
    if (!entry.variant)
      break;
    // Two keys for one vector: the better one stays.
    if (std::equal(extents.begin(), extents.end(), &exact[i * stride() + 2])) {
      if (entry.variant->gain >= variant.gain)
        return;
      break;
    }
  }
  const Entry entry{&variant, workspaceFor(variant, extents).value_or(0)};
  std::memcpy(&exact[i * stride()], &entry, sizeof entry);
  std::copy(extents.begin(), extents.end(), &exact[i * stride() + 2]);
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
                     "kernel {} of {}: cannot publish a variant", kernel, count);
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
  return slots[kernel].table.load(std::memory_order_seq_cst)->findGeneric(
      extents);
}

Resolved DispatchTable::Reader::lookupTable(uint32_t kernel,
                                            std::span<const int64_t> extents,
                                            uint64_t generation) {
  const Table &table = *slots[kernel].table.load(std::memory_order_seq_cst);
  assert(extents.size() == table.rank);
  Resolved found;
  if (!table.exact.empty()) {
    const Table::Entry entry = table.findExact(extents.data());
    found.variant = entry.variant;
    found.workspaceBytes = entry.workspaceBytes;
  }
  if (!found.variant && !table.guarded.empty()) {
    const size_t guard = table.guards.first(extents.data());
    if (guard != GuardIndex::kNone)
      if (auto bytes = workspaceFor(*table.guarded[guard], extents)) {
        found.variant = table.guarded[guard];
        found.workspaceBytes = *bytes;
      }
  }
  if (!found.variant)
    found = table.findGeneric(extents);
  if (!found.variant)
    return found;
  found.reason = found.variant->reason;

  // The table may be newer than `generation`; then this line is stale at once.
  if (extents.size() <= kInlineExtents) {
    Last &line = last[kernel];
    line.generation = generation;
    line.variant = found.variant;
    line.workspaceBytes = found.workspaceBytes;
    std::copy(extents.begin(), extents.end(), line.extents.begin());
  }
  return found;
}

} // namespace pgkp::rt
