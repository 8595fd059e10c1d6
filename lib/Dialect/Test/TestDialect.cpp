// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TestDialect.cpp - Passes that show the dialect's C++ API to lit ----===//

#include "pgkp/Dialect/Test/TestDialect.h"
#include "pgkp/Dialect/IR/PGKPOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace mlir::pgkp;

namespace {

/// Reports what evaluation, substitution and matching give on the attributes of
/// test operations: `at` is the list of symbol values or extents.
struct TestAttributesPass
    : PassWrapper<TestAttributesPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestAttributesPass)

  StringRef getArgument() const final { return "test-pgkp-attributes"; }
  StringRef getDescription() const final {
    return "Evaluate, substitute and match pgkp attributes of test operations";
  }

  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      auto at = op->getAttrOfType<DenseI64ArrayAttr>("at");
      ArrayRef<int64_t> values = at ? at.asArrayRef() : ArrayRef<int64_t>();
      if (auto expr = op->getAttrOfType<ExprAttr>("expr"))
        reportExpr(op, expr, values);
      if (auto fact = op->getAttrOfType<FactAttr>("fact"))
        op->emitRemark() << "fact " << (fact.holds(values) ? "holds" : "fails");
      if (auto attr = op->getAttrOfType<ClassAttr>("class"))
        op->emitRemark() << "class "
                         << (attr.matches(values) ? "matches" : "differs")
                         << (attr.isGeneric() ? ", generic" : "");
      if (auto map = op->getAttrOfType<AffineMapAttr>("map"))
        reportMap(op, map.getValue());
    });
  }

  void reportExpr(Operation *op, ExprAttr expr, ArrayRef<int64_t> values) {
    if (auto replacements = op->getAttrOfType<ArrayAttr>("replace")) {
      ExprAttr replaced = expr.replaceSymbols(
          llvm::to_vector(replacements.getAsRange<ExprAttr>()));
      if (replaced)
        op->emitRemark() << "replaced: " << replaced;
      else
        op->emitRemark() << "symbol without replacement";
      return;
    }
    std::optional<int64_t> value = expr.evaluate(values);
    InFlightDiagnostic remark = op->emitRemark();
    if (value)
      remark << "value " << *value;
    else
      remark << "no value";
    remark << ", " << expr.getNumSymbols() << " symbols";
  }

  /// Dimensions come first in the list of symbols, then the map's symbols.
  void reportMap(Operation *op, AffineMap map) {
    SmallVector<ExprAttr> symbols;
    for (unsigned i = 0; i < map.getNumInputs(); ++i)
      symbols.push_back(ExprAttr::getSymbol(&getContext(), i));
    ArrayRef<ExprAttr> all(symbols);
    for (AffineExpr result : map.getResults())
      op->emitRemark() << ExprAttr::getFromAffineExpr(
          result, all.take_front(map.getNumDims()),
          all.drop_front(map.getNumDims()));
  }
};

/// Reports every preparable operation through the interface alone, and puts the
/// prepare that it builds before it.
struct TestPreparablePass
    : PassWrapper<TestPreparablePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestPreparablePass)

  StringRef getArgument() const final { return "test-pgkp-preparable"; }
  StringRef getDescription() const final {
    return "Report preparable operations and prepare them";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, PGKPDialect>();
  }

  void runOnOperation() override {
    SymbolTableCollection symbolTables;
    getOperation().walk([&](FunctionOpInterface function) {
      if (!isEntry(function))
        return;
      InFlightDiagnostic remark = function.emitRemark() << "entry with roots [";
      llvm::interleaveComma(getRootNames(function), remark);
      remark << ']';
    });
    getOperation().walk([&](PreparableOpInterface op) {
      InFlightDiagnostic remark = op.emitRemark()
                                  << "kernel " << op.getKernelRef();
      if (Operation *source = op.getKernelSource(symbolTables))
        remark << ", source " << source->getName();
      if (CostAttr cost = op.getCostHint(symbolTables))
        remark << ", cost " << cost;
      OpBuilder builder(op);
      SmallVector<Value> extents;
      for (OpFoldResult extent : op.getExtents()) {
        if (auto value = dyn_cast<Value>(extent))
          extents.push_back(value);
        else
          extents.push_back(arith::ConstantIndexOp::create(
              builder, op.getLoc(),
              cast<IntegerAttr>(cast<Attribute>(extent)).getInt()));
      }
      op.buildPrepare(builder, op.getLoc(), extents, /*probability=*/0.25,
                      /*slack=*/0.5, Stage::Compile, Provenance::User);
    });
    getOperation().walk([&](KernelOp kernel) {
      for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
        InFlightDiagnostic remark =
            kernel.emitRemark()
            << (i < kernel.getNumInputs() ? "input #" : "output #") << i
            << " is [";
        llvm::interleaveComma(kernel.getArgumentExtents(i), remark);
        remark << ']';
      }
    });
  }
};

} // namespace

void mlir::pgkp::registerTestDialectPasses() {
  PassRegistration<TestAttributesPass>();
  PassRegistration<TestPreparablePass>();
}
