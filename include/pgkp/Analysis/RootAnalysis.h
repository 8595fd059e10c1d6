// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Expressions of extents over an entry's roots.
#ifndef PGKP_ANALYSIS_ROOTANALYSIS_H
#define PGKP_ANALYSIS_ROOTANALYSIS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "pgkp/Dialect/IR/PGKPOps.h"
#include "llvm/ADT/DenseMap.h"

#include <string>
#include <vector>

namespace mlir::pgkp {

/// On a dispatch: one `#pgkp.expr` over the entry's roots per extent.
inline constexpr llvm::StringLiteral kExtentExprsAttr{"pgkp.extent_exprs"};
/// On an entry: names of the roots that its arguments do not give. They are
/// numbered after `pgkp.roots`.
inline constexpr llvm::StringLiteral kDataRootsAttr{"pgkp.data_roots"};

/// A dynamic extent from which others follow.
struct Root {
  std::string name;
  /// The value it is read from: an argument's dimension, or, for a
  /// data-dependent root, any tensor's dimension or an index or integer value
  /// (dim is -1).
  Value source;
  int64_t dim = -1;
  /// Known when the entry starts: read from an argument's dimension.
  bool isEntry = false;
};

/// Assigns an expression over roots to every index value and tensor extent of
/// one function. Roots of arguments are numbered first, in order of
/// appearance; data-dependent ones follow in order of the first query. Extents
/// with equal expressions are equal at run time. Assumes that dimensions with
/// the same name in `pgkp.dims` are equal (`pgkp.observe` checks it). The roots
/// of a kernel are its symbols, in order.
class RootAnalysis {
public:
  /// \p function must implement FunctionOpInterface.
  explicit RootAnalysis(Operation *function);

  /// All roots so far; the first getNumEntryRoots() are argument extents.
  const std::vector<Root> &getRoots() const { return roots; }
  unsigned getNumEntryRoots() const { return numEntryRoots; }

  /// The value of \p index, which has index or integer type.
  ExprAttr getIndex(Value index);
  ExprAttr getIndex(OpFoldResult index);
  /// Extent number \p dim of \p shaped, a ranked tensor or memref.
  ExprAttr getExtent(Value shaped, int64_t dim);
  /// All extents of \p shaped.
  SmallVector<ExprAttr> getShape(Value shaped);

  /// True if \p expr uses only roots that are known when the entry starts.
  bool isKnownAtEntry(ExprAttr expr) const;

private:
  ExprAttr computeIndex(Value index);
  ExprAttr computeExtent(Value shaped, int64_t dim);
  /// The extent of a value that a loop carries, if no iteration changes it.
  ExprAttr computeCarried(Value initial, Value carried, Value yielded,
                          int64_t dim);
  ExprAttr addDataRoot(Value source, int64_t dim);

  MLIRContext *context;
  std::vector<Root> roots;
  unsigned numEntryRoots = 0;
  llvm::DenseMap<Value, ExprAttr> indices;
  llvm::DenseMap<std::pair<Value, int64_t>, ExprAttr> extents;
};

/// Reads the root at the builder, as an index: a dimension of a tensor or a
/// memref, or the value itself.
Value createRootRead(OpBuilder &builder, Location loc, const Root &root);

/// Emits index arithmetic for \p expr; \p symbol gives the value of a symbol.
Value materializeExpr(OpBuilder &builder, Location loc, ExprAttr expr,
                      llvm::function_ref<Value(unsigned)> symbol);

/// \p expr over the values of \p symbols: the expression e over symbol numbers
/// with e[symbols] = expr, or null if none is found. Finds direct matches,
/// operands that match, and solves sums for one symbol.
ExprAttr rewriteOverSymbols(ExprAttr expr, ArrayRef<ExprAttr> symbols);

} // namespace mlir::pgkp

#endif // PGKP_ANALYSIS_ROOTANALYSIS_H
