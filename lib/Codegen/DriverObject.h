// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file From LLVM IR to a host shared object.
#ifndef PGKP_LIB_CODEGEN_DRIVEROBJECT_H
#define PGKP_LIB_CODEGEN_DRIVEROBJECT_H

#include "base/Status.h"
#include "schema/wire_generated.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <vector>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir::pgkp {

/// A target machine for a CPU name and features. invalidArgument: LLVM does not
/// know one of them (it would only warn, and compile for the baseline).
::pgkp::rt::Expected<std::unique_ptr<llvm::TargetMachine>>
createHostMachine(llvm::StringRef cpu, llvm::StringRef features);

/// Optimizes and emits an object file. `lean` runs two cheap passes: loops come
/// vectorized already. Functions get the machine's CPU and features, and no
/// builtins: no call of memset or memcpy may appear.
::pgkp::rt::Expected<llvm::SmallVector<char, 0>>
emitObject(llvm::Module &module, llvm::TargetMachine &machine,
           ::pgkp::schema::Pipeline pipeline);

/// Links one object to a shared object without dependencies. unsupported: the
/// code refers to symbols that it does not define; the message names them.
/// Not reentrant.
::pgkp::rt::Expected<std::vector<uint8_t>>
linkShared(llvm::ArrayRef<char> object, llvm::StringRef name);

} // namespace mlir::pgkp

#endif // PGKP_LIB_CODEGEN_DRIVEROBJECT_H
