// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Debian's libLLVMLTO, which lld links, names Polly's plugin. Link-time
// optimization is never asked for here, so an empty plugin takes its place.
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Plugins/PassPlugin.h"

llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "none", "0", [](llvm::PassBuilder &) {}};
}
