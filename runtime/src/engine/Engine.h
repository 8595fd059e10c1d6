// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The only room that knows all the others: threads, wiring, lifetime.
#pragma once

#include "base/Clock.h"
#include "base/Status.h"
#include "engine/Brain.h"
#include "forecast/Forecaster.h"
#include "metrics/Event.h"
#include "pgkp-c/program.h"
#include "schema/Module.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pgkp::rt {

struct EngineOptions {
  std::string device = "host";
  /// Nothing: environment, then the default. "none": memory only.
  std::optional<std::string> cacheDir;
  std::optional<std::string>
      worker;       ///< path; nothing: environment, then beside the program
  int workers = -1; ///< -1: environment, then cores allowed minus one
  std::string policy = "predictive"; ///< a name that makePolicy knows
  bool fallbackGeneric = true;
  bool recordEvents =
      false; ///< keep the whole event log (else only what metrics need)
  std::shared_ptr<const schema::ProfileT>
      profile; ///< of earlier runs; may be null
  /// Oracle only: uses relative to the first request's begin.
  std::vector<FutureUse> future;
  /// Longest time a caller waits for a variant; then generic runs.
  TimeNs waitLimit = 60 * kNsPerSecond;
};

class Engine;
class LoadedModule;

/// A stream of work. Generated code sees its base, the function table.
/// Thread-compatible: one calling thread at a time.
class Context : public pgkp_context {
public:
  static Expected<std::unique_ptr<Context>>
  create(std::shared_ptr<LoadedModule> module);
  ~Context();
  Context(const Context &) = delete;

  /// Runs an entry: args are memref descriptors, inputs then outputs. The error
  /// of the first failed launch, allocation or check in it; its outputs are
  /// void then.
  Status call(uint32_t entry, std::span<const int64_t> roots,
              std::span<void *const> args);
  /// Runs one kernel.
  Status dispatch(uint32_t kernel, std::span<const int64_t> extents,
                  std::span<void *const> args);
  Status synchronize();
  /// From now on generic variants only, unseen by forecasts and metrics: the
  /// reference of comparisons.
  void setReferenceOnly(bool on);
  /// Off: calls are not logged and feed no forecast.
  void setRecording(bool on);

  struct Impl;

private:
  friend struct ContextAccess;
  Context();
  std::unique_ptr<Impl> impl;
};

/// A bundle in an engine. Thread-safe.
class LoadedModule : public std::enable_shared_from_this<LoadedModule> {
public:
  ~LoadedModule();
  const Module &module() const;
  const std::shared_ptr<Engine> &engine() const;
  /// A request for the entry is expected in `delay` seconds. Never blocks.
  Status announce(uint32_t entry, std::span<const int64_t> roots, double delay);
  /// One line: what runs for these extents and why.
  std::string explain(uint32_t kernel, std::span<const int64_t> extents);
  /// What this run saw.
  schema::ProfileT profile() const;
  /// Key uses in order, for the oracle; times since the first request's begin.
  std::vector<FutureUse> recordedUses() const;
  /// Stops or resumes preparation; what is loaded stays dispatchable.
  void pausePreparation(bool paused);
  /// Pauses, and stops the jobs that run.
  void cancelPreparation();
  /// Blocks until nothing is being prepared and every queue is drained, at most
  /// `limit`. \returns false at the limit.
  bool quiesce(TimeNs limit);
  /// Compiles known variants over and over, for measuring interference; results
  /// are dropped.
  void exercisePreparation(bool on);

  struct Impl;
  Impl &get() { return *impl; }

private:
  friend class Engine;
  static Expected<std::shared_ptr<LoadedModule>>
  create(std::shared_ptr<Engine> engine, std::vector<uint8_t> bundle);
  explicit LoadedModule(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// Owns device, store, workers and at most three threads. Thread-safe.
class Engine : public std::enable_shared_from_this<Engine> {
public:
  static Expected<std::shared_ptr<Engine>> create(EngineOptions options);
  /// Stops preparation, reaps workers, joins threads, within two seconds.
  ~Engine();

  /// Takes the payload of a bundle file. An engine holds any number of modules:
  /// they share its device, store, workers and threads, and nothing else.
  Expected<std::shared_ptr<LoadedModule>> load(std::vector<uint8_t> bundle);

  /// The bundle of a module source, from the store or built by a worker.
  Expected<std::vector<uint8_t>>
  bundleFor(const std::string &name, std::vector<uint8_t> source,
            const std::vector<std::string> &targets, double *buildSeconds);

  const EngineOptions &options() const;
  /// Appends to the event log.
  void record(Event event);
  /// The log so far, in order of time.
  std::vector<Event> events() const;
  TimeNs now() const;
  unsigned workers() const;
  std::string deviceName() const;
  /// Every metric of the run so far, as one JSON object.
  std::string metricsJson() const;

  struct Impl;
  Impl &get() { return *impl; }

private:
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace pgkp::rt
