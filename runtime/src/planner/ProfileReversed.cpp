// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plays the keys of earlier runs in batches, each back to front: what is needed
// soonest would be compiled by its caller anyway, and the background work gets
// out of its way. As .NET's multicore JIT does with up to 128 recorded methods
// (dotnet/runtime, vm/multicorejitplayer.cpp); a kernel takes thousands of
// times longer than a method, so the batches are smaller here (algorithms.md
// section 3).
#include "planner/Ranked.h"

#include <algorithm>

namespace pgkp::rt::planner {
namespace {
constexpr size_t kBatch = 16;

class ProfileReversed final : public Playback {
public:
  std::string_view name() const override { return "profile-reversed"; }
  void begin(const Module &module, const schema::ProfileT *profile) override {
    std::vector<KeyId> order = profileOrder(module, profile);
    for (size_t at = 0; at < order.size(); at += kBatch)
      std::reverse(order.begin() + static_cast<ptrdiff_t>(at),
                   order.begin() + static_cast<ptrdiff_t>(
                                       std::min(at + kBatch, order.size())));
    play(std::move(order), module.keys().size());
  }
};
} // namespace

std::unique_ptr<Policy> makeProfileReversed() {
  return std::make_unique<ProfileReversed>();
}

} // namespace pgkp::rt::planner
