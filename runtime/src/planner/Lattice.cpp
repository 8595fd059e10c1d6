// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every class that the module names, in its order, asking nothing: what a
// warm-up list by hand does.
#include "planner/Ranked.h"

namespace pgkp::rt::planner {
namespace {
class Lattice final : public Playback {
public:
  std::string_view name() const override { return "lattice"; }
  void begin(const Module &module, const schema::ProfileT *) override {
    std::vector<KeyId> order;
    for (KeyId key = 0; key < module.keys().size(); ++key)
      if (!module.isGeneric(key))
        order.push_back(key);
    play(std::move(order), module.keys().size());
  }
};
} // namespace

std::unique_ptr<Policy> makeLattice() { return std::make_unique<Lattice>(); }

} // namespace pgkp::rt::planner
