// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Many conjunctions of facts, evaluated together.
#pragma once

#include "schema/common_generated.h"

#include <cstdint>
#include <span>
#include <vector>

namespace pgkp::rt {

/// Finds the first of a list of guards that holds for an extents vector. Guards
/// are taken 64 at a time, one bit each. Per dimension, the guards' intervals
/// cut the number line into pieces with a precomputed mask each; the divisors
/// that are powers of two give a mask per number of trailing zeros. What holds
/// is the conjunction of these masks: the cost grows with the number of
/// distinct breakpoints and not with the number of guards, and no branch
/// depends on which guard holds. Thread-safe: immutable.
class GuardIndex {
public:
  static constexpr size_t kNone = ~size_t{0};

  GuardIndex() = default;
  /// Facts must name dimensions below `rank`. A guard without facts always
  /// holds; one that contradicts itself or divides by less than 1 never does.
  GuardIndex(std::span<const std::span<const schema::Fact>> guards,
             unsigned rank);

  /// The lowest index whose facts all hold, or kNone. No allocation.
  size_t first(const int64_t *extents) const;

private:
  struct Divisor {
    int64_t value;     ///< not a power of two
    uint64_t dividing; ///< guards that do not ask for it
  };
  struct Dim {
    uint32_t dim;
    uint32_t breaks, numBreaks; ///< piece i: below breaks[i]; one mask more
    uint32_t pieces;            ///< masks of the pieces
    uint32_t direct, numDirect; ///< pieces of the values 0..numDirect-1
    uint32_t zeros, maxZeros;   ///< masks by trailing zeros 0..maxZeros
    uint32_t divisors, numDivisors;
  };
  struct Block {
    uint32_t firstDim, numDims;
    uint64_t possible;
  };

  uint64_t evaluate(const Block &block, const int64_t *extents) const;

  std::vector<Block> blocks;
  std::vector<Dim> dims;
  std::vector<int64_t> breakpoints;
  std::vector<uint8_t> directPieces; ///< a block has at most 129 pieces
  std::vector<uint64_t> masks;
  std::vector<Divisor> divisorList;
};

} // namespace pgkp::rt
