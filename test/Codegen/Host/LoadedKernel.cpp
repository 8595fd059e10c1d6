// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "LoadedKernel.h"

#include "base/Digest.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace pgkp::schema;
using pgkp::rt::Code;
using pgkp::rt::makeError;

namespace pgkp::test {

std::string describe(const Variant &variant) {
  std::string text = variant.pipeline == Pipeline::full ? "full" : "lean";
  for (const Fact &fact : variant.facts)
    text += " d" + std::to_string(fact.dim()) + " " +
            EnumNameFactKind(fact.kind()) + " " + std::to_string(fact.a()) +
            " " + std::to_string(fact.b());
  for (auto &[name, value] : variant.config)
    text += " " + name + "=" + value;
  return text;
}

int64_t evaluate(const ExprT &expr, const std::vector<int64_t> &extents) {
  std::vector<int64_t> values;
  for (const ExprNode &node : expr.nodes) {
    auto lhs = [&] { return values[node.lhs()]; };
    auto rhs = [&] { return values[node.rhs()]; };
    switch (node.op()) {
    case ExprOp::constant:
      values.push_back(node.value());
      break;
    case ExprOp::symbol:
      values.push_back(extents.at(node.value()));
      break;
    case ExprOp::sum:
      values.push_back(lhs() + rhs());
      break;
    case ExprOp::product:
      values.push_back(lhs() * rhs());
      break;
    case ExprOp::floordiv:
      values.push_back(lhs() / rhs());
      break;
    case ExprOp::ceildiv:
      values.push_back((lhs() + rhs() - 1) / rhs());
      break;
    case ExprOp::mod:
      values.push_back(lhs() % rhs());
      break;
    case ExprOp::min:
      values.push_back(std::min(lhs(), rhs()));
      break;
    case ExprOp::max:
      values.push_back(std::max(lhs(), rhs()));
      break;
    }
  }
  return values.back();
}

std::vector<int64_t> makeHeader(void *data, const std::vector<int64_t> &shape) {
  std::vector<int64_t> words = {reinterpret_cast<int64_t>(data),
                                reinterpret_cast<int64_t>(data), 0};
  words.insert(words.end(), shape.begin(), shape.end());
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  words.insert(words.end(), strides.begin(), strides.end());
  return words;
}

rt::Expected<LoadedKernel>
LoadedKernel::create(mlir::pgkp::HostCompiler &compiler,
                     const std::string &source, const Variant &variant) {
  mlir::pgkp::VariantRequest request;
  request.kernel = "test";
  request.module.assign(source.begin(), source.end());
  request.kernelHash = rt::hashBytes(request.module);
  request.facts = variant.facts;
  request.target = mlir::pgkp::getHostTarget();
  request.pipeline = variant.pipeline;
  ConfigT config;
  for (auto &[name, value] : variant.config) {
    auto item = std::make_unique<ConfigItemT>();
    item->name = name;
    if (value.find_first_not_of("0123456789") == std::string::npos) {
      item->integer = std::stoll(value);
    } else {
      item->kind = ConfigValueKind::text;
      item->text = value;
    }
    config.items.push_back(std::move(item));
  }
  flatbuffers::FlatBufferBuilder packed;
  packed.Finish(Config::Pack(packed, &config));
  request.config = flatbuffers::GetRoot<Config>(packed.GetBufferPointer());

  LoadedKernel kernel;
  PGKP_ASSIGN(kernel.artifact, compiler.compile(request));
  const std::vector<uint8_t> &code = kernel.artifact.code;
  int fd = memfd_create("kernel", MFD_CLOEXEC);
  if (fd < 0 ||
      write(fd, code.data(), code.size()) != static_cast<ssize_t>(code.size()))
    return rt::makeErrnoError(errno, "cannot hold the artifact in memory");
  // A path per load: the loader takes equal paths for equal libraries.
  static int generation = 0;
  std::string path = "/proc/self/fd/";
  for (int i = 0; i < generation % 1000; ++i)
    path += "./";
  ++generation;
  path += std::to_string(fd);
  kernel.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  close(fd);
  if (!kernel.handle)
    return makeError(Code::internal, "{}", dlerror());
  kernel.function = reinterpret_cast<pgkp_host_kernel_fn>(
      dlsym(kernel.handle, kernel.artifact.symbol.c_str()));
  const void *id = dlsym(kernel.handle, PGKP_BUILD_ID_SYMBOL);
  if (!kernel.function || !id ||
      std::memcmp(id, kernel.artifact.content_key->bytes()->data(), 32) != 0)
    return makeError(Code::internal, "the artifact is not what was asked for");
  return kernel;
}

LoadedKernel::LoadedKernel(LoadedKernel &&other)
    : artifact(std::move(other.artifact)), function(other.function),
      handle(std::exchange(other.handle, nullptr)) {}

LoadedKernel::~LoadedKernel() {
  if (handle)
    dlclose(handle);
}

int64_t
LoadedKernel::workspaceBytes(const std::vector<int64_t> &extents) const {
  return artifact.workspace ? evaluate(*artifact.workspace, extents) : 0;
}

} // namespace pgkp::test
