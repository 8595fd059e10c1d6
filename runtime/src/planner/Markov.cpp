// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A first-order Markov chain over keys: the likelier a key follows the last
// one, the sooner it is prepared. It knows only what has been used before.
#include "planner/Ranked.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace pgkp::rt::planner {
namespace {
class Markov final : public RankedPolicy {
public:
  std::string_view name() const override { return "markov"; }

  void onUse(KeyId key, TimeNs) override {
    if (last != kNoKey) {
      ++pairs[static_cast<uint64_t>(last) << 32 | key];
      ++from[last];
    }
    last = key;
  }

protected:
  std::optional<double> expectation(const Candidate &candidate) override {
    if (last == kNoKey)
      return std::nullopt;
    const auto pair =
        pairs.find(static_cast<uint64_t>(last) << 32 | candidate.key);
    if (pair == pairs.end())
      return std::nullopt;
    return static_cast<double>(pair->second) /
           static_cast<double>(from.find(last)->second);
  }
  bool expectationFirst() const override { return true; }

private:
  boost::unordered_flat_map<uint64_t, uint64_t> pairs;
  boost::unordered_flat_map<KeyId, uint64_t> from;
  KeyId last = kNoKey;
};
} // namespace

std::unique_ptr<Policy> makeMarkov() { return std::make_unique<Markov>(); }

} // namespace pgkp::rt::planner
