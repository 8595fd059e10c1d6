// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The request path: which variant runs for these extents.
///
/// Each kernel has one immutable table behind one atomic pointer. A lookup
/// tries, in this order: the reader's inline cache (the kernel's last extents),
/// the exact map (variants that pin every extent), guarded variants in measured
/// order, the generic variant. It takes no lock, allocates nothing, and makes
/// no system call. Publication builds a new table, swaps the pointer and
/// retires the old one (dispatch/Epoch.h), so a variant lives as long as a
/// session that may have seen it.
#pragma once

#include "base/Status.h"
#include "devices/device/Device.h"
#include "dispatch/Epoch.h"
#include "dispatch/Resolved.h"
#include "schema/Module.h"

#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace pgkp::rt {

/// A dispatchable variant. Immutable once published.
struct Variant {
  KeyId key = kNoKey;
  DispatchReason reason = DispatchReason::generic; ///< set by publish
  std::shared_ptr<const Image> image;
  Expr workspace;                  ///< scratch bytes over the extents
  std::vector<schema::Fact> facts; ///< empty: generic
  double nsPerUse = 0;             ///< measured; 0: never
  /// Time of the generic variant / time of this one, measured side by side; 0:
  /// never measured. Guarded variants are tried best gain first; those that
  /// were never measured come last, by key (a module's classes are most
  /// specific first).
  double gain = 0;
};

/// Thread-safe. Must outlive its readers.
class DispatchTable {
  struct Table;
  struct Slot;

public:
  /// One for each context (a stream and the thread that launches on it). A
  /// variant that a lookup returned may be used until the session ends, and an
  /// asynchronous launch of it must have finished by then. Thread-compatible.
  class Reader {
  public:
    explicit Reader(DispatchTable &table);

    /// A session: one request, or a batch of them. Sessions of one reader do
    /// not overlap. The longer it is, the later withdrawn variants are
    /// unloaded.
    void enter() { epoch.enter(); }
    void leave() { epoch.leave(); }

    /// The best variant for these extents. Only inside a session. `extents` has
    /// as many values as the kernel has extents, none of them negative. The
    /// answer is good until the kernel's next lookup, or the session's end.
    const Resolved &lookup(uint32_t kernel, std::span<const int64_t> extents);
    /// The generic variant, whatever else there is. Under the same rules.
    Resolved lookupGeneric(uint32_t kernel, std::span<const int64_t> extents);

  private:
    /// The inline cache: a kernel's last answer. `generation` 0 is never
    /// current: nothing cached.
    struct Last {
      uint64_t generation = 0;
      int64_t first = 0;              ///< extent 0
      const Answer *answer = nullptr; ///< in the table, or `own`
      Answer own;                     ///< for what no table holds
    };

    const Resolved &lookupTable(uint32_t kernel, const int64_t *extents,
                                uint64_t generation);
    /// Apart, so that the registers it needs are not saved before an exact
    /// answer.
    [[gnu::noinline]] const Resolved &
    lookupOther(uint32_t kernel, const int64_t *extents, uint64_t generation);

    const Slot *slots;
    std::vector<Last> last; ///< by kernel
    EpochDomain::Reader epoch;
  };

  /// RAII of a reader's session.
  class Session {
  public:
    explicit Session(Reader &reader) : reader(reader) { reader.enter(); }
    ~Session() { reader.leave(); }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

  private:
    Reader &reader;
  };

  /// `ranks`: the number of extents of each kernel.
  explicit DispatchTable(std::span<const uint32_t> ranks);
  ~DispatchTable();
  DispatchTable(const DispatchTable &) = delete;
  DispatchTable &operator=(const DispatchTable &) = delete;

  size_t numKernels() const { return count; }

  /// Makes a variant dispatchable; it replaces the one with the same key.
  /// invalidArgument: no such kernel, no image, a fact on a dimension that the
  /// kernel does not have, workspace that cannot be computed.
  Status publish(uint32_t kernel, Variant variant);
  /// The same for several variants with one new table.
  Status publish(uint32_t kernel, std::vector<Variant> variants);

  /// Takes the key's variant out. \returns false if there is none.
  bool withdraw(uint32_t kernel, KeyId key);

  /// The published variant of a key, or null. Not for the request path.
  std::shared_ptr<const Variant> find(uint32_t kernel, KeyId key) const;
  /// Shared ownership of a variant that a lookup returned, which outlives the
  /// session then; null if it was replaced or withdrawn since. Takes a lock.
  std::shared_ptr<const Variant> share(uint32_t kernel,
                                       const Variant *variant) const;
  /// A variant's launch at these extents, which its facts must hold for: what
  /// lookup gives when it finds the variant. Null where the workspace has no
  /// size.
  static Resolved resolve(const Variant &variant,
                          std::span<const int64_t> extents);
  /// All published variants of a kernel. Not for the request path.
  std::vector<std::shared_ptr<const Variant>> variants(uint32_t kernel) const;

  /// Takes over an object that sessions may have reached and that no later one
  /// can; collect destroys it like a table.
  void retire(std::shared_ptr<const void> object) {
    epochs.retire(std::move(object));
  }
  /// Destroys tables, and variants with them, that no session can hold; images
  /// are unloaded on the calling thread. Call it regularly off the request
  /// path. \returns how many tables that were.
  size_t collect() { return epochs.collect(); }
  /// Replaced tables that a session may still hold.
  size_t pending() const { return epochs.pending(); }

private:
  struct Slot {
    /// Grows with each publication, after the pointer changed. A reader that
    /// finds its cached generation current may use the variant that it cached:
    /// what it saw was not retired before the session began.
    std::atomic<uint64_t> generation{1};
    std::atomic<const Table *> table{nullptr};
  };

  void replace(uint32_t kernel,
               std::vector<std::shared_ptr<const Variant>> variants);

  size_t count;
  std::unique_ptr<uint32_t[]> ranks;
  std::unique_ptr<Slot[]> slots;
  mutable std::mutex writers; ///< current
  std::unique_ptr<std::shared_ptr<const Table>[]> current;
  EpochDomain epochs;
};

inline const Resolved &
DispatchTable::Reader::lookup(uint32_t kernel,
                              std::span<const int64_t> extents) {
  assert(kernel < last.size() && epoch.inside());
  const Last &line = last[kernel];
  const uint64_t generation =
      slots[kernel].generation.load(std::memory_order_seq_cst);
  if (line.generation == generation) [[likely]] {
    // The first extent is here, too: what the last call stored last, the
    // answer's place, is not needed to see that another one is wanted.
    if (extents.empty() || (line.first == extents[0] &&
                            sameSoFar(line.answer->extents + 1,
                                      extents.data() + 1, extents.size() - 1)))
        [[likely]]
      return line.answer->found;
  }
  return lookupTable(kernel, extents.data(), generation);
}

} // namespace pgkp::rt
