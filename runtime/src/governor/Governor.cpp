// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "governor/Governor.h"

#include "base/Log.h"

#include <algorithm>
#include <cmath>

namespace pgkp::rt {

namespace {
constexpr double kPressureLimit = 0.05; ///< PSI "some" over a second
constexpr double kLatencyLimit = 1.05;  ///< p99 over baseline
constexpr TimeNs kPeriod = kNsPerSecond;
constexpr TimeNs kHold = 2 * kNsPerSecond;
constexpr double kMinPrice = 0.02, kContendedPrice = 1, kMaxPrice = 4;
constexpr double kPriceStep = 0.2; ///< eta, per second

class Aimd final : public Governor {
public:
  Aimd(std::unique_ptr<Probe> probe, GovernorOptions options)
      : probe(std::move(probe)), options(options), limit(options.maxWorkers) {}

  Capacity capacity(TimeNs now, bool serving, unsigned running) override {
    if (!started || now - sampled >= kNsPerSecond / 10) {
      load = probe->sample(now);
      sampled = now;
    }
    const double seconds = started ? toSeconds(now - adjusted) : 0;
    if (!started) {
      started = true;
      adjusted = now;
    } else if (now - adjusted >= kPeriod) {
      adjust(now, seconds, running);
      adjusted = now;
    }
    if (load.freeMemoryBytes > 0 && load.freeMemoryBytes < options.memoryBytes)
      return {.workers = 0, .cpuPrice = kMaxPrice};
    return {.workers = static_cast<unsigned>(std::clamp(
                limit, 1.0, std::max(1.0, ceiling(serving, running)))),
            .cpuPrice = price};
  }

  void onLatency(double ratio, TimeNs) override {
    latency = std::max(latency, ratio);
  }

private:
  /// Nobody is waiting: every allowed core. Serving: of those that are idle but
  /// for our own workers all but one, and a quarter of all at most.
  double ceiling(bool serving, unsigned running) const {
    const double all =
        std::min<double>(options.maxWorkers, std::ceil(load.cores));
    if (!serving)
      return all;
    return std::min({all, std::floor(load.cores / 4),
                     std::floor(load.idleCores + running) - 1});
  }

  void adjust(TimeNs now, double seconds, unsigned running) {
    const bool contended =
        load.pressure > kPressureLimit || latency > kLatencyLimit;
    latency = 0;
    if (contended && now >= heldUntil) {
      limit = std::max(1.0, std::floor(limit / 2));
      heldUntil = now + kHold;
    } else if (!contended && now >= heldUntil) {
      limit = std::min<double>(options.maxWorkers, limit + 1);
    }
    const double used = running / std::max(1.0, limit);
    price =
        std::clamp(price + kPriceStep * std::min(seconds, 10.0) * (used - 1),
                   kMinPrice, kMaxPrice);
    if (contended)
      price = std::max(price, kContendedPrice);
  }

  const std::unique_ptr<Probe> probe;
  const GovernorOptions options;
  MachineLoad load;
  double limit, price = kMinPrice, latency = 0;
  bool started = false;
  TimeNs sampled = 0, adjusted = 0, heldUntil = 0;
};

class Fixed final : public Governor {
public:
  explicit Fixed(unsigned workers) : workers(workers) {}
  Capacity capacity(TimeNs, bool, unsigned) override {
    return {.workers = workers};
  }

private:
  const unsigned workers;
};
} // namespace

std::unique_ptr<Governor> makeGovernor(std::unique_ptr<Probe> probe,
                                       GovernorOptions options) {
  options.maxWorkers = std::max(1u, options.maxWorkers);
  log(LogLevel::info, "governor: {}; at most {} workers", probe->describe(),
      options.maxWorkers);
  return std::make_unique<Aimd>(std::move(probe), options);
}

std::unique_ptr<Governor> makeGovernor(std::unique_ptr<Probe> probe,
                                       unsigned maxWorkers) {
  return makeGovernor(std::move(probe),
                      GovernorOptions{.maxWorkers = maxWorkers});
}

std::unique_ptr<Governor> makeFixedGovernor(unsigned workers) {
  return std::make_unique<Fixed>(workers);
}

} // namespace pgkp::rt
