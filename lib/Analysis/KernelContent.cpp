// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pgkp/Analysis/KernelContent.h"

#include "base/Digest.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::pgkp;

KernelContent mlir::pgkp::getKernelContent(KernelOp kernel) {
  OpBuilder builder(kernel.getContext());
  Location unknown = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(unknown);
  builder.setInsertionPointToStart(module->getBody());
  auto clone = cast<KernelOp>(builder.clone(*kernel));

  clone.setSymName(kKernelModuleSymbol);
  clone.removeClassesAttr();
  clone.removeConfigSpaceAttr();
  clone.removeCostAttr();
  clone.removeFamilyAttr();
  llvm::DenseMap<Attribute, Attribute> renamed;
  SmallVector<Attribute> dims;
  for (auto [i, dim] : llvm::enumerate(clone.getDims())) {
    dims.push_back(builder.getStringAttr("d" + Twine(i)));
    renamed[dim] = dims.back();
  }
  SmallVector<Attribute> bindings;
  for (Attribute binding : clone.getArgDims()) {
    SmallVector<Attribute> extents;
    for (Attribute extent : cast<ArrayAttr>(binding)) {
      auto it = renamed.find(extent);
      extents.push_back(it == renamed.end() ? extent : it->second);
    }
    bindings.push_back(builder.getArrayAttr(extents));
  }
  clone.setDimsAttr(builder.getArrayAttr(dims));
  clone.setArgDimsAttr(builder.getArrayAttr(bindings));
  clone->walk([&](Operation *op) {
    op->setLoc(unknown);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setLoc(unknown);
  });

  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  // Cannot fail: no version was asked for.
  (void)writeBytecodeToFile(*module, stream);
  KernelContent content;
  content.bytecode.assign(bytes.begin(), bytes.end());
  content.hash = ::pgkp::rt::hashBytes(content.bytecode).bytes;
  return content;
}
