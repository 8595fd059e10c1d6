// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef PGKP_CODEGEN_PASSES
#define PGKP_CODEGEN_PASSES

include "mlir/Pass/PassBase.td"

def SpecializePass : Pass<"pgkp-specialize", "::mlir::ModuleOp"> {
  let summary = "Turn facts about a kernel's extents into IR";
  let description = [{
    Specializes kernels for a class. `d == v` makes the dimension static in the
    whole body: arguments are cast where they enter, results where they leave, so
    the kernel's own signature (and the calling convention of its variants)
    stays as it is. `d mod k == 0` rewrites reads of the dimension as
    `(d floordiv k) * k`. All facts stay on the kernel as
    `pgkp.facts`, from which code generators drop remainder loops and masks.

    ```mlir
    pgkp.kernel private @k(%a: tensor<?x64xf32>, %o: tensor<?x64xf32>) -> tensor<?x64xf32>
        dims(m) args([m, 64], [m, 64]) {
      %r = linalg.exp ins(%a : tensor<?x64xf32>) outs(%o : tensor<?x64xf32>) -> tensor<?x64xf32>
      pgkp.return %r : tensor<?x64xf32>
    }
    ```
    with `facts="d0 == 1"` becomes
    ```mlir
    pgkp.kernel private @k(%a: tensor<?x64xf32>, %o: tensor<?x64xf32>) -> tensor<?x64xf32>
        dims(m) args([m, 64], [m, 64]) attributes {pgkp.facts = [#pgkp.fact<d0 == 1>]} {
      %a1 = tensor.cast %a : tensor<?x64xf32> to tensor<1x64xf32>
      %o1 = tensor.cast %o : tensor<?x64xf32> to tensor<1x64xf32>
      %r = linalg.exp ins(%a1 : tensor<1x64xf32>) outs(%o1 : tensor<1x64xf32>) -> tensor<1x64xf32>
      %c = tensor.cast %r : tensor<1x64xf32> to tensor<?x64xf32>
      pgkp.return %c : tensor<?x64xf32>
    }
    ```
  }];
  let options = [
    Option<"facts", "facts", "std::string", /*default=*/"",
           "Facts separated by ';', each as in #pgkp.fact">,
    Option<"kernel", "kernel", "std::string", /*default=*/"",
           "Name of the kernel to specialize; empty: all">,
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
  ];
}

def CodegenHostPass : Pass<"pgkp-codegen-host", "::mlir::ModuleOp"> {
  let summary = "Generate host loops for kernels";
  let description = [{
    Replaces each `pgkp.kernel` by a `func.func` of the same name on memrefs that
    takes the kernel's arguments in order and a workspace, `memref<?xi8>`, last.
    Nothing is allocated and nothing is called: temporaries live in the workspace,
    whose size in bytes over the kernel's extents is the function's
    `pgkp.workspace`; mathematical functions become arithmetic.

    Operations are fused over rows where a kernel reduces rows, then each becomes a
    loop nest over 1-D vectors: register blocks and packed panels for
    contractions, vector accumulators for reductions. Extents may be anything,
    0 included. What does not map over vectors becomes scalar loops; that is never
    an error.

    The configuration is the kernel's first one, or `config`. Names:
    `script` ("auto" for the rules, "direct", "packed", "skinny", "gemv", "dot", "scalar"), `mr` rows and
    `nr` lanes of a register block, `nc` columns of a "dot" block, `kc` depth of a
    "skinny" pass, `unroll`, and `v`, the lanes of row kernels. Register blocks that
    it leaves open fit the target's registers (`vector-bits`). By the rules, a
    product whose class leaves the number of rows open has a second loop nest for
    few rows, and decides between the two when it runs.
  }];
  let options = [
    Option<"config", "config", "std::string", /*default=*/"",
           "A #pgkp.config dictionary that replaces the kernels' own">,
    Option<"vectorBits", "vector-bits", "unsigned", /*default=*/"256",
           "Bits of the target's vector registers: 128, 256 or 512">,
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect",
  ];
}

def HostEntryPass : Pass<"pgkp-host-entry", "::mlir::ModuleOp"> {
  let summary = "Export a lowered kernel as 'pgkp_kernel(void **args)'";
  let description = [{
    Runs on the LLVM dialect. Adds the function that unpacks memref headers and
    scalars (see pgkp-c/program.h) and calls the kernel's body, which becomes
    internal. The module holds exactly one kernel.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def CodegenNVVMPass : Pass<"pgkp-codegen-nvvm", "::mlir::ModuleOp"> {
  let summary = "Generate NVIDIA device code for kernels";
  let description = [{
    Adds, after each `pgkp.kernel` that has a body, a `gpu.module` of the name
    `<kernel>_<chip>` with one device function for a single launch without global
    scratch memory. The kernel stays. A kernel's `pgkp.facts` hold for every
    launch.

    A matrix product and what follows it becomes a tiled kernel: operands come
    by asynchronous copies of 16 bytes into a ring of stages in shared memory,
    warps multiply with mma.sync (bf16, f16; f32 as tf32 only if the
    configuration asks for it) or fma (f32), sums are f32, and the epilogue runs
    where tiles are stored. Any layout, batch and ragged extent is right; rows
    that no 16-byte chunk starts at are copied by elements.

    Otherwise every result element is computed on demand from the elements of
    the producers that it needs, whatever was fused. Where a reduction does not
    depend on the trailing dimensions of the result (softmax, RMSNorm), one block
    takes one row at a time: it reduces together through shared memory and
    shares the columns. Otherwise one thread takes 16 bytes of neighbouring
    elements where the tensors are aligned for it, else one element. All stride
    over the grid, so any grid size is right.

    Names of a product's configuration: `family` ("mma"; any other, or none:
    by rules), `bm`, `bn`, `bk` the tile's rows, columns and depth, `wm`, `wn` a
    warp's rows and columns, `stages`, `group` row tiles that are walked before
    the next column tile, `math` ("tf32").

    Parameters are one pointer for each tensor argument (contiguous), one value
    for each scalar, then one i64 for each extent. The module's attribute
    `launch` holds the grid as expressions over the extents, the block, the
    dynamic shared memory and the parameters.

    ```mlir
    pgkp.kernel private @k(%a: tensor<?x64xf32>, %o: tensor<?x64xf32>) -> (tensor<?x64xf32>)
        dims(m) args([m, 64], [m, 64]) { ... }
    ```
    gives, besides,
    ```mlir
    gpu.module @k_sm_90 [#nvvm.target<chip = "sm_90">] attributes {launch = {
        block = array<i32: 128, 1, 1>, grid = [#pgkp.expr<...>, ...], ...}} {
      llvm.func @pgkp_k(%a: !llvm.ptr<1>, %o: !llvm.ptr<1>, %m: i64)
          attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} { ... }
    }
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"\"sm_90\"",
           "Chip to compile for, as LLVM names it">,
    Option<"features", "features", "std::string", /*default=*/"",
           "PTX version as +ptxNN; empty: the least that the chip needs">,
    Option<"config", "config", "std::string", /*default=*/"",
           "A #pgkp.config dictionary for all kernels; empty: by rules">,
  ];
}

def NVVMToPTXPass : Pass<"pgkp-nvvm-to-ptx", "::mlir::ModuleOp"> {
  let summary = "Replace generated device modules by PTX text";
  let description = [{
    Lowers each `gpu.module` of `pgkp-codegen-nvvm` and replaces it by a
    `gpu.binary` of the same name whose one object is PTX text (`assembly`). The
    launch becomes the object's property `launch`. Mathematical functions become
    polynomials and instructions; code that would call a function that the text
    does not define is an error.
  }];
  let options = [
    Option<"optLevel", "opt-level", "unsigned", /*default=*/"3",
           "Optimization level, 0 to 3">,
    Option<"format", "format", "std::string", /*default=*/"\"ptx\"",
           "ptx, or llvm: the LLVM IR that PTX is made from, for tests">,
  ];
}

#endif // PGKP_CODEGEN_PASSES
