// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// From annotated IR to the manifest of a bundle.
#ifndef PGKP_TARGET_MANIFEST_H
#define PGKP_TARGET_MANIFEST_H

#include "mlir/IR/BuiltinOps.h"
#include "pgkp/Dialect/IR/PGKPOps.h"

namespace pgkp::schema {
struct BundleT;
struct ConfigT;
struct ExprT;
} // namespace pgkp::schema

namespace mlir::pgkp {

/// Fills `kernels` (in the module's order, which is also the order of the
/// kernel numbers that convert-pgkp-to-llvm emits) and `entries` of \p bundle,
/// and its format version. Leaves the program, artifacts, module name, module
/// hash, producer and target to the caller. The module must still hold tensors:
/// call after pgkp-prepare-pipeline and before pgkp-entry-destinations. Errors,
/// with a diagnostic: an entry's argument or result is no ranked tensor of a
/// supported element type, or a result's shape does not follow from the roots.
LogicalResult exportManifest(ModuleOp module, ::pgkp::schema::BundleT &bundle);

/// Flattens an expression to nodes in post order.
::pgkp::schema::ExprT exportExpr(ExprAttr expr);

/// Integers and booleans become integers, strings text, anything else its
/// printed form as text.
::pgkp::schema::ConfigT exportConfig(ConfigAttr config);

} // namespace mlir::pgkp

#endif // PGKP_TARGET_MANIFEST_H
