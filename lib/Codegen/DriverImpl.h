// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What the driver's halves (kernels, bundles) share.
#ifndef PGKP_LIB_CODEGEN_DRIVERIMPL_H
#define PGKP_LIB_CODEGEN_DRIVERIMPL_H

#include "pgkp/Codegen/Driver.h"

#include "pgkp/Dialect/IR/PGKPOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OwningOpRef.h"

#include <chrono>
#include <map>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace mlir::pgkp {

namespace schema = ::pgkp::schema;
namespace rt = ::pgkp::rt;

/// Keeps the first error as one line; the rest of MLIR's output is dropped.
class ErrorCollector {
public:
  explicit ErrorCollector(MLIRContext &ctx)
      : handler(&ctx, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
              line.empty())
            line = format(diagnostic);
          return success();
        }) {}

  bool empty() const { return line.empty(); }
  std::string take(const std::string &otherwise) const {
    return line.empty() ? otherwise : line;
  }

private:
  static std::string format(Diagnostic &diagnostic);

  std::string line;
  ScopedDiagnosticHandler handler;
};

/// Wall time of stages, ms.
class StageClock {
public:
  float lap() {
    auto now = std::chrono::steady_clock::now();
    float ms = std::chrono::duration<float, std::milli>(now - last).count();
    last = now;
    return ms;
  }

private:
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

inline std::unique_ptr<schema::Digest> toSchema(const rt::Digest &digest) {
  return std::make_unique<schema::Digest>(
      flatbuffers::span<const uint8_t, 32>(digest.bytes));
}

inline rt::Digest fromSchema(const schema::Digest &digest) {
  rt::Digest result;
  std::copy(digest.bytes()->begin(), digest.bytes()->end(),
            result.bytes.begin());
  return result;
}

struct HostCompiler::Impl {
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> ctx;
  std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;

  Impl();
  ~Impl();

  /// One per chip and features, kept.
  rt::Expected<llvm::TargetMachine *> getMachine(const schema::TargetT &target);
  rt::Expected<OwningOpRef<ModuleOp>> parse(const std::vector<uint8_t> &source,
                                            const std::string &name);
  rt::Expected<std::vector<uint8_t>>
  makeImage(ModuleOp module, const schema::TargetT &target,
            schema::Pipeline pipeline, const rt::Digest *buildId,
            const std::string &name, schema::StageTimesT &times);
  rt::Status compileHost(ModuleOp module, const VariantRequest &request,
                         schema::ArtifactT &artifact);
  rt::Status compilePTX(KernelOp kernel, ArrayRef<FactAttr> facts,
                        const VariantRequest &request,
                        schema::ArtifactT &artifact);
  rt::Expected<schema::ArtifactT> compile(const VariantRequest &request);
  rt::Expected<schema::BundleT>
  buildBundle(const std::string &name, const std::vector<uint8_t> &source,
              const std::vector<schema::TargetT> &targets,
              const std::vector<uint8_t> &profile);
};

} // namespace mlir::pgkp

#endif // PGKP_LIB_CODEGEN_DRIVERIMPL_H
