/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A CUDA driver for tests: libcuda's functions over host memory.
 *
 * Device memory lies behind a fixed distance from where it can be touched, so
 * code that mistakes it for host memory ends with a fault. A "cubin" is a
 * shared object whose kernels are fake_kernel_fn functions; they run when they
 * are launched. What is in flight, and which stream is captured, is what the
 * test says. */
#ifndef PGKP_TESTS_FAKECUDA_H
#define PGKP_TESTS_FAKECUDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From a device pointer to the memory behind it. */
#define FAKE_CUDA_SHADOW ((int64_t)1 << 40)
#define FAKE_CUDA_HOST(pointer) ((void *)((char *)(pointer) + FAKE_CUDA_SHADOW))

typedef struct fake_launch {
  unsigned grid[3], block[3], shared_bytes;
  int programmatic;
} fake_launch_t;
/* The whole grid in one call; params as cuLaunchKernel takes them. */
typedef void (*fake_kernel_fn)(const fake_launch_t *launch, void **params);

typedef struct fake_counts {
  uint64_t loads, unloads, launches, allocations, frees, copies, records,
      stream_queries;
  /* Loads and unloads while something was in flight or captured. */
  uint64_t loads_in_flight, loads_in_capture;
  uint64_t live_streams, live_events, live_modules, live_bytes;
  fake_launch_t last;
  int max_dynamic_shared; /* as set last */
  int primary_references;
} fake_counts_t;

typedef struct fake_cuda {
  /* Everything as after start; what lives stays. */
  void (*reset)(void);
  fake_counts_t (*counts)(void);
  /* `function` fails with `result` at its nth call from now (1 = next). */
  void (*fail)(const char *function, int result, unsigned nth);
  /* Work issued on the stream stays in flight; null: on every stream. */
  void (*hold)(void *stream, int held);
  void (*capture)(void *stream, int capturing);
  void (*set_devices)(int count, int major, int minor);
  void (*set_memory)(uint64_t bytes); /* what a device has */
} fake_cuda_t;

/* The library's only symbol that libcuda lacks: "fakeCuda". */
typedef const fake_cuda_t *(*fake_cuda_fn)(void);

#ifdef __cplusplus
}
#endif
#endif
