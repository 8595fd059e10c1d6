// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- BufferizableOpInterfaceImpl.h ----------------------------*- C++ -*-===//

#ifndef PGKP_DIALECT_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define PGKP_DIALECT_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;

namespace pgkp {

/// Makes pgkp.dispatch bufferizable. Kernels are not: erase their bodies, or
/// keep them out by the options' operation filter.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace pgkp
} // namespace mlir

#endif // PGKP_DIALECT_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
