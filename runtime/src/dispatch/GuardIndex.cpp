// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dispatch/GuardIndex.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

namespace pgkp::rt {
namespace {

constexpr size_t kBlockGuards = 64;
/// Values below the highest breakpoint, but not above this, find their piece in
/// a table. Batch and token counts are mostly that small.
constexpr int64_t kMaxDirect = 2048;

/// What one guard asks of one dimension.
struct Demand {
  int64_t low = std::numeric_limits<int64_t>::min();
  int64_t high = std::numeric_limits<int64_t>::max();
  unsigned zeros = 0; ///< log2 of the largest power-of-two divisor
  std::vector<int64_t> divisors;
};

/// \returns false if nothing can satisfy the fact.
bool addFact(const schema::Fact &fact, Demand &demand) {
  switch (fact.kind()) {
  case schema::FactKind::eq:
    demand.low = std::max(demand.low, fact.a());
    demand.high = std::min(demand.high, fact.a());
    break;
  case schema::FactKind::range:
    demand.low = std::max(demand.low, fact.a());
    demand.high = std::min(demand.high, fact.b());
    break;
  case schema::FactKind::divisible: {
    const int64_t divisor = fact.a();
    if (divisor < 1)
      return false;
    if (std::has_single_bit(static_cast<uint64_t>(divisor)))
      demand.zeros = std::max<unsigned>(
          demand.zeros, std::countr_zero(static_cast<uint64_t>(divisor)));
    else
      demand.divisors.push_back(divisor);
    break;
  }
  default:
    return false;
  }
  return demand.low <= demand.high;
}

/// How many of the sorted values are <= x.
size_t countUpTo(const int64_t *values, size_t count, int64_t x) {
  size_t base = 0;
  while (count >
         32) { // a binary step costs a load's latency, a linear one none
    const size_t half = count / 2;
    base += values[base + half - 1] <= x ? half : 0;
    count -= half;
  }
  size_t found = base;
  for (size_t i = 0; i < count; ++i)
    found += values[base + i] <= x;
  return found;
}

} // namespace

GuardIndex::GuardIndex(std::span<const std::span<const schema::Fact>> guards,
                       unsigned rank) {
  for (size_t first = 0; first < guards.size(); first += kBlockGuards) {
    const size_t count = std::min(kBlockGuards, guards.size() - first);
    const uint64_t all = ~uint64_t{0} >> (kBlockGuards - count);
    Block block{static_cast<uint32_t>(dims.size()), 0, all};
    std::vector<std::map<size_t, Demand>> demands(rank); // dim -> guard -> ...
    for (size_t g = 0; g < count; ++g)
      for (const schema::Fact &fact : guards[first + g])
        if (fact.dim() >= rank || !addFact(fact, demands[fact.dim()][g]))
          block.possible &= ~(uint64_t{1} << g);

    for (unsigned d = 0; d < rank; ++d) {
      if (demands[d].empty())
        continue;
      Dim dim{};
      dim.dim = d;

      std::vector<int64_t> breaks;
      for (const auto &[g, demand] : demands[d]) {
        if (demand.low != std::numeric_limits<int64_t>::min())
          breaks.push_back(demand.low);
        if (demand.high != std::numeric_limits<int64_t>::max())
          breaks.push_back(demand.high + 1);
        dim.maxZeros = std::max(dim.maxZeros, demand.zeros);
      }
      std::sort(breaks.begin(), breaks.end());
      breaks.erase(std::unique(breaks.begin(), breaks.end()), breaks.end());
      dim.breaks = static_cast<uint32_t>(breakpoints.size());
      dim.numBreaks = static_cast<uint32_t>(breaks.size());
      breakpoints.insert(breakpoints.end(), breaks.begin(), breaks.end());

      dim.pieces = static_cast<uint32_t>(masks.size());
      for (size_t piece = 0; piece <= breaks.size(); ++piece) {
        const int64_t value = piece == 0 ? std::numeric_limits<int64_t>::min()
                                         : breaks[piece - 1];
        uint64_t mask = all;
        for (const auto &[g, demand] : demands[d])
          if (value < demand.low || value > demand.high)
            mask &= ~(uint64_t{1} << g);
        masks.push_back(mask);
      }

      dim.direct = static_cast<uint32_t>(directPieces.size());
      const int64_t values =
          breaks.empty()
              ? 0
              : std::clamp<int64_t>(breaks.back() + 1, 0, kMaxDirect);
      dim.numDirect = static_cast<uint32_t>(values);
      for (int64_t value = 0; value < values; ++value)
        directPieces.push_back(static_cast<uint8_t>(
            countUpTo(breaks.data(), breaks.size(), value)));

      dim.zeros = static_cast<uint32_t>(masks.size());
      for (unsigned zeros = 0; zeros <= dim.maxZeros; ++zeros) {
        uint64_t mask = all;
        for (const auto &[g, demand] : demands[d])
          if (demand.zeros > zeros)
            mask &= ~(uint64_t{1} << g);
        masks.push_back(mask);
      }

      std::map<int64_t, uint64_t> divisors;
      for (const auto &[g, demand] : demands[d])
        for (int64_t divisor : demand.divisors)
          divisors.try_emplace(divisor, all).first->second &=
              ~(uint64_t{1} << g);
      dim.divisors = static_cast<uint32_t>(divisorList.size());
      dim.numDivisors = static_cast<uint32_t>(divisors.size());
      for (const auto &[divisor, mask] : divisors)
        divisorList.push_back({divisor, mask});

      dims.push_back(dim);
      ++block.numDims;
    }
    blocks.push_back(block);
  }
}

uint64_t GuardIndex::evaluate(const Block &block,
                              const int64_t *extents) const {
  uint64_t holding = block.possible;
  const Dim *dim = dims.data() + block.firstDim;
  for (const Dim *end = dim + block.numDims; dim != end; ++dim) {
    const int64_t x = extents[dim->dim];
    const size_t piece =
        static_cast<uint64_t>(x) < dim->numDirect
            ? directPieces[dim->direct + static_cast<size_t>(x)]
            : countUpTo(breakpoints.data() + dim->breaks, dim->numBreaks, x);
    const unsigned zeros = std::min<unsigned>(
        std::countr_zero(static_cast<uint64_t>(x)), dim->maxZeros);
    holding &= masks[dim->pieces + piece] & masks[dim->zeros + zeros];
    for (uint32_t i = 0; i < dim->numDivisors; ++i) {
      const Divisor &divisor = divisorList[dim->divisors + i];
      if (x % divisor.value != 0)
        holding &= divisor.dividing;
    }
  }
  return holding;
}

size_t GuardIndex::first(const int64_t *extents) const {
  for (size_t b = 0; b < blocks.size(); ++b)
    if (const uint64_t holding = evaluate(blocks[b], extents))
      return b * kBlockGuards + std::countr_zero(holding);
  return kNone;
}

} // namespace pgkp::rt
