// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// Compiles kernels and bundles for the runtime over a socket; the only process
/// of PGKP that holds a compiler. Also usable by hand, on files.

#include "Serve.h"
#include "ToolMain.h"

#include "base/File.h"
#include "pgkp/Codegen/Driver.h"
#include "schema/Envelope.h"

#include <charconv>

using namespace pgkp::rt;
using mlir::pgkp::HostCompiler;
namespace schema = pgkp::schema;

namespace {

struct Options {
  int fd = -1;
  std::string bundle, compile, output;
  std::vector<std::string> targets{"host"}, facts, config;
  bool full = false;
};

schema::TargetT parseTarget(const std::string &name) {
  if (name == "host")
    return mlir::pgkp::getHostTarget();
  schema::TargetT target;
  target.device = name.starts_with("sm_") ? schema::DeviceKind::cuda
                                          : schema::DeviceKind::host;
  target.chip = name;
  return target;
}

/// "0==1", "0%16" or "0:2-63": a position in the extents vector and a
/// statement.
Expected<schema::Fact> parseFact(const std::string &text) {
  auto bad = [&] {
    return makeError(Code::invalidArgument,
                     "fact '{}'; expected N==V, N%V or N:LOW-HIGH", text);
  };
  const char *at = text.data(), *end = at + text.size();
  auto number = [&](auto &value) {
    auto [next, error] = std::from_chars(at, end, value);
    at = next;
    return error == std::errc();
  };
  auto skip = [&](std::string_view what) {
    if (!std::string_view(at, static_cast<size_t>(end - at)).starts_with(what))
      return false;
    at += what.size();
    return true;
  };
  uint16_t dim = 0;
  int64_t a = 0, b = 0;
  schema::FactKind kind;
  if (!number(dim))
    return bad();
  if (skip("=="))
    kind = schema::FactKind::eq;
  else if (skip("%"))
    kind = schema::FactKind::divisible;
  else if (skip(":"))
    kind = schema::FactKind::range;
  else
    return bad();
  if (!number(a) ||
      (kind == schema::FactKind::range && (!skip("-") || !number(b))) ||
      at != end)
    return bad();
  return schema::Fact(kind, dim, a, b);
}

Expected<schema::ConfigT> parseConfig(const std::vector<std::string> &items) {
  schema::ConfigT config;
  for (const std::string &item : items) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0)
      return makeError(Code::invalidArgument,
                       "configuration item '{}'; expected NAME=VALUE", item);
    auto entry = std::make_unique<schema::ConfigItemT>();
    entry->name = item.substr(0, equals);
    const std::string value = item.substr(equals + 1);
    auto [next, error] = std::from_chars(
        value.data(), value.data() + value.size(), entry->integer);
    entry->kind = schema::ConfigValueKind::integer;
    if (error != std::errc() || next != value.data() + value.size()) {
      entry->kind = schema::ConfigValueKind::text;
      entry->integer = 0;
      entry->text = value;
    }
    config.items.push_back(std::move(entry));
  }
  return config;
}

Status buildBundle(const Options &options) {
  PGKP_ASSIGN(std::vector<uint8_t> source, readFile(options.bundle));
  std::vector<schema::TargetT> targets;
  for (const std::string &name : options.targets)
    targets.push_back(parseTarget(name));
  HostCompiler compiler;
  PGKP_ASSIGN(schema::BundleT bundle,
              compiler.buildBundle(options.bundle, source, targets, {}));
  flatbuffers::FlatBufferBuilder builder(1 << 20);
  schema::FinishBundleBuffer(builder, schema::Bundle::Pack(builder, &bundle));
  return writeSealed(FileKind::bundle, options.output,
                     {builder.GetBufferPointer(), builder.GetSize()});
}

Status compileKernel(const Options &options) {
  mlir::pgkp::VariantRequest request;
  PGKP_ASSIGN(request.module, readFile(options.compile));
  request.kernel = options.compile;
  request.kernelHash = hashBytes(request.module);
  for (const std::string &text : options.facts) {
    PGKP_ASSIGN(schema::Fact fact, parseFact(text));
    request.facts.push_back(fact);
  }
  PGKP_ASSIGN(schema::ConfigT config, parseConfig(options.config));
  flatbuffers::FlatBufferBuilder packed;
  packed.Finish(schema::Config::Pack(packed, &config));
  request.config =
      flatbuffers::GetRoot<schema::Config>(packed.GetBufferPointer());
  request.target = parseTarget(options.targets.front());
  if (request.target.device == schema::DeviceKind::cuda)
    request.format = schema::CodeFormat::ptx;
  request.pipeline =
      options.full ? schema::Pipeline::full : schema::Pipeline::lean;
  HostCompiler compiler;
  PGKP_ASSIGN(schema::ArtifactT artifact, compiler.compile(request));
  const schema::StageTimesT &times = *artifact.stages;
  std::fprintf(stderr,
               "generate %.1f ms, compile %.1f ms, link %.1f ms; %zu bytes\n",
               static_cast<double>(times.generate_ms),
               static_cast<double>(times.compile_ms),
               static_cast<double>(times.link_ms), artifact.code.size());
  // The bare code: what dlopen, objdump or ptxas take.
  return writeFileAtomically(options.output, artifact.code);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Compiles kernels and bundles for the PGKP runtime.\n"
               "Exit status: 0 done, 1 the work failed, 2 bad usage.",
               "pgkp-worker");
  Options options;
  auto *fd = app.add_option("--fd", options.fd,
                            "Serve the runtime on this connected stream socket "
                            "until it closes")
                 ->check(CLI::NonNegativeNumber);
  auto *bundle = app.add_option("--bundle", options.bundle,
                                "Build a bundle of this module");
  auto *compile = app.add_option(
      "--compile", options.compile,
      "Compile this module's one kernel; the output is bare code (ELF or PTX)");
  auto *output = app.add_option("-o,--output", options.output, "File to write");
  app.add_option("--targets", options.targets,
                 "host, an x86-64 level, or sm_<N>; --compile takes one")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--fact", options.facts,
                 "With --compile: N==V, N%V or N:LOW-HIGH about extent N");
  app.add_option("--config", options.config, "With --compile: NAME=VALUE");
  app.add_flag("--full", options.full,
               "With --compile: LLVM's whole pipeline, not the lean one");
  bundle->excludes(fd)->excludes(compile)->needs(output);
  compile->excludes(fd)->needs(output);
  if (int code = parseCommandLine(app, argc, argv); code >= 0)
    return code;

  Status status;
  if (*fd)
    status = serve(options.fd);
  else if (*bundle)
    status = buildBundle(options);
  else if (*compile)
    status = compileKernel(options);
  else
    return reportError("nothing to do; expected --fd, --bundle or --compile",
                       exitUsage);
  return status ? exitOk : reportError(status.error());
}
