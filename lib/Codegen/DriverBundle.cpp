// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Modules to bundles.
#include "DriverImpl.h"

#include "base/File.h"
#include "pgkp/Pipelines/Pipelines.h"
#include "pgkp/Target/Manifest.h"
#include "schema/Envelope.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <cerrno>
#include <sys/mman.h>

using namespace mlir;
using namespace mlir::pgkp;
using rt::Code;
using rt::makeError;

rt::Expected<schema::BundleT>
HostCompiler::Impl::buildBundle(const std::string &name,
                                const std::vector<uint8_t> &source,
                                const std::vector<schema::TargetT> &targets,
                                const std::vector<uint8_t> &profile) {
  PGKP_ASSIGN(OwningOpRef<ModuleOp> module, parse(source, name));

  schema::BundleT bundle;
  bundle.module_ = name;
  bundle.producer = getProducer();
  {
    // Of the bytecode, so that layout and comments of the text do not matter.
    std::string bytecode;
    llvm::raw_string_ostream stream(bytecode);
    OwningOpRef<ModuleOp> stripped = module->clone();
    PassManager pm(ctx.get(), ModuleOp::getOperationName());
    pm.addPass(createStripDebugInfoPass());
    BytecodeWriterConfig config("PGKP");
    if (failed(pm.run(*stripped)) ||
        failed(writeBytecodeToFile(*stripped, stream, config)))
      return makeError(Code::internal, "{}: cannot be serialized", name);
    bundle.module_hash = toSchema(rt::hashBytes(
        {reinterpret_cast<const uint8_t *>(bytecode.data()), bytecode.size()}));
  }

  // The annotating pass reads a profile from a file.
  rt::UniqueFd profileFile;
  PreparePipelineOptions options;
  if (!profile.empty()) {
    std::vector<uint8_t> sealed = rt::seal(rt::FileKind::profile, profile);
    profileFile.reset(memfd_create("pgkp-profile", MFD_CLOEXEC));
    if (!profileFile ||
        write(profileFile.get(), sealed.data(), sealed.size()) !=
            static_cast<ssize_t>(sealed.size()))
      return rt::makeErrnoError(errno, "cannot hold a profile in memory");
    options.profile = "/proc/self/fd/" + std::to_string(profileFile.get());
  }
  {
    ErrorCollector errors(*ctx);
    PassManager pm(ctx.get(), ModuleOp::getOperationName());
    buildPreparePipeline(pm, options);
    if (failed(pm.run(*module)) || failed(exportManifest(*module, bundle)))
      return makeError(Code::invalidArgument, "{}",
                       errors.take(name + ": cannot be prepared"));
  }

  schema::TargetT host = getHostTarget();
  for (const schema::TargetT &target : targets)
    if (target.device == schema::DeviceKind::host)
      host = target;
  bundle.host_target = std::make_unique<schema::TargetT>(host);
  for (auto &kernel : bundle.kernels)
    for (const schema::TargetT &target : targets) {
      VariantRequest request;
      request.kernel = kernel->name;
      request.kernelHash = fromSchema(*kernel->hash);
      request.module = kernel->bytecode;
      request.target = target;
      request.format = target.device == schema::DeviceKind::cuda
                           ? schema::CodeFormat::ptx
                           : schema::CodeFormat::elf;
      // Ahead of time there is time.
      request.pipeline = schema::Pipeline::full;
      flatbuffers::FlatBufferBuilder config;
      if (!kernel->configs.empty()) {
        config.Finish(
            schema::Config::Pack(config, kernel->configs.front().get()));
        request.config =
            flatbuffers::GetRoot<schema::Config>(config.GetBufferPointer());
      }
      PGKP_ASSIGN(schema::ArtifactT artifact, compile(request));
      kernel->generic.push_back(
          std::make_unique<schema::ArtifactT>(std::move(artifact)));
    }

  if (!bundle.entries.empty()) {
    ErrorCollector errors(*ctx);
    PassManager pm(ctx.get(), ModuleOp::getOperationName());
    buildProgramLoweringPipeline(pm);
    if (failed(pm.run(*module)))
      return makeError(Code::unsupported, "{}",
                       errors.take(name + ": cannot be lowered to a program"));
    rt::Digest id = fromSchema(*bundle.module_hash);
    schema::StageTimesT times;
    PGKP_ASSIGN(bundle.program, makeImage(*module, host, schema::Pipeline::full,
                                          &id, name, times));
  }
  return bundle;
}

rt::Expected<schema::BundleT>
HostCompiler::buildBundle(const std::string &name,
                          const std::vector<uint8_t> &module,
                          const std::vector<schema::TargetT> &targets,
                          const std::vector<uint8_t> &profile) {
  return impl->buildBundle(name, module, targets, profile);
}
