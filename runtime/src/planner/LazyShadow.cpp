// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/LazyShadow.h"

#include <algorithm>

namespace pgkp::rt {

void LazyShadow::fill(unsigned workers, TimeNs now) {
  while (!queue.empty() && running.size() < workers) {
    const auto best =
        std::min_element(queue.begin(), queue.end(), [this](KeyId a, KeyId b) {
          const Key &x = keys[a], &y = keys[b];
          if (x.misses != y.misses)
            return x.misses > y.misses;
          return x.firstMiss != y.firstMiss ? x.firstMiss < y.firstMiss : a < b;
        });
    const KeyId key = *best;
    queue.erase(best);
    keys[key].stage = Stage::running;
    const TimeNs compiled = now + fromSeconds(keys[key].compile);
    running.push_back({key, compiled, compiled + fromSeconds(keys[key].load)});
  }
}

void LazyShadow::advance(unsigned workers, TimeNs now) {
  while (!running.empty()) {
    const auto first = std::min_element(
        running.begin(), running.end(), [](const Job &a, const Job &b) {
          return a.compiled != b.compiled ? a.compiled < b.compiled
                                          : a.key < b.key;
        });
    if (first->compiled > now)
      break;
    const TimeNs at = first->compiled;
    loading.push_back(*first);
    running.erase(first);
    fill(workers, at);
  }
  std::erase_if(loading, [&](const Job &job) {
    if (job.ready > now)
      return false;
    keys[job.key].stage = Stage::ready;
    return true;
  });
  fill(workers, now);
}

void LazyShadow::onUse(KeyId id, double delta, double compile, double load,
                       unsigned workers, TimeNs now) {
  Key &key = keys[id];
  if (key.stage == Stage::ready)
    return;
  if (!fallback) {
    // One caller waits at a time: it finds a free worker.
    lostSeconds += compile + load;
    key.stage = Stage::ready;
    return;
  }
  advance(workers, now);
  if (key.stage == Stage::ready)
    return;
  lostSeconds += delta;
  if (key.misses++ == 0) {
    key.stage = Stage::queued;
    key.firstMiss = now;
    key.compile = compile;
    key.load = load;
    queue.push_back(id);
    fill(workers, now);
  }
}

} // namespace pgkp::rt
