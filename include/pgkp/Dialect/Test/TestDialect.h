// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TestDialect.h - Test passes of the dialect ---------------*- C++ -*-===//

#ifndef PGKP_DIALECT_TEST_TESTDIALECT_H
#define PGKP_DIALECT_TEST_TESTDIALECT_H

namespace mlir {
namespace pgkp {

/// Registers the passes that lit tests of the dialect run.
void registerTestDialectPasses();

} // namespace pgkp
} // namespace mlir

#endif // PGKP_DIALECT_TEST_TESTDIALECT_H
