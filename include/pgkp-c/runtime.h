/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The PGKP runtime, for C and for everything that can call C. This header is
 * the only stable surface of the runtime: symbols may be added, never removed
 * or changed while PGKP_ABI_VERSION's major number stands.
 *
 * Conventions
 *  - Objects are opaque and counted: *_create gives one reference, *_retain
 *    adds one, *_release drops one. Null is allowed in *_release.
 *  - A function that can fail returns a status: null is success, otherwise an
 *    object to be read and freed with pgkp_status_free. Out-parameters come
 *    last and are untouched on failure.
 *  - Structs begin with struct_size; *_init fills in the defaults.
 *  - Strings are UTF-8 and null-terminated, owned by whoever made them.
 *  - Times are seconds (double), extents and roots int64_t.
 */
#ifndef PGKP_C_RUNTIME_H
#define PGKP_C_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PGKP_ABI_VERSION 1

#if defined(_WIN32)
#error "PGKP supports Linux only"
#endif
#define PGKP_EXPORT __attribute__((visibility("default")))

/*===-- Status
 * -------------------------------------------------------------===*/

typedef enum pgkp_code {
  PGKP_OK = 0,
  PGKP_INVALID_ARGUMENT,
  PGKP_NOT_FOUND,
  PGKP_UNAVAILABLE,
  PGKP_EXHAUSTED,
  PGKP_DEADLINE,
  PGKP_CANCELLED,
  PGKP_CORRUPT,
  PGKP_PERMISSION,
  PGKP_UNSUPPORTED,
  PGKP_IO,
  PGKP_INTERNAL
} pgkp_code_t;

/* Thread-compatible. */
typedef struct pgkp_status pgkp_status_t;

/* PGKP_OK for null. Since 1. */
PGKP_EXPORT pgkp_code_t pgkp_status_code(const pgkp_status_t *status);
/* One line: what, where, what was expected. "" for null. Since 1. */
PGKP_EXPORT const char *pgkp_status_message(const pgkp_status_t *status);
PGKP_EXPORT void pgkp_status_free(pgkp_status_t *status);

/* "0.1.0". Since 1. */
PGKP_EXPORT const char *pgkp_version(void);
/* PGKP_ABI_VERSION of the library. Since 1. */
PGKP_EXPORT uint32_t pgkp_abi_version(void);

/*===-- Engine
 * -------------------------------------------------------------===*/

typedef enum pgkp_policy {
  PGKP_POLICY_OFF = 0, /* generic variants only */
  PGKP_POLICY_EAGER, /* the caller waits for the key's variant at its first use
                      */
  PGKP_POLICY_LAZY, /* generic now, variant in the background once it was missed
                     */
  PGKP_POLICY_PREDICTIVE
} pgkp_policy_t;

typedef enum pgkp_fallback {
  PGKP_FALLBACK_GENERIC = 0,
  PGKP_FALLBACK_NONE /* wait for the variant; the wait moves its job to the
                        front */
} pgkp_fallback_t;

/* Zero or null: the PGKP_* environment variable, else the default. */
typedef struct pgkp_engine_options {
  size_t struct_size;
  const char *device;    /* "host" (default), "sim"; "cuda" where built */
  const char *cache_dir; /* "none": memory only */
  const char *worker;    /* path of pgkp-worker */
  const char *profile;   /* file to start from; may be missing */
  int32_t workers;       /* -1: default */
  int32_t policy;        /* pgkp_policy_t; -1: default */
  int32_t fallback;      /* pgkp_fallback_t; -1: default */
  uint64_t seed;
} pgkp_engine_options_t;

/* Owns the worker processes, the store and at most three threads. Thread-safe.
 */
typedef struct pgkp_engine pgkp_engine_t;

PGKP_EXPORT void pgkp_engine_options_init(pgkp_engine_options_t *options);
PGKP_EXPORT pgkp_status_t *
pgkp_engine_create(const pgkp_engine_options_t *options,
                   pgkp_engine_t **out_engine);
PGKP_EXPORT void pgkp_engine_retain(pgkp_engine_t *engine);
/* The last release stops preparation, reaps workers, unloads and joins within 2
 * s. Contexts and modules keep their engine alive. */
PGKP_EXPORT void pgkp_engine_release(pgkp_engine_t *engine);
/* All metrics as one JSON object; free with pgkp_string_free. Since 1. */
PGKP_EXPORT pgkp_status_t *pgkp_engine_metrics(pgkp_engine_t *engine,
                                               char **out_json);
PGKP_EXPORT void pgkp_string_free(char *text);

/*===-- Modules
 * ------------------------------------------------------------===*/

/* A loaded bundle. Thread-safe. An engine holds one module in this version; a
 * second load is PGKP_UNSUPPORTED. */
typedef struct pgkp_module pgkp_module_t;

/* Reads and verifies a .pgkp bundle. Generic variants are dispatchable on
 * return. */
PGKP_EXPORT pgkp_status_t *pgkp_module_load_file(pgkp_engine_t *engine,
                                                 const char *path,
                                                 pgkp_module_t **out_module);
PGKP_EXPORT void pgkp_module_retain(pgkp_module_t *module);
PGKP_EXPORT void pgkp_module_release(pgkp_module_t *module);
PGKP_EXPORT pgkp_status_t *pgkp_module_find_entry(pgkp_module_t *module,
                                                  const char *name,
                                                  uint32_t *out_entry);
PGKP_EXPORT pgkp_status_t *pgkp_module_find_kernel(pgkp_module_t *module,
                                                   const char *name,
                                                   uint32_t *out_kernel);
/* "entry will run with these roots in about delay_s": the best lead time there
 * is. Never blocks. */
PGKP_EXPORT pgkp_status_t *
pgkp_module_announce(pgkp_module_t *module, uint32_t entry,
                     const int64_t *roots, uint32_t num_roots, double delay_s);
/* Why calls of the kernel with these extents run what they run: one line; free
 * with pgkp_string_free. */
PGKP_EXPORT pgkp_status_t *pgkp_module_explain(pgkp_module_t *module,
                                               uint32_t kernel,
                                               const int64_t *extents,
                                               uint32_t num_extents,
                                               char **out_line);
/* Writes what this run saw, merged with what the file held. */
PGKP_EXPORT pgkp_status_t *pgkp_module_save_profile(pgkp_module_t *module,
                                                    const char *path);

/*===-- Contexts and calls
 * -------------------------------------------------===*/

/* A stream of work on the device. Thread-compatible: one calling thread at a
 * time. */
typedef struct pgkp_context pgkp_context_t;

PGKP_EXPORT pgkp_status_t *pgkp_context_create(pgkp_module_t *module,
                                               pgkp_context_t **out_context);
PGKP_EXPORT void pgkp_context_destroy(pgkp_context_t *context);
/* Runs an entry: args are pointers to MLIR memref descriptors, inputs then
 * outputs, outputs allocated with the shapes of the manifest. Work is issued in
 * stream order. */
PGKP_EXPORT pgkp_status_t *
pgkp_context_call(pgkp_context_t *context, uint32_t entry, const int64_t *roots,
                  uint32_t num_roots, void *const *args, uint32_t num_args);
/* Runs one kernel, best variant first; args as in pgkp-c/program.h. */
PGKP_EXPORT pgkp_status_t *
pgkp_context_dispatch(pgkp_context_t *context, uint32_t kernel,
                      const int64_t *extents, uint32_t num_extents,
                      void *const *args, uint32_t num_args);
PGKP_EXPORT pgkp_status_t *pgkp_context_synchronize(pgkp_context_t *context);

#ifdef __cplusplus
}
#endif
#endif /* PGKP_C_RUNTIME_H */
