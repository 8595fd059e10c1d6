// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Driver.h - From kernels and modules to artifacts ---------*- C++ -*-===//

#ifndef PGKP_CODEGEN_DRIVER_H
#define PGKP_CODEGEN_DRIVER_H

#include "base/Digest.h"
#include "base/Status.h"
#include "schema/manifest_generated.h"
#include "schema/record_generated.h"
#include "schema/wire_generated.h"

#include <memory>
#include <string>
#include <vector>

namespace mlir {
namespace pgkp {

/// "pgkp-<version>-<build> llvm-<version>": what content keys and records name.
/// `build` is the executable's build id where it has one, so that a changed
/// compiler never reuses an older one's artifacts.
std::string getProducer();

/// This machine's psABI level ("x86-64" to "x86-64-v4"), without features.
::pgkp::schema::TargetT getHostTarget();

/// One variant to compile.
struct VariantRequest {
  std::string kernel; ///< name, for messages and the record
  ::pgkp::rt::Digest kernelHash;
  /// Bytecode or text of a module with this one kernel.
  std::vector<uint8_t> module;
  std::vector<::pgkp::schema::Fact> facts;
  /// Null or without items: by the rules.
  const ::pgkp::schema::Config *config = nullptr;
  ::pgkp::schema::TargetT target;
  ::pgkp::schema::CodeFormat format = ::pgkp::schema::CodeFormat::elf;
  ::pgkp::schema::Pipeline pipeline = ::pgkp::schema::Pipeline::lean;
  /// Zero: computed here.
  ::pgkp::rt::Digest contentKey;
};

/// Compiles kernels and modules; keeps context, passes' registrations and
/// target machines warm between calls. Errors are one line, with file, line and
/// column where the module has them: invalidArgument (the module is at fault),
/// unsupported (valid, but not for this build), internal.
/// Not thread-safe, and one per process: the linker has global state.
class HostCompiler {
public:
  HostCompiler();
  ~HostCompiler();
  HostCompiler(const HostCompiler &) = delete;
  HostCompiler &operator=(const HostCompiler &) = delete;

  /// ELF for the host, or PTX for an sm_* chip.
  ::pgkp::rt::Expected<::pgkp::schema::ArtifactT>
  compile(const VariantRequest &request);

  /// A whole module: program, manifest, kernels, and the generic artifact of
  /// each kernel for each target. `name` is for messages, `profile` a
  /// serialized Profile or empty.
  ::pgkp::rt::Expected<::pgkp::schema::BundleT>
  buildBundle(const std::string &name, const std::vector<uint8_t> &module,
              const std::vector<::pgkp::schema::TargetT> &targets,
              const std::vector<uint8_t> &profile);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace pgkp
} // namespace mlir

#endif // PGKP_CODEGEN_DRIVER_H
