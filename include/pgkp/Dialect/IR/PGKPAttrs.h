// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PGKPAttrs.h - Attributes of the pgkp dialect -------------*- C++ -*-===//

#ifndef PGKP_DIALECT_IR_PGKPATTRS_H
#define PGKP_DIALECT_IR_PGKPATTRS_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"

#include <cstdint>
#include <optional>

namespace mlir {
class AffineExpr;
class AsmParser;

namespace pgkp {

/// What an expression node is. Constants and symbols are leaves; sums,
/// products, minima and maxima have two or more operands, the divisions two.
/// The order is the order of operands in canonical sums and products.
enum class ExprKind : uint8_t {
  Symbol,
  Product,
  FloorDiv,
  CeilDiv,
  Mod,
  Min,
  Max,
  Sum,
  Constant
};

/// What a fact states about an extent.
enum class FactKind : uint8_t { Equal, Divisible, Range };

} // namespace pgkp
} // namespace mlir

#include "pgkp/Dialect/IR/PGKPEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "pgkp/Dialect/IR/PGKPAttrs.h.inc"

namespace mlir {
namespace pgkp {

/// Prints the expression without the attribute's brackets.
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, ExprAttr expr);

} // namespace pgkp
} // namespace mlir

#endif // PGKP_DIALECT_IR_PGKPATTRS_H
