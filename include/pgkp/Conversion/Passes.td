// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef PGKP_CONVERSION_PASSES
#define PGKP_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def ConvertPGKPToLLVMPass
    : Pass<"convert-pgkp-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Turn entries into functions that call the runtime's table";
  let description = [{
    Runs after bufferization, on entries with destinations (see
    `pgkp-entry-destinations`) and without structured control flow. Each entry
    `@e` becomes `llvm.func @pgkp_entry_e(ctx, args)`, which reads its memref
    descriptors through `args`. `pgkp.dispatch`, `pgkp.prepare`, `pgkp.observe`,
    `pgkp.await`, `memref.alloc`, `memref.dealloc`, `memref.copy` and `cf.assert`
    become indirect calls through the table that `ctx` points to
    (pgkp-c/program.h), so the program has no undefined symbol. Kernels and
    entries are numbered by their order in the module, as in the manifest; the
    kernels are erased.

    Argument arrays, extents and descriptors live in one buffer per entry, on its
    stack and reused by every call: the runtime reads them during the call only.
    What else the body holds is left to upstream's conversions.

    ```mlir
    func.func @e(%ctx: !llvm.ptr, %x: memref<?xf32>, %out: memref<?xf32>) {
      pgkp.dispatch @k[%m] ins(%x : memref<?xf32>) outs(%out : memref<?xf32>)
      return
    }
    ```
    becomes
    ```mlir
    llvm.func @pgkp_entry_e(%ctx: !llvm.ptr, %args: !llvm.ptr) {
      ...
      %table = llvm.load %ctx
      %function = llvm.load %dispatch_slot
      llvm.call %function(%ctx, %kernel, %extents, %count, %arguments, %n)
      llvm.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect",
                           "::mlir::pgkp::PGKPDialect"];
}

#endif // PGKP_CONVERSION_PASSES
