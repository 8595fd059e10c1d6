// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Facts about element types.
#pragma once

#include "schema/common_generated.h"

#include <cstddef>

namespace pgkp::rt {

/// Bytes of one element in memory; i1 takes a byte.
constexpr size_t elementBytes(schema::ElementType element) {
  using schema::ElementType;
  switch (element) {
  case ElementType::f64:
  case ElementType::i64:
  case ElementType::index:
    return 8;
  case ElementType::f32:
  case ElementType::i32:
    return 4;
  case ElementType::f16:
  case ElementType::bf16:
  case ElementType::i16:
    return 2;
  case ElementType::i1:
  case ElementType::i8:
    return 1;
  }
  return 1;
}

} // namespace pgkp::rt
