/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What compiled programs and kernels see of the runtime.
 *
 * Artifacts are linked without undefined symbols. A kernel touches only its
 * arguments; a program (the entries of a bundle) reaches the runtime through
 * the function table in its context. convert-pgkp-to-llvm emits these calls,
 * the runtime fills the table; both include this header. Fields are only ever
 * appended, and PGKP_PROGRAM_ABI grows when one changes its meaning. */
#ifndef PGKP_C_PROGRAM_H
#define PGKP_C_PROGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PGKP_PROGRAM_ABI 1
#define PGKP_KERNEL_SYMBOL "pgkp_kernel"
#define PGKP_ENTRY_PREFIX "pgkp_entry_"
/* A data symbol with PGKP_PROGRAM_ABI as uint32_t in every program. */
#define PGKP_PROGRAM_ABI_SYMBOL "pgkp_program_abi"
/* A data symbol of 32 bytes in every host artifact: its content key. dlopen
 * matches by path, so the loader compares it before publication. */
#define PGKP_BUILD_ID_SYMBOL "pgkp_build_id"

typedef struct pgkp_context pgkp_context_t;

/* A ranked memref: {allocated, aligned, offset, sizes[rank], strides[rank]},
 * offset and strides in elements, as MLIR lowers it. */
typedef struct pgkp_memref_header {
  void *allocated;
  void *aligned;
  int64_t offset;
  int64_t sizes_and_strides[]; /* rank sizes, then rank strides */
} pgkp_memref_header_t;

typedef struct pgkp_program_api {
  uint32_t abi;  /* PGKP_PROGRAM_ABI */
  uint32_t size; /* of this struct, in bytes */

  /* An entry starts with these root values. */
  void (*observe)(pgkp_context_t *ctx, uint32_t entry, const int64_t *roots,
                  uint32_t num_roots);

  /* A hint: the kernel is likely to run with these extents. Never blocks.
   * probability in [0, 1]; slack in seconds until first use, negative:
   * unknown; stage and provenance as in the dialect's enums. */
  void (*prepare)(pgkp_context_t *ctx, uint32_t kernel, const int64_t *extents,
                  uint32_t num_extents, double probability, double slack,
                  uint32_t stage, uint32_t provenance);

  /* Runs the best variant of the kernel on the context's stream. args[i]
   * points to a memref header or to a scalar; destinations come last. */
  void (*dispatch)(pgkp_context_t *ctx, uint32_t kernel, const int64_t *extents,
                   uint32_t num_extents, void *const *args, uint32_t num_args);

  /* Waits until a non-generic variant is ready, at most timeout_us. */
  void (*await)(pgkp_context_t *ctx, uint32_t kernel, const int64_t *extents,
                uint32_t num_extents, int64_t timeout_us);

  /* Stream-ordered device memory, 64-byte aligned, freed by `free` or, if an
   * entry leaves by an error, with the context. Never returns null: an
   * allocation that cannot be had marks the context as failed and returns
   * memory of the fallback pool or ends the request. */
  void *(*alloc)(pgkp_context_t *ctx, uint64_t bytes);
  void (*free)(pgkp_context_t *ctx, void *memory);

  /* Strided copy between two memrefs of equal shape. */
  void (*copy)(pgkp_context_t *ctx, uint32_t rank, uint32_t element_bytes,
               const void *src, const void *dst);

  /* The message names what went wrong (a cf.assert, a root mismatch). The
   * entry goes on and its results are void; the request fails. */
  void (*fail)(pgkp_context_t *ctx, const char *message);
} pgkp_program_api_t;

/* The part of a context that generated code reads. */
struct pgkp_context {
  const pgkp_program_api_t *api;
};

/* Host kernels: args as given to dispatch, then a pointer to scratch memory,
 * 64-byte aligned, of the artifact's workspace size (null where it is 0). */
typedef void (*pgkp_host_kernel_fn)(void *const *args);

/* Entries: inputs, then outputs, each a pointer to a memref header. Outputs
 * are allocated by the caller, with the shapes that the manifest gives. */
typedef void (*pgkp_entry_fn)(pgkp_context_t *ctx, void *const *args);

#ifdef __cplusplus
}
#endif
#endif /* PGKP_C_PROGRAM_H */
