// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A bounded lock-free queue: any number of producers and consumers.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace pgkp::rt {

/// First in, first out, of fixed capacity (Vyukov's bounded queue: one sequence
/// number per cell). Neither side allocates, locks or waits. Thread-safe.
template <typename T> class BoundedRing {
public:
  /// `capacity` is rounded up to a power of two, at least 2.
  explicit BoundedRing(size_t capacity)
      : mask(std::bit_ceil(capacity < 2 ? size_t{2} : capacity) - 1),
        cells(std::make_unique<Cell[]>(mask + 1)) {
    for (size_t i = 0; i <= mask; ++i)
      cells[i].sequence.store(i, std::memory_order_relaxed);
  }

  size_t capacity() const { return mask + 1; }

  /// False: full; `value` is untouched then.
  bool push(T &&value) {
    size_t position = tail.load(std::memory_order_relaxed);
    Cell *cell;
    for (;;) {
      cell = &cells[position & mask];
      const size_t sequence = cell->sequence.load(std::memory_order_acquire);
      const auto lead = static_cast<ptrdiff_t>(sequence - position);
      if (lead < 0)
        return false;
      if (lead > 0)
        position = tail.load(std::memory_order_relaxed);
      else if (tail.compare_exchange_weak(position, position + 1,
                                          std::memory_order_relaxed))
        break;
    }
    cell->value = std::move(value);
    cell->sequence.store(position + 1, std::memory_order_release);
    return true;
  }
  bool push(const T &value) { return push(T(value)); }

  /// False: empty.
  bool pop(T &out) {
    size_t position = head.load(std::memory_order_relaxed);
    Cell *cell;
    for (;;) {
      cell = &cells[position & mask];
      const size_t sequence = cell->sequence.load(std::memory_order_acquire);
      const auto lead = static_cast<ptrdiff_t>(sequence - (position + 1));
      if (lead < 0)
        return false;
      if (lead > 0)
        position = head.load(std::memory_order_relaxed);
      else if (head.compare_exchange_weak(position, position + 1,
                                          std::memory_order_relaxed))
        break;
    }
    out = std::move(cell->value);
    cell->sequence.store(position + mask + 1, std::memory_order_release);
    return true;
  }

private:
  struct Cell {
    std::atomic<size_t> sequence{0};
    T value{};
  };
  const size_t mask;
  const std::unique_ptr<Cell[]> cells;
  alignas(64) std::atomic<size_t> tail{0};
  alignas(64) std::atomic<size_t> head{0};
};

} // namespace pgkp::rt
