// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Randomness through an interface: a seed reproduces a run.
#pragma once

#include <cstdint>

namespace pgkp::rt {

/// Thread-compatible: one user at a time.
class Random {
public:
  virtual ~Random() = default;
  /// 64 uniform bits.
  virtual uint64_t next() = 0;

  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Uniform in [0, bound) without modulo bias (Lemire 2019); bound > 0.
  uint64_t below(uint64_t bound) {
    __uint128_t product = static_cast<__uint128_t>(next()) * bound;
    if (static_cast<uint64_t>(product) < bound) {
      const uint64_t floor = -bound % bound;
      while (static_cast<uint64_t>(product) < floor)
        product = static_cast<__uint128_t>(next()) * bound;
    }
    return static_cast<uint64_t>(product >> 64);
  }
};

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): equidistributed, one word of
/// state.
class SeededRandom final : public Random {
public:
  explicit SeededRandom(uint64_t seed) : state(seed) {}
  uint64_t next() override {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

private:
  uint64_t state;
};

} // namespace pgkp::rt
