// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Safe reclamation for readers that must not pay for it: quiescent-state
/// based (McKenney, Slingwine 1998; Fraser 2004, epochs).
///
/// A reader announces the global epoch when a session begins and withdraws the
/// announcement when it ends; in between it reads shared pointers as it likes,
/// at no cost. A writer first unlinks an object, then retires it with the
/// current epoch and moves the epoch on. The object is destroyed once no reader
/// announces an epoch up to the object's. The price is that a long session
/// delays destruction (memory, not correctness).
///
/// Why it is right: the announcement, the epoch, and the shared pointer are all
/// accessed in the one order of sequentially consistent operations. A scan that
/// finds the reader outside precedes its announcement, so the reader's later
/// load of the pointer (memory_order_seq_cst, a plain load on x86 and one
/// `ldar` on AArch64) sees the unlink. A reader that announces a later epoch
/// read the epoch after the unlink.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace pgkp::rt {

/// Thread-safe. Must outlive its readers.
class EpochDomain {
public:
  /// Thread-compatible: sessions of one reader do not overlap.
  class Reader {
  public:
    explicit Reader(EpochDomain &domain);
    ~Reader();
    Reader(const Reader &) = delete;
    Reader &operator=(const Reader &) = delete;

    void enter() {
      announced.exchange(domain.epoch.load(std::memory_order_seq_cst),
                         std::memory_order_seq_cst);
    }
    void leave() { announced.store(kOutside, std::memory_order_release); }
    bool inside() const {
      return announced.load(std::memory_order_relaxed) != kOutside;
    }

  private:
    friend class EpochDomain;
    EpochDomain &domain;
    alignas(64) std::atomic<uint64_t> announced{kOutside};
  };

  EpochDomain() = default;
  EpochDomain(const EpochDomain &) = delete;
  EpochDomain &operator=(const EpochDomain &) = delete;
  ~EpochDomain();

  /// Takes over an object that no new reader can reach any more.
  void retire(std::shared_ptr<const void> object);

  /// Destroys what no reader can hold, on the calling thread, outside locks.
  /// \returns how many objects that were.
  size_t collect();

  /// Retired objects that still wait.
  size_t pending() const;

private:
  static constexpr uint64_t kOutside = 0;
  struct Retired {
    uint64_t epoch;
    std::shared_ptr<const void> object;
  };

  alignas(64) std::atomic<uint64_t> epoch{1};
  mutable std::mutex mutex; ///< readers (the list), retired
  std::vector<Reader *> readers;
  std::vector<Retired> retired;
};

} // namespace pgkp::rt
