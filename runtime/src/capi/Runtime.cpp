// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// The C ABI over the engine: checks arguments, turns errors into statuses,
/// adds nothing.

#include "pgkp-c/runtime.h"

#include "base/Env.h"
#include "engine/Engine.h"
#include "schema/Envelope.h"
#include "store/ProfileFile.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

using namespace pgkp::rt;

struct pgkp_status {
  pgkp_code_t code;
  std::string message;
};

struct pgkp_engine {
  std::atomic<int> references{1};
  std::shared_ptr<Engine> engine;
};

struct pgkp_module {
  std::atomic<int> references{1};
  std::shared_ptr<LoadedModule> module;
};

namespace {

pgkp_code_t toC(Code code) {
  switch (code) {
  case Code::invalidArgument:
    return PGKP_INVALID_ARGUMENT;
  case Code::notFound:
    return PGKP_NOT_FOUND;
  case Code::unavailable:
    return PGKP_UNAVAILABLE;
  case Code::exhausted:
    return PGKP_EXHAUSTED;
  case Code::deadline:
    return PGKP_DEADLINE;
  case Code::cancelled:
    return PGKP_CANCELLED;
  case Code::corrupt:
    return PGKP_CORRUPT;
  case Code::permission:
    return PGKP_PERMISSION;
  case Code::unsupported:
    return PGKP_UNSUPPORTED;
  case Code::io:
    return PGKP_IO;
  case Code::internal:
    return PGKP_INTERNAL;
  }
  return PGKP_INTERNAL;
}

pgkp_status_t *fail(pgkp_code_t code, std::string message) {
  return new pgkp_status{code, std::move(message)};
}

pgkp_status_t *fail(const Error &error) {
  return fail(toC(error.code), error.message);
}

pgkp_status_t *toStatus(const Status &status) {
  return status ? nullptr : fail(status.error());
}

pgkp_status_t *missing(const char *function, const char *argument) {
  return fail(PGKP_INVALID_ARGUMENT,
              fmt::format("{}: {} is null", function, argument));
}

char *copyString(const std::string &text) { return strdup(text.c_str()); }

/// Nothing thrown below (out of memory) may cross the border.
template <typename Body> pgkp_status_t *guarded(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return fail(PGKP_EXHAUSTED, "out of memory");
  } catch (const std::exception &e) {
    return fail(PGKP_INTERNAL, e.what());
  }
}

#define PGKP_REQUIRE(argument)                                                 \
  do {                                                                         \
    if (!(argument))                                                           \
      return missing(__func__, #argument);                                     \
  } while (false)

const char *policyName(int32_t policy) {
  switch (policy) {
  case PGKP_POLICY_OFF:
    return "off";
  case PGKP_POLICY_EAGER:
    return "eager";
  case PGKP_POLICY_LAZY:
    return "lazy";
  case PGKP_POLICY_PREDICTIVE:
    return "predictive";
  default:
    return nullptr;
  }
}

} // namespace

pgkp_code_t pgkp_status_code(const pgkp_status_t *status) {
  return status ? status->code : PGKP_OK;
}
const char *pgkp_status_message(const pgkp_status_t *status) {
  return status ? status->message.c_str() : "";
}
void pgkp_status_free(pgkp_status_t *status) { delete status; }

const char *pgkp_version(void) { return PGKP_VERSION_STRING; }
uint32_t pgkp_abi_version(void) { return PGKP_ABI_VERSION; }

void pgkp_engine_options_init(pgkp_engine_options_t *options) {
  if (!options)
    return;
  *options = pgkp_engine_options_t{};
  options->struct_size = sizeof *options;
  options->workers = options->policy = options->fallback = -1;
}

pgkp_status_t *pgkp_engine_create(const pgkp_engine_options_t *options,
                                  pgkp_engine_t **out_engine) {
  PGKP_REQUIRE(out_engine);
  return guarded([&]() -> pgkp_status_t * {
    pgkp_engine_options_t given;
    pgkp_engine_options_init(&given);
    if (options) {
      if (options->struct_size == 0 || options->struct_size > sizeof given)
        return fail(
            PGKP_INVALID_ARGUMENT,
            fmt::format(
                "pgkp_engine_create: struct_size is {}; expected at most {}",
                options->struct_size, sizeof given));
      std::memcpy(&given, options, options->struct_size);
    }
    EngineOptions o;
    if (given.device)
      o.device = given.device;
    if (given.cache_dir)
      o.cacheDir = given.cache_dir;
    if (given.worker)
      o.worker = given.worker;
    o.workers = given.workers;
    if (given.policy >= 0) {
      const char *name = policyName(given.policy);
      if (!name)
        return fail(
            PGKP_INVALID_ARGUMENT,
            fmt::format("pgkp_engine_create: no policy {}", given.policy));
      o.policy = name;
    } else if (auto name = getEnv("PGKP_POLICY")) {
      o.policy = *name;
    }
    if (given.fallback > PGKP_FALLBACK_NONE)
      return fail(
          PGKP_INVALID_ARGUMENT,
          fmt::format("pgkp_engine_create: no fallback {}", given.fallback));
    if (given.fallback >= 0)
      o.fallbackGeneric = given.fallback == PGKP_FALLBACK_GENERIC;
    else
      o.fallbackGeneric = getEnv("PGKP_FALLBACK").value_or("generic") != "none";
    if (given.profile) {
      auto profile = loadProfile(given.profile);
      if (profile)
        o.profile =
            std::make_shared<const pgkp::schema::ProfileT>(std::move(*profile));
      else if (profile.error().code != Code::notFound)
        return fail(profile.error());
    }
    auto engine = Engine::create(std::move(o));
    if (!engine)
      return fail(engine.error());
    *out_engine = new pgkp_engine{.engine = std::move(*engine)};
    return nullptr;
  });
}

void pgkp_engine_retain(pgkp_engine_t *engine) { ++engine->references; }
void pgkp_engine_release(pgkp_engine_t *engine) {
  if (engine && --engine->references == 0)
    delete engine;
}

pgkp_status_t *pgkp_engine_metrics(pgkp_engine_t *engine, char **out_json) {
  PGKP_REQUIRE(engine);
  PGKP_REQUIRE(out_json);
  return guarded([&]() -> pgkp_status_t * {
    *out_json = copyString(engine->engine->metricsJson());
    return nullptr;
  });
}

void pgkp_string_free(char *text) { std::free(text); }

pgkp_status_t *pgkp_module_load_file(pgkp_engine_t *engine, const char *path,
                                     pgkp_module_t **out_module) {
  PGKP_REQUIRE(engine);
  PGKP_REQUIRE(path);
  PGKP_REQUIRE(out_module);
  return guarded([&]() -> pgkp_status_t * {
    auto bundle = readSealed(FileKind::bundle, path);
    if (!bundle)
      return fail(bundle.error());
    auto module = engine->engine->load(std::move(*bundle));
    if (!module)
      return fail(module.error());
    *out_module = new pgkp_module{.module = std::move(*module)};
    return nullptr;
  });
}

void pgkp_module_retain(pgkp_module_t *module) { ++module->references; }
void pgkp_module_release(pgkp_module_t *module) {
  if (module && --module->references == 0)
    delete module;
}

pgkp_status_t *pgkp_module_find_entry(pgkp_module_t *module, const char *name,
                                      uint32_t *out_entry) {
  PGKP_REQUIRE(module);
  PGKP_REQUIRE(name);
  PGKP_REQUIRE(out_entry);
  return guarded([&]() -> pgkp_status_t * {
    const Module &m = module->module->module();
    const auto entry = m.findEntry(name);
    if (!entry)
      return fail(PGKP_NOT_FOUND,
                  fmt::format("'{}' has no entry '{}'", m.name(), name));
    *out_entry = *entry;
    return nullptr;
  });
}

pgkp_status_t *pgkp_module_find_kernel(pgkp_module_t *module, const char *name,
                                       uint32_t *out_kernel) {
  PGKP_REQUIRE(module);
  PGKP_REQUIRE(name);
  PGKP_REQUIRE(out_kernel);
  return guarded([&]() -> pgkp_status_t * {
    const Module &m = module->module->module();
    for (size_t i = 0; i < m.kernels().size(); ++i)
      if (m.kernels()[i].name == name) {
        *out_kernel = static_cast<uint32_t>(i);
        return nullptr;
      }
    return fail(PGKP_NOT_FOUND,
                fmt::format("'{}' has no kernel '{}'", m.name(), name));
  });
}

pgkp_status_t *pgkp_module_announce(pgkp_module_t *module, uint32_t entry,
                                    const int64_t *roots, uint32_t num_roots,
                                    double delay_s) {
  PGKP_REQUIRE(module);
  PGKP_REQUIRE(roots || num_roots == 0);
  return guarded([&] {
    return toStatus(
        module->module->announce(entry, {roots, num_roots}, delay_s));
  });
}

pgkp_status_t *pgkp_module_explain(pgkp_module_t *module, uint32_t kernel,
                                   const int64_t *extents, uint32_t num_extents,
                                   char **out_line) {
  PGKP_REQUIRE(module);
  PGKP_REQUIRE(extents || num_extents == 0);
  PGKP_REQUIRE(out_line);
  return guarded([&]() -> pgkp_status_t * {
    const auto kernels = module->module->module().kernels();
    if (kernel >= kernels.size() || kernels[kernel].dims.size() != num_extents)
      return fail(
          PGKP_INVALID_ARGUMENT,
          fmt::format("pgkp_module_explain: no kernel {} with {} extents",
                      kernel, num_extents));
    *out_line =
        copyString(module->module->explain(kernel, {extents, num_extents}));
    return nullptr;
  });
}

pgkp_status_t *pgkp_module_save_profile(pgkp_module_t *module,
                                        const char *path) {
  PGKP_REQUIRE(module);
  PGKP_REQUIRE(path);
  return guarded([&] {
    return toStatus(saveProfileMerged(path, module->module->profile()));
  });
}

pgkp_status_t *pgkp_context_create(pgkp_module_t *module,
                                   pgkp_context_t **out_context) {
  PGKP_REQUIRE(module);
  PGKP_REQUIRE(out_context);
  return guarded([&]() -> pgkp_status_t * {
    auto context = Context::create(module->module);
    if (!context)
      return fail(context.error());
    *out_context = context->release();
    return nullptr;
  });
}

void pgkp_context_destroy(pgkp_context_t *context) {
  delete static_cast<Context *>(context);
}

pgkp_status_t *pgkp_context_call(pgkp_context_t *context, uint32_t entry,
                                 const int64_t *roots, uint32_t num_roots,
                                 void *const *args, uint32_t num_args) {
  PGKP_REQUIRE(context);
  PGKP_REQUIRE(roots || num_roots == 0);
  PGKP_REQUIRE(args || num_args == 0);
  return guarded([&] {
    return toStatus(static_cast<Context *>(context)->call(
        entry, {roots, num_roots}, {args, num_args}));
  });
}

pgkp_status_t *pgkp_context_dispatch(pgkp_context_t *context, uint32_t kernel,
                                     const int64_t *extents,
                                     uint32_t num_extents, void *const *args,
                                     uint32_t num_args) {
  PGKP_REQUIRE(context);
  PGKP_REQUIRE(extents || num_extents == 0);
  PGKP_REQUIRE(args || num_args == 0);
  return guarded([&] {
    return toStatus(static_cast<Context *>(context)->dispatch(
        kernel, {extents, num_extents}, {args, num_args}));
  });
}

pgkp_status_t *pgkp_context_synchronize(pgkp_context_t *context) {
  PGKP_REQUIRE(context);
  return guarded(
      [&] { return toStatus(static_cast<Context *>(context)->synchronize()); });
}
