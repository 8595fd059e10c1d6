// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a device function on the host: every thread of a block is a fiber, a
// barrier returns to the scheduler. Blocks run one after the other. A barrier
// that only some of the threads reach is reported, not waited for.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ucontext.h>
#include <vector>

static uint32_t currentThread, currentBlock, numBlocks;
static ucontext_t scheduler;
static std::vector<ucontext_t> fibers;
static std::vector<char> finished;
static uint32_t atBarrier;
static void (*entry)(void **);
static void **arguments;

extern "C" uint32_t emu_tid_x() { return currentThread; }
extern "C" uint32_t emu_ctaid_x() { return currentBlock; }
extern "C" uint32_t emu_nctaid_x() { return numBlocks; }
extern "C" void emu_barrier() {
  ++atBarrier;
  swapcontext(&fibers[currentThread], &scheduler);
}

static void threadMain() {
  entry(arguments);
  finished[currentThread] = 1;
  swapcontext(&fibers[currentThread], &scheduler);
}

/// 0, or 1 where threads of a block did not meet at a barrier.
extern "C" int emu_launch(void (*fn)(void **), void **args, uint32_t grid,
                          uint32_t threads) {
  constexpr size_t stackBytes = 64 * 1024;
  entry = fn;
  arguments = args;
  numBlocks = grid;
  std::vector<std::vector<char>> stacks(threads, std::vector<char>(stackBytes));
  for (currentBlock = 0; currentBlock < grid; ++currentBlock) {
    fibers.assign(threads, ucontext_t());
    finished.assign(threads, 0);
    for (uint32_t t = 0; t < threads; ++t) {
      getcontext(&fibers[t]);
      fibers[t].uc_stack.ss_sp = stacks[t].data();
      fibers[t].uc_stack.ss_size = stackBytes;
      fibers[t].uc_link = &scheduler;
      makecontext(&fibers[t], threadMain, 0);
    }
    // The order changes from phase to phase: a missing barrier shows.
    for (uint32_t phase = 0;; ++phase) {
      atBarrier = 0;
      uint32_t done = 0;
      for (uint32_t i = 0; i < threads; ++i) {
        uint32_t t = phase % 2 ? threads - 1 - i : i;
        if (finished[t]) {
          ++done;
          continue;
        }
        currentThread = t;
        swapcontext(&scheduler, &fibers[t]);
        done += finished[t];
      }
      if (done == threads)
        break;
      if (atBarrier != threads)
        return 1;
    }
  }
  return 0;
}
