// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// Turns an MLIR module into a bundle. The work is done by a worker process, so
/// that a crash in the compiler is an error line here.

#include "ToolMain.h"

#include "base/File.h"
#include "engine/Engine.h"
#include "schema/Envelope.h"

#include <cstdio>

using namespace pgkp::rt;

namespace {

Status compile(const std::string &input, const std::string &output,
               const std::vector<std::string> &targets,
               const std::string &worker, bool quiet) {
  PGKP_ASSIGN(std::vector<uint8_t> source, readFile(input));
  EngineOptions options;
  options.policy = "off";
  options.cacheDir = "none";
  if (!worker.empty())
    options.worker = worker;
  PGKP_ASSIGN(auto engine, Engine::create(options));
  double seconds = 0;
  PGKP_ASSIGN(auto bundle,
              engine->bundleFor(input, std::move(source), targets, &seconds));
  PGKP_TRY(writeSealed(FileKind::bundle, output, bundle));
  if (!quiet) {
    PGKP_ASSIGN(auto module, Module::load(std::move(bundle)));
    std::fprintf(stderr,
                 "%s: %zu kernels, %zu keys, %zu entries, built in %.2f s\n",
                 output.c_str(), module->kernels().size(),
                 module->keys().size(), module->entries().size(), seconds);
  }
  return {};
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Compiles an MLIR module to a bundle: host program, manifest, "
               "kernel bytecode and "
               "generic artifacts.\nExit status: 0 done, 1 the work failed, 2 "
               "bad usage.",
               "pgkp-compile");
  std::string input, output, worker;
  std::vector<std::string> targets{"host"};
  bool quiet = false;
  app.add_option("input", input, "MLIR module, text or bytecode")->required();
  app.add_option("-o,--output", output, "Bundle to write")->required();
  app.add_option("--targets", targets,
                 "Targets of the generic artifacts: host, sm_<N>")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--worker", worker, "Path of pgkp-worker");
  app.add_flag("--quiet", quiet, "No summary");
  if (int code = parseCommandLine(app, argc, argv); code >= 0)
    return code;
  if (Status status = compile(input, output, targets, worker, quiet); !status)
    return reportError(status.error());
  return exitOk;
}
