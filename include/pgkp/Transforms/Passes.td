// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef PGKP_TRANSFORMS_PASSES
#define PGKP_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def OutlineKernelsPass : Pass<"pgkp-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Group tensor operations into kernels and dispatch them";
  let description = [{
    Works on entries: public functions with at least one tensor argument and a
    body without `pgkp.dispatch`. Operations are grouped greedily in program
    order, so that a kernel is one of

    * a contraction with its fill and the elementwise operations that consume
      its result at the same indices,
    * a row kernel: reductions over the innermost dimensions together with the
      elementwise operations over the same rows (a whole RMSNorm or softmax),
    * elementwise operations over one domain,
    * one data movement (`tensor.concat`, `tensor.pad`, a slice).

    Every group is convex. Constants, fills and slices are cloned into the
    kernels that read them; reshapes, `tensor.empty`, `tensor.dim` and index
    arithmetic stay in the entry, where they cost nothing.

    A kernel's symbols are the distinct dynamic extents of its arguments, where
    extents are equal when their expressions over the entry's roots are. An
    index that the body reads and that follows from these extents is computed
    inside from `tensor.dim`, so that specialization sees it; any other
    captured scalar becomes an argument. Kernels that differ in their names only
    become one.

    ```mlir
    func.func @f(%x: tensor<?x64xf32>, %w: tensor<64x32xf32>) -> tensor<?x32xf32> {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f32
      %m = tensor.dim %x, %c0 : tensor<?x64xf32>
      %e = tensor.empty(%m) : tensor<?x32xf32>
      %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
      %r = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x32xf32>)
          outs(%i : tensor<?x32xf32>) -> tensor<?x32xf32>
      return %r : tensor<?x32xf32>
    }
    ```
    becomes
    ```mlir
    pgkp.kernel private @matmul_0(%x: tensor<?x64xf32>, %w: tensor<64x32xf32>,
        %out: tensor<?x32xf32>) -> (tensor<?x32xf32>)
        dims(arg0_d0) args([arg0_d0, 64], [64, 32], [arg0_d0, 32]) { ... }
    func.func @f(...) {
      ...
      %r = pgkp.dispatch @matmul_0[%m] ins(%x, %w : ...) outs(%e : ...)
      return %r
    }
    ```
  }];
  let options = [
    Option<"fuseElementwise", "fuse-elementwise", "bool", /*default=*/"true",
           "Run upstream's elementwise fusion on entries first">,
    Option<"maxOps", "max-ops", "unsigned", /*default=*/"64",
           "Largest number of operations in one kernel, at least 1">,
  ];
  let dependentDialects = [
    "::mlir::pgkp::PGKPDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
  ];
}

def InferRootsPass : Pass<"pgkp-infer-roots", "::mlir::ModuleOp"> {
  let summary = "Express every dispatch's extents over the entry's roots";
  let description = [{
    Annotates each entry with `pgkp.roots` (the names of its dynamic extents,
    taken from `pgkp.dims` or, without it, `arg<i>_d<j>`) and each dispatch with
    `pgkp.extent_exprs`, one `#pgkp.expr` per extent, whose symbols index the
    list of roots. Extents are followed through `tensor.dim`, index arithmetic,
    affine maps, reshapes, concatenations, slices and destinations. What cannot be
    derived becomes a root of its own, listed in `pgkp.data_roots` and numbered after
    the others, with a remark; it is never an error. Entries whose arguments
    are static get an empty list.

    ```mlir
    %n = arith.muli %batch, %seq : index
    pgkp.dispatch @k[%n] ins(...) outs(...)
    ```
    becomes
    ```mlir
    pgkp.dispatch @k[%n] ins(...) outs(...) {pgkp.extent_exprs = [#pgkp.expr<s0 * s1>]}
    ```
  }];
  let dependentDialects = ["::mlir::pgkp::PGKPDialect"];
}

def PrintRootsPass : Pass<"pgkp-print-roots", "::mlir::ModuleOp"> {
  let summary = "Print roots and extent expressions, for tests and people";
  let description = [{
    Prints, per entry, its roots with the argument dimension each is read from, and
    per dispatch in program order the extents as expressions over the roots'
    names. Changes nothing.
  }];
  let dependentDialects = ["::mlir::pgkp::PGKPDialect"];
}

def AnnotateSpecializationsPass
    : Pass<"pgkp-annotate-specializations", "::mlir::ModuleOp"> {
  let summary = "Attach classes, family, configuration space and cost to kernels";
  let description = [{
    Gives each kernel with dynamic extents an ordered list of classes. The
    first class whose facts hold for a call's extents is that call's class, so
    the list runs from specific to general; no class at all means generic.
    Classes come from a lattice per symbol (`== 1`, `% divisor == 0`) and, with
    a profile, from the extents that earlier runs used.

    Also sets `family` and `config_space` (from the code generator's table) and
    `cost`: floating-point operations and bytes moved as expressions over the
    kernel's symbols. Kernels whose `classes` are set already keep them.

    ```mlir
    pgkp.kernel private @k(...) dims(m) ...
    ```
    becomes
    ```mlir
    pgkp.kernel private @k(...) dims(m) ... attributes {
      classes = [#pgkp.class<[m == 1]>, #pgkp.class<[m % 16 == 0]>], ...}
    ```
  }];
  let options = [
    Option<"maxClasses", "max-classes", "unsigned", /*default=*/"9",
           "Largest number of classes per kernel, 1 to 64">,
    Option<"divisor", "divisor", "int64_t", /*default=*/"16",
           "The divisor in '% divisor == 0', at least 2">,
    Option<"profile", "profile", "std::string", /*default=*/"",
           "A profile of earlier runs (PGKF)">,
  ];
  let dependentDialects = ["::mlir::pgkp::PGKPDialect"];
}

def InsertPreparePass : Pass<"pgkp-insert-prepare", "::mlir::ModuleOp"> {
  let summary = "Announce dispatches where their extents become known";
  let description = [{
    Inserts `pgkp.observe @entry[roots]` at the start of each entry that
    dispatches a kernel with dynamic extents, and for each such dispatch a
    `pgkp.prepare` with the same extents at the earliest point that they
    dominate: hoisted out of loops and branches as far as the extents allow. A
    prepare hoisted out of a branch carries the branch's probability. Kernels
    without dynamic extents, which have nothing to specialize, get none; neither do
    dispatches that already have one. Never inserts into a parallel loop or a launch.

    ```mlir
    func.func @e(%x: tensor<?x64xf32> ...) {
      %m = tensor.dim %x, %c0
      ...
      %r = pgkp.dispatch @k[%m] ins(%x : ...) outs(...)
    ```
    becomes
    ```mlir
    func.func @e(%x: tensor<?x64xf32> ...) {
      %m = tensor.dim %x, %c0
      pgkp.observe @e[%m]
      pgkp.prepare @k[%m] {probability = 1.0 : f64, ...}
      ...
      %r = pgkp.dispatch @k[%m] ins(%x : ...) outs(...)
    ```
  }];
  let options = [
    Option<"branchProbability", "branch-probability", "double",
           /*default=*/"0.5",
           "Assumed probability of entering a branch, in (0, 1]">,
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::pgkp::PGKPDialect",
    "::mlir::tensor::TensorDialect",
  ];
}

def PlanPreparePass : Pass<"pgkp-plan-prepare", "::mlir::ModuleOp"> {
  let summary = "Merge, drop and date prepares";
  let description = [{
    Merges prepares of one kernel with the same extents in a block (the
    earliest stays, with the combined probability `1 - prod(1 - p)`), drops
    those with a probability below `min-probability` and those with no dispatch of
    the kernel after them, and sets `slack`: an estimate of the seconds until first
    use, from the cost of the kernels dispatched in between. One remark per
    decision.
  }];
  let options = [
    Option<"minProbability", "min-probability", "double",
           /*default=*/"0.01", "Prepares below are dropped, in [0, 1]">,
    Option<"flopsPerSecond", "flops-per-second", "double",
           /*default=*/"2e10",
           "Assumed arithmetic rate for slack, greater than 0">,
    Option<"bytesPerSecond", "bytes-per-second", "double",
           /*default=*/"1e10", "Assumed memory rate for slack, greater than 0">,
    Option<"typicalExtent", "typical-extent", "int64_t", /*default=*/"64",
           "Value of every symbol when costs are estimated, at least 1">,
  ];
  let dependentDialects = ["::mlir::pgkp::PGKPDialect"];
}

def EntryDestinationsPass
    : Pass<"pgkp-entry-destinations", "::mlir::ModuleOp"> {
  let summary = "Give entries a context, memref inputs and memref outputs";
  let description = [{
    Changes each entry to the boundary that compiled programs have: a context
    pointer, then inputs, then one destination per result. Inputs enter tensor land by
    `bufferization.to_tensor restrict`, results leave by
    `bufferization.materialize_in_destination ... restrict writable`, so
    bufferization needs no function boundaries. Run after the manifest was
    written: argument attributes are dropped and kernels become declarations.

    ```mlir
    func.func @e(%x: tensor<?x64xf32>) -> tensor<?x32xf32>
    ```
    becomes
    ```mlir
    func.func @e(%ctx: !llvm.ptr, %x: memref<?x64xf32>, %out: memref<?x32xf32>)
    ```
  }];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::pgkp::PGKPDialect", "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect",
  ];
}

#endif // PGKP_TRANSFORMS_PASSES
