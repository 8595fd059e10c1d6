// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dispatch/DispatchTable.h"

#include <atomic>
#include <memory>
#include <vector>

namespace pgkp::rt::testing {

/// Knows whether it is loaded; `unloaded` counts destructions.
class FakeImage final : public Image {
public:
  static constexpr uint64_t kAlive = 0x600df00d;
  explicit FakeImage(std::shared_ptr<std::atomic<int>> unloaded = nullptr)
      : unloaded(std::move(unloaded)) {}
  ~FakeImage() override {
    state = 0xdead;
    if (unloaded)
      ++*unloaded;
  }
  size_t bytes() const override { return 1; }

  volatile uint64_t state = kAlive;

private:
  std::shared_ptr<std::atomic<int>> unloaded;
};

inline schema::Fact eq(unsigned dim, int64_t value) {
  return {schema::FactKind::eq, static_cast<uint16_t>(dim), value, 0};
}
inline schema::Fact divisible(unsigned dim, int64_t by) {
  return {schema::FactKind::divisible, static_cast<uint16_t>(dim), by, 0};
}
inline schema::Fact in(unsigned dim, int64_t low, int64_t high) {
  return {schema::FactKind::range, static_cast<uint16_t>(dim), low, high};
}

inline Variant
makeVariant(KeyId key, std::vector<schema::Fact> facts, double gain = 0,
            std::shared_ptr<std::atomic<int>> unloaded = nullptr) {
  Variant variant;
  variant.key = key;
  variant.facts = std::move(facts);
  variant.image = std::make_shared<FakeImage>(std::move(unloaded));
  variant.gain = gain;
  return variant;
}

} // namespace pgkp::rt::testing
