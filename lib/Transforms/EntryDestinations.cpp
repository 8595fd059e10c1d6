// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Turns entries into destination-passing functions on memrefs.
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "pgkp/Analysis/RootAnalysis.h"
#include "pgkp/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::pgkp {
#define GEN_PASS_DEF_ENTRYDESTINATIONSPASS
#include "pgkp/Transforms/Passes.h.inc"
} // namespace mlir::pgkp

using namespace mlir;
using namespace mlir::pgkp;

namespace {

/// Why a function cannot get the boundary, or an empty string.
std::string getObstacle(func::FuncOp function) {
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (!isa<RankedTensorType>(type))
      return llvm::formatv("argument {0} has type '{1}'; expected a ranked "
                           "tensor",
                           i, type)
          .str();
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (!isa<RankedTensorType>(type))
      return llvm::formatv(
                 "result {0} has type '{1}'; expected a ranked tensor", i, type)
          .str();
  return "";
}

MemRefType getMemRefType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return MemRefType::get(tensor.getShape(), tensor.getElementType());
}

/// The tensor version is gone afterwards, so nothing may call it.
LogicalResult convertEntry(func::FuncOp function) {
  std::string obstacle = getObstacle(function);
  if (!obstacle.empty())
    return function.emitError("entry '")
           << function.getName() << "': " << obstacle;

  MLIRContext *context = function.getContext();
  Location loc = function.getLoc();
  FunctionType oldType = function.getFunctionType();
  Block &entry = function.getBody().front();
  OpBuilder builder(context);

  // Inputs.
  builder.setInsertionPointToStart(&entry);
  SmallVector<Type> inputs = {LLVM::LLVMPointerType::get(context)};
  entry.insertArgument(0u, inputs.front(), loc);
  for (unsigned i = 0; i < oldType.getNumInputs(); ++i) {
    BlockArgument argument = entry.getArgument(i + 1);
    Type tensorType = argument.getType();
    inputs.push_back(getMemRefType(tensorType));
    argument.setType(inputs.back());
    auto tensor = bufferization::ToTensorOp::create(builder, argument.getLoc(),
                                                    tensorType, argument,
                                                    /*restrict=*/true);
    argument.replaceAllUsesExcept(tensor.getResult(), tensor);
  }

  // Outputs.
  SmallVector<Value> outputs;
  for (Type type : oldType.getResults()) {
    inputs.push_back(getMemRefType(type));
    outputs.push_back(entry.addArgument(inputs.back(), loc));
  }
  function->walk([&](func::ReturnOp terminator) {
    builder.setInsertionPoint(terminator);
    for (auto [value, output] :
         llvm::zip_equal(terminator.getOperands(), outputs)) {
      auto materialize = bufferization::MaterializeInDestinationOp::create(
          builder, terminator.getLoc(), value, output);
      materialize.setRestrict(true);
      materialize.setWritable(true);
    }
    terminator->setOperands({});
  });
  function.setType(FunctionType::get(context, inputs, {}));
  function.removeArgAttrsAttr();
  function.removeResAttrsAttr();
  return success();
}

struct EntryDestinationsPass
    : public mlir::pgkp::impl::EntryDestinationsPassBase<
          EntryDestinationsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!isEntry(function))
        continue;
      if (isa<LLVM::LLVMPointerType>(function.getArgumentTypes().front()))
        continue; // done before
      std::optional<SymbolTable::UseRange> uses =
          SymbolTable::getSymbolUses(function.getSymNameAttr(), module);
      if (uses)
        for (SymbolTable::SymbolUse use : *uses)
          if (isa<CallOpInterface>(use.getUser()) &&
              !isa<DispatchOp>(use.getUser())) {
            InFlightDiagnostic diag =
                function.emitError("entry '")
                << function.getName()
                << "' is called; expected it to be inlined before it gets "
                   "destinations";
            diag.attachNote(use.getUser()->getLoc()) << "called here";
            return signalPassFailure();
          }
      if (failed(convertEntry(function)))
        return signalPassFailure();
    }
    // Their bodies are in the manifest; what follows is about entries.
    for (KernelOp kernel : module.getOps<KernelOp>()) {
      kernel.getBody().dropAllReferences();
      kernel.getBody().getBlocks().clear();
    }
  }
};

} // namespace
