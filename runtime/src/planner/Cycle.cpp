// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A bounded history; the next key is the last one again, else the one that the
// shortest cycle consistent with the history names, else unknown. It is
// prepared first where the prediction was right at least 8 times, in 60 % of
// the cases, and confidence x miss cost exceeds the compile cost: the rule that
// the documentation of the Rust crate vyre-driver 0.6 gives (shape_prediction,
// trace_jit_policy).
#include "planner/Ranked.h"

#include <array>

namespace pgkp::rt::planner {
namespace {
constexpr size_t kHistory = 64, kLongest = 32;
constexpr uint64_t kMinHits = 8;
constexpr double kMinConfidence = 0.6;

class Cycle final : public RankedPolicy {
public:
  std::string_view name() const override { return "cycle"; }

  void onUse(KeyId key, TimeNs) override {
    if (predicted != kNoKey) {
      ++asked;
      hits += predicted == key;
    }
    ++seen;
    // How long each period has held without a break.
    for (size_t period = 1; period <= kLongest; ++period)
      held[period] =
          seen > period && at(seen - 1 - period) == key ? held[period] + 1 : 0;
    history[(seen - 1) % kHistory] = key;
    predicted = kNoKey;
    const uint64_t kept = std::min<uint64_t>(seen, kHistory);
    for (size_t period = 1; period <= kLongest && period < kept; ++period)
      if (held[period] >= kept - period) {
        predicted = at(seen - period);
        break;
      }
  }

protected:
  std::optional<double> expectation(const Candidate &candidate) override {
    if (candidate.key != predicted || hits < kMinHits)
      return std::nullopt;
    const double confidence =
        static_cast<double>(hits) / static_cast<double>(asked);
    // What has been lost by it says what a miss costs.
    const double missCost =
        std::max(candidate.stall,
                 candidate.delta * static_cast<double>(candidate.misses));
    if (confidence < kMinConfidence || confidence * missCost <= candidate.cpu)
      return std::nullopt;
    return confidence * missCost;
  }
  bool expectationFirst() const override { return true; }

private:
  KeyId at(uint64_t position) const { return history[position % kHistory]; }

  std::array<KeyId, kHistory> history{};
  std::array<uint64_t, kLongest + 1> held{};
  uint64_t seen = 0, asked = 0, hits = 0;
  KeyId predicted = kNoKey;
};
} // namespace

std::unique_ptr<Policy> makeCycle() { return std::make_unique<Cycle>(); }

} // namespace pgkp::rt::planner
