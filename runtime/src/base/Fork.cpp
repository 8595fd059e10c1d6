// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/Fork.h"

#include <algorithm>
#include <pthread.h>
#include <vector>

namespace pgkp::rt {

std::atomic<uint32_t> detail::forkCount{0};

namespace {
/// Never destroyed: forks and objects may outlive static destructors.
struct Registry {
  std::mutex mutex; ///< all below; held over fork
  std::vector<ForkSafeMutex *> mutexes;
  std::vector<const void *> kept;

  static Registry &get() {
    static Registry &registry = *new Registry;
    return registry;
  }
};

void beforeFork() {
  Registry &registry = Registry::get();
  registry.mutex.lock();
  for (ForkSafeMutex *mutex : registry.mutexes)
    mutex->lock();
}

void afterFork() {
  Registry &registry = Registry::get();
  for (ForkSafeMutex *mutex : registry.mutexes)
    mutex->unlock();
  registry.mutex.unlock();
}

void inChild() {
  detail::forkCount.fetch_add(1, std::memory_order_relaxed);
  afterFork();
}
} // namespace

void detail::watchForks() {
  [[maybe_unused]] static const int registered =
      pthread_atfork(beforeFork, afterFork, inChild);
}

void detail::keepForever(const void *object) {
  Registry &registry = Registry::get();
  std::lock_guard lock(registry.mutex);
  registry.kept.push_back(object);
}

ForkSafeMutex::ForkSafeMutex() {
  detail::watchForks();
  Registry &registry = Registry::get();
  std::lock_guard lock(registry.mutex);
  registry.mutexes.push_back(this);
}

ForkSafeMutex::~ForkSafeMutex() {
  Registry &registry = Registry::get();
  std::lock_guard lock(registry.mutex);
  std::erase(registry.mutexes, this);
}

} // namespace pgkp::rt
