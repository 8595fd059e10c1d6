// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- InitAll.h - Registration of everything in PGKP -----------*- C++ -*-===//

#ifndef PGKP_INITALL_H
#define PGKP_INITALL_H

namespace mlir {
class DialectRegistry;

namespace pgkp {

/// Registers the pgkp dialect and the external models of its interfaces.
void registerAllPGKPDialects(DialectRegistry &registry);

/// Registers every PGKP pass and pipeline with the global pass registry.
void registerAllPGKPPasses();

} // namespace pgkp
} // namespace mlir

#endif // PGKP_INITALL_H
