// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A program that computes on the host: out = 2 x + y over n elements,
/// with variants by the test worker that give wrong results outside their
/// class.
#pragma once

#include "devices/Fixtures.h"
#include "devices/device/Memref.h"
#include "devices/host/HostDevice.h"
#include "engine/EngineFixture.h"

#include <vector>

namespace pgkp::rt::testing {

/// One kernel, axpy(n): classes [n == 64], [n in 2..63], [n % 16 == 0].
/// `dynamic` false: a kernel of 64 elements, without extents and classes.
inline schema::BundleT axpyBundle(bool dynamic = true) {
  schema::BundleT bundle = fixtures::testBundle();
  bundle.module_ = "axpy.mlir";
  bundle.producer = "test worker 1";
  bundle.kernels.resize(1);
  bundle.entries.clear();
  schema::KernelT &kernel = *bundle.kernels[0];
  kernel.name = "axpy";
  kernel.family = "elementwise";
  kernel.dims.clear();
  if (dynamic)
    kernel.dims.push_back("n");
  kernel.args.clear();
  for (int i = 0; i < 3; ++i) {
    auto arg = std::make_unique<schema::KernelArgT>();
    arg->element = schema::ElementType::f32;
    arg->shape.push_back(fixtures::expr(
        {dynamic ? fixtures::symbol(0) : fixtures::constant(64)}));
    arg->output = i == 2;
    kernel.args.push_back(std::move(arg));
  }
  kernel.classes.clear();
  const std::vector<std::vector<schema::Fact>> classes{
      {fixtures::eq(0, 64)},
      {fixtures::inRange(0, 2, 63)},
      {fixtures::divisible(0, 16)}};
  if (dynamic)
    for (const std::vector<schema::Fact> &facts : classes) {
      kernel.classes.push_back(std::make_unique<schema::ClassT>());
      kernel.classes.back()->facts = facts;
      kernel.classes.back()->probability = 0.5f;
    }
  kernel.flops.reset();
  kernel.generic.clear();
  ArtifactBuilder generic(makeHostDevice()->target(), schema::CodeFormat::elf,
                          readFixture("fixture_generic"), fixtureKey(6));
  generic.artifact.kernel_hash = std::make_unique<schema::Digest>(*kernel.hash);
  kernel.generic.push_back(
      std::make_unique<schema::ArtifactT>(std::move(generic.artifact)));
  return bundle;
}

/// A module with that kernel and a context of it.
class Axpy {
public:
  /// `engine` is a host or sim engine; the latter computes nothing.
  explicit Axpy(const std::shared_ptr<Engine> &engine, bool dynamic = true)
      : computes(engine->deviceName().starts_with("host")), dynamic(dynamic) {
    auto loaded = engine->load(fixtures::pack(axpyBundle(dynamic)));
    if (!loaded) {
      problem = loaded.error().message;
      return;
    }
    module = *loaded;
    auto made = Context::create(module);
    if (made)
      context = std::move(*made);
    else
      problem = made.error().message;
  }

  /// Dispatches with n elements. \returns what went wrong; empty: nothing.
  std::string run(int64_t n) {
    if (!context)
      return problem;
    std::vector<float> x(static_cast<size_t>(n)), y(x), out(x.size(), -1);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i + round);
      y[i] = static_cast<float>(3 * i);
    }
    const int64_t sizes[] = {n};
    MemrefHeader headers[] = {
        {x.data(), sizes}, {y.data(), sizes}, {out.data(), sizes}};
    void *args[] = {headers[0].data(), headers[1].data(), headers[2].data()};
    const Status status =
        context->dispatch(0, std::span(sizes).first(dynamic ? 1 : 0), args);
    if (!status)
      return status.error().message;
    ++round;
    for (size_t i = 0; computes && i < out.size(); ++i)
      if (out[i] != 2 * x[i] + y[i])
        return fmt::format("n = {}: element {} is {}, not {}", n, i, out[i],
                           2 * x[i] + y[i]);
    return {};
  }

  bool ready(int64_t n) const {
    const int64_t sizes[] = {n};
    return module->explain(0, sizes).find(": ready") != std::string::npos;
  }

  const bool computes, dynamic;
  size_t round = 0;
  std::string problem;
  std::shared_ptr<LoadedModule> module;
  std::unique_ptr<Context> context;
};

} // namespace pgkp::rt::testing
