// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a device function on the host: every thread of a block is a fiber that
// returns to the scheduler where it waits, for the block at a barrier or for
// its warp in a collective operation. Blocks run one after the other. Threads
// that can never meet are reported, not waited for.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <ucontext.h>
#include <vector>

struct Copy {
  void *to;
  const void *from;
  uint32_t bytes, valid;
};

struct Fiber {
  ucontext_t context;
  enum { Ready, AtBarrier, Finished } state = Ready;
  /// Collective operations so far; what this lane gave to the last two.
  uint64_t collectives = 0;
  uint32_t given[2][12];
  /// Asynchronous copies: closed groups, the oldest first, and the open one.
  std::deque<std::vector<Copy>> groups;
  std::vector<Copy> open;
};

static uint32_t currentThread, currentBlock, numBlocks;
static ucontext_t scheduler;
static std::vector<Fiber> fibers;
static uint64_t progress; ///< changes whenever some fiber gets on
static void (*entry)(void **);
static void **arguments;

static void yield() { swapcontext(&fibers[currentThread].context, &scheduler); }

extern "C" uint32_t emu_tid_x() { return currentThread; }
extern "C" uint32_t emu_ctaid_x() { return currentBlock; }
extern "C" uint32_t emu_nctaid_x() { return numBlocks; }
extern "C" void emu_barrier() {
  ++progress;
  fibers[currentThread].state = Fiber::AtBarrier;
  yield();
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

/// Gives `words` to the warp and waits for the other lanes. What they gave is
/// valid until the lane's next collective operation.
static void meetWarp(const uint32_t *words, unsigned count) {
  uint32_t self = currentThread, first = self / 32 * 32;
  Fiber &fiber = fibers[self];
  memcpy(fiber.given[fiber.collectives % 2], words, count * 4);
  uint64_t number = ++fiber.collectives;
  ++progress;
  for (uint32_t lane = first; lane < first + 32; ++lane)
    while (fibers[lane].collectives < number)
      yield();
}

static const uint32_t *givenBy(uint32_t lane) {
  Fiber &self = fibers[currentThread];
  return fibers[currentThread / 32 * 32 + lane]
      .given[(self.collectives - 1) % 2];
}

extern "C" uint32_t emu_shfl_bfly(uint32_t value, uint32_t mask) {
  meetWarp(&value, 1);
  return givenBy((currentThread % 32) ^ mask)[0];
}

/// Lane l gives the address of row l % 8 of matrix l / 8, 16 bytes.
extern "C" void emu_ldmatrix(uint32_t *result, const void *row,
                             uint32_t transpose) {
  uintptr_t address = reinterpret_cast<uintptr_t>(row);
  uint32_t halves[2] = {uint32_t(address), uint32_t(address >> 32)};
  if (address % 16) {
    fprintf(stderr, "ldmatrix from a row that is not aligned\n");
    abort();
  }
  meetWarp(halves, 2);
  uint32_t lane = currentThread % 32;
  auto element = [&](uint32_t matrix, uint32_t r, uint32_t c) {
    const uint32_t *from = givenBy(matrix * 8 + r);
    auto *base =
        reinterpret_cast<const uint16_t *>(from[0] | uint64_t(from[1]) << 32);
    return uint32_t(base[c]);
  };
  for (uint32_t matrix = 0; matrix < 4; ++matrix) {
    uint32_t r = lane / 4, c = lane % 4 * 2;
    result[matrix] =
        transpose ? element(matrix, c, r) | element(matrix, c + 1, r) << 16
                  : element(matrix, r, c) | element(matrix, r, c + 1) << 16;
  }
}

static float fromBits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

static float fromHalf(uint32_t h) {
  int exponent = h >> 10 & 31, mantissa = h & 1023;
  float value = exponent == 31 ? (mantissa ? NAN : INFINITY)
                : exponent == 0
                    ? std::ldexp(float(mantissa), -24)
                    : std::ldexp(float(mantissa + 1024), exponent - 25);
  return h >> 15 ? -value : value;
}

/// kind 0: bf16, 1: f16, both 16 deep; 2: tf32, 8 deep.
extern "C" void emu_mma(float *result, uint32_t kind, const uint32_t *operands,
                        const float *sums) {
  meetWarp(operands, 6);
  uint32_t lane = currentThread % 32;
  auto half = [&](uint32_t word, uint32_t part) {
    uint32_t bits = part ? word >> 16 : word & 0xffff;
    return kind == 0 ? fromBits(bits << 16) : fromHalf(bits);
  };
  auto left = [&](uint32_t row, uint32_t k) {
    if (kind == 2)
      return fromBits(givenBy(row % 8 * 4 + k % 4)[row / 8 + k / 4 * 2] &
                      0xffffe000);
    return half(givenBy(row % 8 * 4 + k % 8 / 2)[row / 8 + k / 8 * 2], k % 2);
  };
  auto right = [&](uint32_t k, uint32_t column) {
    if (kind == 2)
      return fromBits(givenBy(column * 4 + k % 4)[4 + k / 4] & 0xffffe000);
    return half(givenBy(column * 4 + k % 8 / 2)[4 + k / 8], k % 2);
  };
  for (uint32_t i = 0; i < 4; ++i) {
    double sum = sums[i];
    uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    for (uint32_t k = 0; k < (kind == 2 ? 8 : 16); ++k)
      sum += double(left(row, k)) * right(k, column);
    result[i] = float(sum);
  }
}

/// What LLVM calls to round to bf16; libgcc has none. The result is the low
/// half of the first vector register, where _Float16 goes too.
extern "C" _Float16 __truncsfbf2(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  uint16_t rounded =
      value != value ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  _Float16 result;
  memcpy(&result, &rounded, 2);
  return result;
}

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

static void run(const Copy &copy) {
  memcpy(copy.to, copy.from, copy.valid);
  memset(static_cast<char *>(copy.to) + copy.valid, 0, copy.bytes - copy.valid);
}

/// Odd threads copy as late as allowed and even ones at once, so that a wait
/// that is missing shows, and a stage that is written too early too.
extern "C" void emu_cp_async(void *to, const void *from, uint32_t bytes,
                             uint32_t valid) {
  if (reinterpret_cast<uintptr_t>(to) % bytes ||
      (valid && reinterpret_cast<uintptr_t>(from) % bytes)) {
    fprintf(stderr, "asynchronous copy that is not aligned\n");
    abort();
  }
  Copy copy = {to, from, bytes, valid};
  if (currentThread % 2 == 0)
    run(copy);
  else
    fibers[currentThread].open.push_back(copy);
}

extern "C" void emu_cp_commit() {
  Fiber &fiber = fibers[currentThread];
  fiber.groups.push_back(std::move(fiber.open));
  fiber.open.clear();
}

extern "C" void emu_cp_wait(uint32_t pending) {
  Fiber &fiber = fibers[currentThread];
  for (; fiber.groups.size() > pending; fiber.groups.pop_front())
    for (const Copy &copy : fiber.groups.front())
      run(copy);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

static void threadMain() {
  entry(arguments);
  ++progress;
  fibers[currentThread].state = Fiber::Finished;
  yield();
}

/// 0, or 1 where threads wait for others that never come.
extern "C" int emu_launch(void (*fn)(void **), void **args, uint32_t grid,
                          uint32_t threads) {
  constexpr size_t stackBytes = 128 * 1024;
  entry = fn;
  arguments = args;
  numBlocks = grid;
  std::vector<std::vector<char>> stacks(threads, std::vector<char>(stackBytes));
  for (currentBlock = 0; currentBlock < grid; ++currentBlock) {
    fibers.clear();
    fibers.resize(threads);
    for (uint32_t t = 0; t < threads; ++t) {
      ucontext_t &context = fibers[t].context;
      getcontext(&context);
      context.uc_stack.ss_sp = stacks[t].data();
      context.uc_stack.ss_size = stackBytes;
      context.uc_link = &scheduler;
      makecontext(&context, threadMain, 0);
    }
    // The order changes from round to round: a missing barrier shows.
    for (uint32_t round = 0;; ++round) {
      uint64_t before = progress;
      uint32_t finished = 0, waiting = 0;
      for (uint32_t i = 0; i < threads; ++i) {
        uint32_t t = round % 2 ? threads - 1 - i : i;
        if (fibers[t].state == Fiber::Ready) {
          currentThread = t;
          swapcontext(&scheduler, &fibers[t].context);
        }
        finished += fibers[t].state == Fiber::Finished;
        waiting += fibers[t].state == Fiber::AtBarrier;
      }
      if (finished == threads)
        break;
      if (waiting == threads)
        for (Fiber &fiber : fibers)
          fiber.state = Fiber::Ready;
      else if (progress == before)
        return 1;
    }
  }
  return 0;
}
