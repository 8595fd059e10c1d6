// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Host tensors of the driver: seeded inputs, memref descriptors,
/// comparison.
#pragma once

#include "base/Random.h"
#include "base/Status.h"
#include "schema/Element.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pgkp::rt {

/// A dense row-major tensor in host memory, 64-byte aligned.
class Tensor {
public:
  Tensor() = default;
  /// Zero filled. exhausted: the product of extents overflows or memory is out.
  static Expected<Tensor> create(schema::ElementType element,
                                 std::vector<int64_t> shape);

  schema::ElementType element() const { return type; }
  const std::vector<int64_t> &shape() const { return extents; }
  size_t bytes() const { return size; }
  uint8_t *data() { return storage.get(); }
  const uint8_t *data() const { return storage.get(); }
  /// Points into this tensor; valid until it moves or dies.
  void *descriptor();
  Expected<Tensor> clone() const;

private:
  struct Free {
    void operator()(uint8_t *p) const;
  };
  schema::ElementType type = schema::ElementType::f32;
  std::vector<int64_t> extents;
  size_t size = 0;
  std::unique_ptr<uint8_t[], Free> storage;
  std::vector<int64_t>
      header; ///< memref descriptor: pointers, offset, sizes, strides
};

/// Floats uniform in [-1, 1) scaled by 1/sqrt(last extent) for matrices (so
/// that products keep their size), integers uniform in `range` or 0.
void fillSeeded(Tensor &tensor,
                std::optional<std::pair<int64_t, int64_t>> range,
                Random &random);

/// Copies the box that both shapes have in common from `from` to `to`; same
/// rank and type.
void copyOverlap(const Tensor &from, Tensor &to);

/// Largest |a - b| / (1 + |b|) that two variants of one kernel chain may differ
/// by. They sum in another order: for f32 that is a few times 2^-24 times the
/// square root of the longest sum (thousands); a bf16 or f16 result may also
/// round to the neighbouring value. Integers must be equal.
double tolerance(schema::ElementType element);

struct Mismatch {
  size_t index; ///< element number
  double got, want, error;
};
/// The worst element above the tolerance, or nothing. NaN equals NaN only.
std::optional<Mismatch> compare(const Tensor &got, const Tensor &want);

} // namespace pgkp::rt
