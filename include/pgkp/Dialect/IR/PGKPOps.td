// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PGKPOps.td - Operations of the pgkp dialect ---------*- tablegen -*-===//

#ifndef PGKP_DIALECT_IR_PGKPOPS_TD
#define PGKP_DIALECT_IR_PGKPOPS_TD

include "pgkp/Dialect/IR/PGKPAttrs.td"
include "pgkp/Dialect/IR/PGKPInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class PGKP_Op<string mnemonic, list<Trait> traits = []>
    : Op<PGKP_Dialect, mnemonic, traits>;

/// What prepare, observe and await write: the runtime's preparation state. It
/// keeps them alive without ordering them against the program's memory.
def PGKP_PreparationResource : Resource<"::mlir::pgkp::PreparationResource">;

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

def PGKP_KernelOp : PGKP_Op<"kernel", [
    AffineScope, AutomaticAllocationScope, FunctionOpInterface,
    IsolatedFromAbove]> {
  let summary = "specializable unit of device work";
  let description = [{
    A private function on tensors and scalars, in destination-passing style: its
    last arguments, one per result, are *destinations*, tied in order to results
    of equal type.

    `dims(...)` names the kernel's symbols. `args(...)` binds every dimension of
    every argument, one bracketed list per argument (`[]` for a scalar): a
    dynamic dimension to a symbol, a static one to its constant. Every symbol is
    bound by at least one dimension. The *extents vector* of the kernel is the
    list of its symbols' values in the order of `dims(...)`; it is what
    `pgkp.dispatch` and `pgkp.prepare` take, and what facts (`d0`, `d1`, ...) and
    cost expressions (`s0`, `s1`, ...) refer to by position.

    Optional attributes:

    - `classes`: array of `#pgkp.class`, the classes worth a variant;
    - `config_space`: array of `#pgkp.config`, the configurations to choose from;
    - `cost`: `#pgkp.cost`, what one dispatch costs;
    - `family`: string, the code generation family.

    Facts stay attributes: a kernel is never cloned to specialize it. The body is
    one block that ends in `pgkp.return`. A declaration has no body; it is what a
    module keeps once its kernels were exported, and what a module must have
    before it is bufferized, since kernels stay on tensors.

    Example:

    ```mlir
    pgkp.kernel private @matmul(%a: tensor<?x64xf32>, %w: tensor<64x128xf32>, %out: tensor<?x128xf32>) -> tensor<?x128xf32>
        dims(m) args([m, 64], [64, 128], [m, 128])
        attributes {classes = [#pgkp.class<[d0 == 1] probability 5.000000e-01 provenance profile>],
                    cost = #pgkp.cost<flops = s0 * 16384, bytes = s0 * 768 + 32768>,
                    family = "matmul"} {
      %r = linalg.matmul ins(%a, %w : tensor<?x64xf32>, tensor<64x128xf32>)
                         outs(%out : tensor<?x128xf32>) -> tensor<?x128xf32>
      pgkp.return %r : tensor<?x128xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
      TypeAttrOf<FunctionType>:$function_type,
      OptionalAttr<StrAttr>:$sym_visibility,
      StrArrayAttr:$dims,
      TypedArrayAttrBase<ArrayAttr, "array of dimension bindings">:$arg_dims,
      OptionalAttr<TypedArrayAttrBase<PGKP_ClassAttr, "array of #pgkp.class">>:$classes,
      OptionalAttr<TypedArrayAttrBase<PGKP_ConfigAttr, "array of #pgkp.config">>:$config_space,
      OptionalAttr<PGKP_CostAttr>:$cost,
      OptionalAttr<StrAttr>:$family,
      OptionalAttr<DictArrayAttr>:$arg_attrs,
      OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region MaxSizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type,
        "::llvm::ArrayRef<::llvm::StringRef>":$dims,
        "::mlir::ArrayAttr":$argDims,
        CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>", "{}">:$attrs)>
  ];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// FunctionOpInterface.
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() {
      return isExternal() ? nullptr : &getBody();
    }

    /// Length of the extents vector.
    unsigned getNumDims() { return getDims().size(); }
    /// Name of symbol `index`.
    ::llvm::StringRef getDimName(unsigned index) {
      return ::llvm::cast<::mlir::StringAttr>(getDims()[index]).getValue();
    }
    /// Position of the symbol `name` in `dims(...)`.
    std::optional<unsigned> getDimIndex(::llvm::StringRef name);

    /// Arguments before the destinations.
    unsigned getNumInputs() {
      return getArgumentTypes().size() - getResultTypes().size();
    }
    unsigned getNumDestinations() { return getResultTypes().size(); }

    /// The dimensions of an argument as expressions over the extents vector:
    /// a symbol or a constant each.
    ::llvm::SmallVector<ExprAttr> getArgumentExtents(unsigned argument);
  }];
}

def PGKP_ReturnOp : PGKP_Op<"return", [
    HasParent<"KernelOp">, Pure, ReturnLike, Terminator]> {
  let summary = "end of a kernel's body";
  let description = [{
    Returns the kernel's results, of the types that its signature states.

    Example:

    ```mlir
    pgkp.return %r : tensor<?x128xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ValueRange()); }]>];
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// DispatchOp
//===----------------------------------------------------------------------===//

def PGKP_DispatchOp : PGKP_Op<"dispatch", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<CallOpInterface>,
    DeclareOpInterfaceMethods<ConditionallySpeculatable>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<PGKP_PreparableOpInterface, ["getCostHint"]>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DestinationStyleOpInterface]> {
  let summary = "run a kernel";
  let description = [{
    Runs the best ready variant of a kernel for the extents vector in brackets.
    `ins` are the kernel's inputs and `outs` its destinations. Which variant runs
    is not observable but by time.

    On tensors the operation is pure and returns one result per destination, with
    its type. On memrefs it returns nothing, reads all memref operands and writes
    the destinations; memrefs have the identity layout. Tensors and memrefs do
    not mix. An operand's type may be more static than the kernel's argument
    type, never less.

    It is a call, yet never inlined.

    Example:

    ```mlir
    %r = pgkp.dispatch @matmul[%m] ins(%a, %w : tensor<?x64xf32>, tensor<64x128xf32>)
        outs(%init : tensor<?x128xf32>) -> (tensor<?x128xf32>)
    pgkp.dispatch @matmul[%m] ins(%a, %w : memref<?x64xf32>, memref<64x128xf32>)
        outs(%out : memref<?x128xf32>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel,
      Variadic<Index>:$extents,
      Variadic<AnyType>:$inputs,
      Variadic<AnyTypeOf<[AnyRankedTensor, AnyMemRef]>>:$outputs,
      OptionalAttr<DictArrayAttr>:$arg_attrs,
      OptionalAttr<DictArrayAttr>:$res_attrs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let builders = [
    OpBuilder<(ins "KernelOp":$kernel, "::mlir::ValueRange":$extents,
        "::mlir::ValueRange":$inputs, "::mlir::ValueRange":$outputs)>,
    OpBuilder<(ins "::mlir::FlatSymbolRefAttr":$kernel,
        "::mlir::ValueRange":$extents, "::mlir::ValueRange":$inputs,
        "::mlir::ValueRange":$outputs)>
  ];
  let assemblyFormat = [{
    $kernel `[` $extents `]` attr-dict
    (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    `outs` `(` $outputs `:` type($outputs) `)`
    (`->` `(` type($results)^ `)`)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// DestinationStyleOpInterface.
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getOutputsMutable();
    }
    /// Looks the kernel up; null if there is none.
    KernelOp lookupKernel(::mlir::SymbolTableCollection &symbolTables);
  }];
}

//===----------------------------------------------------------------------===//
// PrepareOp, ObserveOp, AwaitOp
//===----------------------------------------------------------------------===//

def PGKP_PrepareOp : PGKP_Op<"prepare", [
    AlwaysSpeculatable,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    MemoryEffects<[MemWrite<PGKP_PreparationResource>]>]> {
  let summary = "hint that a kernel will run over these extents";
  let description = [{
    Tells the runtime that the kernel is dispatched over the extents vector with
    `probability` after about `slack` seconds, and that the variant should have
    passed `stage` by then. A hint: dropping, repeating or hoisting it is legal,
    and it is never undefined behaviour, whatever the extents. It never waits.

    It writes the preparation resource, so dead code elimination keeps it, and
    may run speculatively. It is not allowed in parallel loops, launches and
    kernels.

    Defaults: `probability` 1, `slack` 0, `stage` load, `provenance` structure.

    Example:

    ```mlir
    pgkp.prepare @matmul[%m] {probability = 5.000000e-01 : f64, provenance = #pgkp.provenance<profile>,
                              slack = 1.000000e-02 : f64, stage = #pgkp.stage<load>}
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel,
      Variadic<Index>:$extents,
      DefaultValuedAttr<F64Attr, "1.0">:$probability,
      DefaultValuedAttr<F64Attr, "0.0">:$slack,
      DefaultValuedAttr<PGKP_StageAttr, "::mlir::pgkp::Stage::Load">:$stage,
      DefaultValuedAttr<PGKP_ProvenanceAttr, "::mlir::pgkp::Provenance::Structure">:$provenance);
  let assemblyFormat = "$kernel `[` $extents `]` attr-dict";
  let builders = [
    OpBuilder<(ins "::mlir::FlatSymbolRefAttr":$kernel,
        "::mlir::ValueRange":$extents, "double":$probability, "double":$slack,
        "Stage":$stage, "Provenance":$provenance)>
  ];
  let skipDefaultBuilders = 1;
  let hasVerifier = 1;
}

def PGKP_ObserveOp : PGKP_Op<"observe", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    MemoryEffects<[MemWrite<PGKP_PreparationResource>]>]> {
  let summary = "tell the runtime the roots of this request";
  let description = [{
    Reports the values of an entry's roots, once per request, as soon as they are
    known. The roots and their order are the entry's `pgkp.roots`, else the names
    in its arguments' `pgkp.dims` by first appearance. Where a root name occurs on
    several dimensions the runtime checks that they are equal and reports an error
    if not.

    Example:

    ```mlir
    pgkp.observe @decode[%batch, %seq, %kv]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$entry, Variadic<Index>:$roots);
  let assemblyFormat = "$entry `[` $roots `]` attr-dict";
  let hasVerifier = 1;
}

def PGKP_AwaitOp : PGKP_Op<"await", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    MemoryEffects<[MemWrite<PGKP_PreparationResource>]>]> {
  let summary = "wait for a preparation, with a time limit";
  let description = [{
    Waits until a variant for the extents vector is ready, its preparation is
    known to be of no use, or `timeout_us` microseconds have passed. The program
    goes on in any case.

    Example:

    ```mlir
    pgkp.await @matmul[%m] {timeout_us = 1000 : i64}
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Index>:$extents,
      I64Attr:$timeout_us);
  let assemblyFormat = "$kernel `[` $extents `]` attr-dict";
  let hasVerifier = 1;
}

#endif // PGKP_DIALECT_IR_PGKPOPS_TD
