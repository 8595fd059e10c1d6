// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The manifest as text.
#include "mlir/IR/BuiltinOps.h"
#include "pgkp/Target/Manifest.h"
#include "pgkp/Target/Passes.h"
#include "schema/manifest_generated.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::pgkp {
#define GEN_PASS_DEF_PRINTMANIFESTPASS
#include "pgkp/Target/Passes.h.inc"
} // namespace mlir::pgkp

using namespace mlir;
using namespace mlir::pgkp;
namespace schema = ::pgkp::schema;

namespace {

std::string printExpr(const schema::ExprT &expr,
                      ArrayRef<std::string> symbols) {
  SmallVector<std::string> nodes;
  for (const schema::ExprNode &node : expr.nodes) {
    if (node.op() == schema::ExprOp::constant) {
      nodes.push_back(std::to_string(node.value()));
    } else if (node.op() == schema::ExprOp::symbol) {
      nodes.push_back(symbols[node.value()]);
    } else {
      nodes.push_back((Twine(schema::EnumNameExprOp(node.op())) + "(" +
                       nodes[node.lhs()] + ", " + nodes[node.rhs()] + ")")
                          .str());
    }
  }
  return nodes.empty() ? "" : nodes.back();
}

template <typename Shape>
std::string printShape(const Shape &shape, ArrayRef<std::string> symbols) {
  SmallVector<std::string> extents;
  for (const auto &extent : shape)
    extents.push_back(printExpr(*extent, symbols));
  return (Twine("[") + llvm::join(extents, ", ") + "]").str();
}

void print(raw_ostream &os, const schema::BundleT &bundle, bool hashes) {
  for (auto [i, kernel] : llvm::enumerate(bundle.kernels)) {
    os << "kernel " << i << " " << kernel->name << " dims ["
       << llvm::join(kernel->dims, ", ") << "]";
    if (!kernel->family.empty())
      os << " family " << kernel->family;
    os << " configs " << kernel->configs.size() << "\n";
    if (hashes)
      os << "  hash "
         << llvm::toHex(ArrayRef(kernel->hash->bytes()->data(), 32),
                        /*LowerCase=*/true)
         << "\n";
    for (const auto &argument : kernel->args)
      os << "  " << (argument->output ? "out " : "arg ")
         << schema::EnumNameElementType(argument->element) << " "
         << printShape(argument->shape, kernel->dims) << "\n";
    for (const auto &klass : kernel->classes) {
      os << "  class [";
      llvm::interleaveComma(klass->facts, os, [&](const schema::Fact &fact) {
        os << kernel->dims[fact.dim()];
        if (fact.kind() == schema::FactKind::eq)
          os << " == " << fact.a();
        else if (fact.kind() == schema::FactKind::divisible)
          os << " mod " << fact.a() << " == 0";
        else
          os << " in [" << fact.a() << ", " << fact.b() << "]";
      });
      os << "] probability " << llvm::format("%.4f", klass->probability) << " "
         << schema::EnumNameProvenance(klass->provenance) << "\n";
    }
    if (kernel->flops)
      os << "  flops " << printExpr(*kernel->flops, kernel->dims) << "\n";
    if (kernel->bytes)
      os << "  bytes " << printExpr(*kernel->bytes, kernel->dims) << "\n";
  }
  for (const auto &entry : bundle.entries) {
    os << "entry " << entry->name << " symbol " << entry->symbol << " roots ["
       << llvm::join(entry->roots, ", ") << "]\n";
    for (const auto &argument : entry->args) {
      os << "  " << argument->name << " "
         << schema::EnumNameElementType(argument->element) << " "
         << printShape(argument->shape, entry->roots);
      if (argument->persistent)
        os << " persistent";
      if (argument->bounded)
        os << " in [" << argument->low << ", " << argument->high << "]";
      os << "\n";
    }
    for (const auto &result : entry->results) {
      os << "  result " << schema::EnumNameElementType(result->element) << " "
         << printShape(result->shape, entry->roots);
      if (result->carries >= 0)
        os << " carries " << result->carries;
      os << "\n";
    }
    for (const auto &site : entry->sites)
      os << "  site " << bundle.kernels[site->kernel]->name << " "
         << printShape(site->extents, entry->roots) << " probability "
         << llvm::format("%.2f", site->probability) << "\n";
  }
}

struct PrintManifestPass
    : public mlir::pgkp::impl::PrintManifestPassBase<PrintManifestPass> {
  using Base::Base;

  void runOnOperation() override {
    schema::BundleT bundle;
    if (failed(exportManifest(getOperation(), bundle)))
      return signalPassFailure();
    print(llvm::outs(), bundle, hashes);
    markAllAnalysesPreserved();
  }
};

} // namespace
