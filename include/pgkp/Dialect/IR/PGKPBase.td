// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PGKPBase.td - The pgkp dialect ----------------------*- tablegen -*-===//

#ifndef PGKP_DIALECT_IR_PGKPBASE_TD
#define PGKP_DIALECT_IR_PGKPBASE_TD

include "mlir/IR/DialectBase.td"

def PGKP_Dialect : Dialect {
  let name = "pgkp";
  let cppNamespace = "::mlir::pgkp";
  let summary = "Kernels with symbolic extents, and hints to prepare them";
  let description = [{
    The `pgkp` dialect states which *kernels* a program with dynamic shapes
    dispatches, over which *extents*, and when to *prepare* specialized variants
    of them. It lives at tensor level: every decision is made before
    bufferization, where a kernel's extents are still values computed from the
    dimensions of the entry function's arguments.

    A program in this dialect:

    ```mlir
    pgkp.kernel private @scale(%x: tensor<?x64xf32>, %out: tensor<?x64xf32>) -> tensor<?x64xf32>
        dims(m) args([m, 64], [m, 64]) {
      %r = linalg.exp ins(%x : tensor<?x64xf32>) outs(%out : tensor<?x64xf32>) -> tensor<?x64xf32>
      pgkp.return %r : tensor<?x64xf32>
    }

    func.func @entry(%x: tensor<?x64xf32> {pgkp.dims = ["batch", ""]}) -> tensor<?x64xf32> {
      %c0 = arith.constant 0 : index
      %m = tensor.dim %x, %c0 : tensor<?x64xf32>
      pgkp.observe @entry[%m]
      pgkp.prepare @scale[%m] {probability = 1.0 : f64, slack = 0.01 : f64}
      %init = tensor.empty(%m) : tensor<?x64xf32>
      %r = pgkp.dispatch @scale[%m] ins(%x : tensor<?x64xf32>) outs(%init : tensor<?x64xf32>)
          -> (tensor<?x64xf32>)
      return %r : tensor<?x64xf32>
    }
    ```

    Words. An *entry* is a public function with a body and at least one tensor
    (or memref) argument. A *root* is a dynamic extent of an entry from which
    the others follow. A *kernel* is a specializable unit of device work; its
    *extents vector* holds the values of its symbols, in the order of `dims(...)`.
    A *fact* is a statement about one extent, a *class* is a conjunction of facts,
    and the *generic* class has none.

    ### Attributes on function arguments and results

    | attribute | on | meaning |
    | --- | --- | --- |
    | `pgkp.dims` | shaped argument | array of strings, one per dimension: the name of the root, `""` for a static or unnamed dimension. The same name twice asserts that both extents are equal |
    | `pgkp.persistent` | shaped argument | unit: the content is kept between requests (weights, caches) |
    | `pgkp.range` | shaped argument with integer elements | `[lo, hi]`, inclusive bounds of its elements, for seeded inputs |
    | `pgkp.carries` | result | `N : i64`: its value becomes the content of argument `N` for the next request; that argument is `pgkp.persistent` |

    `pgkp.dims` and `pgkp.carries` belong to functions, not to `pgkp.kernel`,
    which binds its dimensions itself.

    ### Attribute on functions

    `pgkp.roots`, an array of distinct strings, lists an entry's roots in the
    order in which `pgkp.observe` takes them. Without it the roots are the names
    in the arguments' `pgkp.dims`, each once, by first appearance.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"
  ];
  let extraClassDeclaration = [{
    /// Names of the dialect's discardable attributes.
    static constexpr ::llvm::StringLiteral kDimsAttr{"pgkp.dims"};
    static constexpr ::llvm::StringLiteral kPersistentAttr{"pgkp.persistent"};
    static constexpr ::llvm::StringLiteral kRangeAttr{"pgkp.range"};
    static constexpr ::llvm::StringLiteral kCarriesAttr{"pgkp.carries"};
    static constexpr ::llvm::StringLiteral kRootsAttr{"pgkp.roots"};

    void registerAttributes();
  }];
}

#endif // PGKP_DIALECT_IR_PGKPBASE_TD
