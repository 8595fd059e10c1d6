// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pgkp/Codegen/NVVM.h"
#include "pgkp/Codegen/Passes.h"
#include "pgkp/Codegen/Specialize.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::pgkp {
#define GEN_PASS_DEF_CODEGENNVVMPASS
#define GEN_PASS_DEF_NVVMTOPTXPASS
#include "pgkp/Codegen/Passes.h.inc"
} // namespace mlir::pgkp

using namespace mlir;
using namespace mlir::pgkp;

namespace {

struct CodegenNVVM
    : public ::mlir::pgkp::impl::CodegenNVVMPassBase<CodegenNVVM> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    registerNVVMCodegen(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    // Once, so that a bad option is one error and not one a kernel.
    if (failed(checkNVVMTarget(module.getLoc(), chip, features)))
      return signalPassFailure();
    ConfigAttr chosen;
    if (!config.empty()) {
      StringRef text = config;
      // A pass option loses a pair of braces on the command line.
      if (text.consume_front("{"))
        text.consume_back("}");
      auto values = dyn_cast_or_null<DictionaryAttr>(
          parseAttribute(("{" + text + "}").str(), &getContext()));
      if (!values) {
        emitError(module.getLoc(), "option 'config' is '")
            << config << "'; expected a dictionary";
        return signalPassFailure();
      }
      chosen = ConfigAttr::getChecked([&] { return module.emitError(); },
                                      &getContext(), values);
      if (!chosen)
        return signalPassFailure();
    }
    SymbolTable symbols(module);
    for (KernelOp kernel :
         llvm::make_early_inc_range(module.getOps<KernelOp>())) {
      if (kernel.isExternal())
        continue;
      SmallVector<FactAttr> facts;
      if (auto attr = kernel->getAttrOfType<ArrayAttr>(kFactsAttr))
        for (FactAttr fact : attr.getAsRange<FactAttr>())
          facts.push_back(fact);
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfter(kernel);
      std::string name = (kernel.getSymName() + "_" + chip).str();
      FailureOr<gpu::GPUModuleOp> device =
          emitNVVMModule(kernel, facts, chip, features, builder, name, chosen);
      if (failed(device))
        return signalPassFailure();
      symbols.insert(*device, std::next(Block::iterator(kernel)));
    }
  }
};

struct NVVMToPTX : public ::mlir::pgkp::impl::NVVMToPTXPassBase<NVVMToPTX> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    registerNVVMCodegen(registry);
  }

  void runOnOperation() override {
    if (optLevel > 3) {
      emitError(getOperation().getLoc(), "'opt-level' is ")
          << optLevel.getValue() << "; expected 0 to 3";
      return signalPassFailure();
    }
    if (format != "ptx" && format != "llvm") {
      emitError(getOperation().getLoc(), "'format' is '")
          << format << "'; expected 'ptx' or 'llvm'";
      return signalPassFailure();
    }
    for (gpu::GPUModuleOp device : llvm::make_early_inc_range(
             getOperation().getOps<gpu::GPUModuleOp>())) {
      auto launch = device->getAttrOfType<DictionaryAttr>(kNVVMLaunchAttr);
      if (!launch)
        continue;
      if (failed(NVVMLaunch::fromAttr(launch))) {
        emitError(device.getLoc(), "malformed '") << kNVVMLaunchAttr << "'";
        return signalPassFailure();
      }
      if (failed(lowerNVVMModule(device)))
        return signalPassFailure();
      FailureOr<std::string> ptx = translateNVVMModule(
          device, format == "llvm" ? NVVMFormat::LLVMIR : NVVMFormat::PTX,
          optLevel);
      if (failed(ptx))
        return signalPassFailure();
      OpBuilder builder(device);
      auto object = gpu::ObjectAttr::get(
          device.getTargetsAttr()[0], gpu::CompilationTarget::Assembly,
          builder.getStringAttr(*ptx),
          builder.getDictionaryAttr(
              builder.getNamedAttr(kNVVMLaunchAttr, launch)));
      gpu::BinaryOp::create(builder, device.getLoc(), device.getName(),
                            /*offloadingHandler=*/Attribute(),
                            ArrayRef<Attribute>{object});
      device.erase();
    }
  }
};

} // namespace
