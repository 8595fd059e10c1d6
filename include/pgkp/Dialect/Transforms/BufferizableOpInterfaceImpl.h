// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- BufferizableOpInterfaceImpl.h ----------------------------*- C++ -*-===//

#ifndef PGKP_DIALECT_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define PGKP_DIALECT_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;

namespace pgkp {

/// Makes pgkp.dispatch bufferizable. Kernels keep their tensors: a pass that
/// bufferizes a module leaves pgkp.kernel out.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace pgkp
} // namespace mlir

#endif // PGKP_DIALECT_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
