// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/Engine.h"
#include "engine/EngineFixture.h"
#include "engine/SharedLoop.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <thread>

using namespace pgkp::rt;
using namespace pgkp::rt::testing;
namespace fs = std::filesystem;

namespace {

/// Threads of this process with the name.
size_t threadsNamed(const std::string &name) {
  size_t count = 0;
  for (const auto &task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string text;
    std::getline(file, text);
    count += text == name;
  }
  return count;
}

/// A module and a context of it.
struct Loaded {
  std::shared_ptr<LoadedModule> module;
  std::unique_ptr<Context> context;

  Loaded(const std::shared_ptr<Engine> &engine, const std::string &kernel) {
    auto loaded = engine->load(fixtures::pack(simBundle(kernel)));
    EXPECT_TRUE(loaded) << loaded.error().message;
    module = *loaded;
    auto made = Context::create(module);
    EXPECT_TRUE(made) << made.error().message;
    context = std::move(*made);
  }

  Status run(int64_t m) {
    const int64_t extents[] = {m};
    return context->dispatch(0, extents, {});
  }
};

std::vector<Event> dispatches(const Engine &engine) {
  std::vector<Event> found;
  for (const Event &event : engine.events())
    if (event.kind == EventKind::dispatch)
      found.push_back(event);
  return found;
}

size_t count(const Engine &engine, EventKind kind) {
  const std::vector<Event> events = engine.events();
  return static_cast<size_t>(
      std::count_if(events.begin(), events.end(),
                    [&](const Event &event) { return event.kind == kind; }));
}

TEST(Engine, SeveralModulesShareThreadsAndWorkers) {
  auto engine = *Engine::create(simOptions("eager"));
  {
    Loaded a(engine, "matmul"), b(engine, "product"), c(engine, "other");
    ASSERT_TRUE(a.run(1));
    ASSERT_TRUE(b.run(1));
    ASSERT_TRUE(c.run(32));
    EXPECT_EQ(threadsNamed("pgkp-planner"), 1u);
    EXPECT_EQ(threadsNamed("pgkp-loader"), 1u);
    EXPECT_EQ(threadsNamed("pgkp-workers"), 1u);
    // Each waited for a variant of its own, and no two share a key.
    std::set<uint32_t> keys;
    for (const Event &event : dispatches(*engine)) {
      EXPECT_EQ(event.a, static_cast<int64_t>(DispatchReason::waited));
      EXPECT_EQ(event.ran, kNoKey);
      keys.insert(event.key);
    }
    EXPECT_EQ(keys.size(), 3u);
    std::set<uint64_t> jobs;
    for (const Event &event : engine->events())
      if (event.kind == EventKind::jobStart)
        jobs.insert(event.id);
    // The first two have the same content, which is compiled once.
    EXPECT_EQ(jobs.size(), 2u);
    EXPECT_EQ(a.module->recordedUses().size(), 0u) << "no request began";
  }
  // A module that goes leaves the others alone.
  Loaded d(engine, "late");
  {
    Loaded e(engine, "short");
    ASSERT_TRUE(e.run(16));
  }
  ASSERT_TRUE(d.run(16));
  EXPECT_EQ(dispatches(*engine).back().ran, kNoKey);
}

TEST(Engine, AModuleThatGoesTakesItsJobsAlong) {
  auto engine = *Engine::create(simOptions("lazy"));
  Loaded stays(engine, "matmul");
  {
    Loaded goes(engine, "hang");
    ASSERT_TRUE(goes.run(1)); // generic; the job never ends
    for (int i = 0; i < 500 && count(*engine, EventKind::jobStart) == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(count(*engine, EventKind::jobStart), 1u);
  }
  // The only worker is free again.
  ASSERT_TRUE(stays.run(1));
  EXPECT_TRUE(stays.module->quiesce(30 * kNsPerSecond));
  ASSERT_TRUE(stays.run(1));
  EXPECT_EQ(dispatches(*engine).back().a,
            static_cast<int64_t>(DispatchReason::exact));
}

TEST(Engine, BadBundlesAreRefused) {
  auto engine = *Engine::create(simOptions("eager"));
  EXPECT_FALSE(engine->load({1, 2, 3}));
  Loaded after(engine, "matmul");
  EXPECT_TRUE(after.run(1));
}

TEST(SharedLoop, RoundsRunWhenWokenOrDue) {
  SteadyClock clock;
  SharedLoop loop("test-loop", clock);
  std::atomic<int> sleeper{0}, ticker{0};
  loop.add(&sleeper, [&](TimeNs) {
    ++sleeper;
    return kForever;
  });
  loop.add(&ticker, [&](TimeNs now) {
    ++ticker;
    return now + kNsPerMs;
  });
  while (ticker < 5)
    std::this_thread::yield();
  const int before = sleeper;
  EXPECT_LE(before, 2) << "once for each add";
  loop.wake();
  while (sleeper == before)
    std::this_thread::yield();
  loop.remove(&sleeper);
  const int after = sleeper;
  loop.wake();
  const int ticks = ticker;
  while (ticker < ticks + 3)
    std::this_thread::yield();
  EXPECT_EQ(sleeper, after);
}

} // namespace
