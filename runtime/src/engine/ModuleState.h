// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What the files of the engine share: the state of an engine and of a
/// loaded module.
#pragma once

#include "base/Fork.h"
#include "devices/device/Device.h"
#include "devices/host/HostDevice.h"
#include "dispatch/DispatchTable.h"
#include "engine/Brain.h"
#include "engine/Engine.h"
#include "engine/JobLeases.h"
#include "engine/SharedLoop.h"
#include "history/History.h"
#include "history/ProfileRecorder.h"
#include "loader/Loader.h"
#include "metrics/EventLog.h"
#include "prepare/JobTable.h"
#include "prepare/Request.h"
#include "prepare/WorkerPool.h"
#include "store/Store.h"
#include "tuner/Tuner.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <variant>

namespace pgkp::rt {

/// Modules count their jobs (and load windows) from 1, and those of exercise()
/// from kExerciseJob; in the engine's pool and in the log the module's number
/// comes in front.
constexpr unsigned kJobBits = 40;
constexpr JobId kExerciseJob = JobId{1} << (kJobBits - 1);
constexpr JobId jobOf(uint32_t module, JobId job) {
  return JobId{module} << kJobBits | job;
}
constexpr uint32_t moduleOfJob(JobId job) {
  return static_cast<uint32_t>(job >> kJobBits);
}
constexpr JobId localJob(JobId job) {
  return job & ((JobId{1} << kJobBits) - 1);
}

struct Engine::Impl {
  EngineOptions options;
  SteadyClock clock;
  TimeNs start = 0;
  std::unique_ptr<Device> device;
  std::unique_ptr<Store> store;
  EventLog log;
  mutable std::mutex sinkMutex;
  MemorySink sink; ///< guarded by sinkMutex
  WorkerOptions workerOptions;
  /// A forked child has neither the threads nor the workers: it runs generic
  /// variants only, until it makes an engine of its own.
  const ForkMark made;

  /// Modules number their keys from 0; in the log each has a range of its own.
  std::atomic<KeyId> nextKey{0};
  std::atomic<uint32_t> nextModule{0};

  // One pool for all modules: jobs carry their module's number.
  std::mutex poolMutex;           ///< pool (its creation), preparing
  std::unique_ptr<JobTable> jobs; ///< one compilation for each content key
  WorkerPool *pool = nullptr;     ///< behind it
  std::map<uint32_t, LoadedModule::Impl *> preparing; ///< by module number
  WorkerCounts seenCounts;                            ///< the planning thread's

  // Last, so that no round runs while the rest goes away.
  SharedLoop planning{"pgkp-planner", clock};
  SharedLoop loading{"pgkp-loader", clock};

  ~Impl();
  void record(Event event);
  void drainLog();
  /// The pool, started by the first module that prepares.
  JobTable &startPool(bool background);
  void routeResult(CompileResult result);
  void noteWorkers();
};

// What the planning thread is told, in order.
struct RequestInput {
  uint32_t entry;
  std::vector<int64_t> roots;
};
struct RequestDoneInput {};
struct AnnounceInput {
  uint32_t entry;
  std::vector<int64_t> roots;
  TimeNs when;
};
struct HintInput {
  KeyId key;
  double probability, slack;
  std::vector<int64_t> extents;
};
/// The first miss of a key: wakes the planner, with an example of its extents.
struct MissInput {
  KeyId key;
  std::vector<int64_t> extents;
};
struct DemandInput {
  KeyId key;
};
struct ResultInput {
  CompileResult result;
};
/// Another process compiled it.
struct StoredInput {
  KeyId key;
};
struct LoadedInput {
  KeyId key;
  double seconds;
};
struct MeasuredInput {
  KeyId key;
  double generic, variant;
  bool worth;
};
struct LoadFailedInput {
  KeyId key;
  std::string reason;
  KeyStage next; ///< absent: compile it again; stored: load it again; failed:
                 ///< neither
};
using Input =
    std::variant<RequestInput, RequestDoneInput, AnnounceInput, HintInput,
                 MissInput, DemandInput, ResultInput, StoredInput, LoadedInput,
                 MeasuredInput, LoadFailedInput>;

struct LoadedModule::Impl final : BrainActions {
  std::shared_ptr<const Module> module;
  std::shared_ptr<Engine> engine;
  std::unique_ptr<SharedObject> program;
  std::vector<pgkp_entry_fn>
      entryFunctions; ///< by entry; null: the bundle has no program
  Activity activity;
  std::unique_ptr<DispatchTable> table;
  std::unique_ptr<Loader> loader;
  std::unique_ptr<Tuner> tuner; ///< the loading thread's
  /// What to measure the keys with that are being loaded; the loading thread's.
  std::map<KeyId, std::vector<int64_t>> examples;
  struct Generic {
    std::shared_ptr<const Image> image;
    Expr workspace;
  };
  std::vector<Generic> generics; ///< by kernel

  bool blocksOnMiss = false;
  bool prepares = false; ///< the planning and the loading thread run
  bool speculates = false;

  // Written by the planning thread, read by request threads. By key.
  struct KeyFlags {
    std::atomic<bool> ready{false};   ///< its own variant is dispatchable
    std::atomic<bool> settled{false}; ///< waiting for it is pointless or over
    std::atomic<bool> noticed{false}; ///< its first miss was reported
  };
  std::unique_ptr<KeyFlags[]> flags;

  History history;

  std::mutex inputMutex;
  std::deque<Input> inputs;
  bool stopping = false;

  std::mutex settleMutex;
  std::condition_variable settledChanged; ///< for blocked callers

  // The planning thread's own, under brainMutex for explain() and profile().
  mutable std::mutex brainMutex;
  std::unique_ptr<Brain> brain;
  JobTable *jobs = nullptr;   ///< the engine's
  std::vector<bool> demanded; ///< by key: somebody waits for it
  std::vector<std::vector<int64_t>> sampleExtents; ///< by key; empty: none seen
  std::unique_ptr<ProfileRecorder> recorder;
  std::vector<Digest> contentKeys; ///< by key
  std::unique_ptr<JobLeases> leases;
  schema::TargetT compileTarget;
  schema::CodeFormat compileFormat = schema::CodeFormat::elf;
  std::map<JobId, KeyId> jobKeys;
  std::map<JobId, KeyId> exerciseJobs;
  JobId nextExerciseJob = 0;
  bool exercising = false;
  TimeNs planDue = 0; ///< when the brain wants to plan at the latest

  std::mutex loadMutex;
  struct LoadTask {
    KeyId key;
    std::vector<int64_t> extents;
  };
  std::deque<LoadTask> loadTasks;
  bool loadBusy = false;

  KeyId keyBase = 0;         ///< of this module's keys in the event log
  uint32_t moduleNumber = 0; ///< in its engine

  ~Impl() override;

  // BrainActions, on the planning thread.
  bool startJob(KeyId key, JobId job) override;
  void startLoad(KeyId key) override;
  void cancelJob(KeyId key, JobId job) override;
  void setJobLimit(unsigned jobs) override;
  void record(Event event) override;

  Status loadProgram();
  Status publishGenerics();
  void startPreparation(std::unique_ptr<Policy> policy);
  void applyMeasurement(KeyId key, double genericNs, double variantNs);
  void applyProfile(const schema::ProfileT &profile);
  void stop();
  void push(Input input, bool wake);
  /// What the engine's planning thread does for this module, and when next.
  TimeNs planningRound(TimeNs now);
  void apply(Input &input, TimeNs now);
  void onResult(CompileResult &result, TimeNs now);
  void findStored();
  void rememberBuilt(KeyId key);
  void drainHistory(TimeNs now);
  void publishFlags();
  void raise(KeyId key);
  bool forked() const { return engine->get().made.forked(); }
  void exercise();
  /// The same for the loading thread.
  TimeNs loadingRound(TimeNs now);
  void submitLoad(const LoadTask &task);
  void finishLoad(LoadResult &result);
  Expected<TuningResult> measure(KeyId key, const Variant &variant,
                                 const std::vector<int64_t> &extents);
  void noteExtents(KeyId key, std::span<const int64_t> extents);
  void findExamples();
  CompileSpec compileSpec(KeyId key) const;
  CompileJob compileJob(KeyId key, JobId job) const;
  schema::RecipeT recipe(KeyId key) const;
  void noteRoots(uint32_t entry, std::span<const int64_t> roots);
  /// Blocks until the key is settled; \returns the time waited.
  TimeNs waitFor(KeyId key, TimeNs limit);
};

} // namespace pgkp::rt
