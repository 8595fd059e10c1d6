// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "schema/TestBundle.h"

#include <functional>
#include <gtest/gtest.h>

using namespace pgkp;
using namespace pgkp::rt;
using namespace pgkp::rt::fixtures;

namespace {
std::shared_ptr<const Module> loadTest() {
  auto module = Module::load(pack(testBundle()));
  EXPECT_TRUE(module) << module.error().message;
  return *module;
}

/// Loads the test bundle after `change`; \returns the error's message or "".
std::string loadChanged(const std::function<void(schema::BundleT &)> &change) {
  schema::BundleT bundle = testBundle();
  change(bundle);
  auto module = Module::load(pack(bundle));
  return module ? "" : module.error().message;
}
} // namespace

TEST(Module, Loads) {
  auto module = loadTest();
  EXPECT_EQ(module->name(), "test.mlir");
  ASSERT_EQ(module->kernels().size(), 2u);
  EXPECT_EQ(module->keys().size(), 5u);
  EXPECT_EQ(module->kernels()[1].firstKey, 4u);
  EXPECT_TRUE(module->dynamic());
  EXPECT_EQ(module->findEntry("decode"), 0u);
  EXPECT_FALSE(module->findEntry("prefill"));
  const int64_t extents[] = {4};
  EXPECT_EQ(module->kernels()[0].flops.evaluate(extents), 32768);
  EXPECT_TRUE(module->kernels()[0].bytes.empty());
  EXPECT_FALSE(module->entries()[0].sites[3].derivable);
  EXPECT_TRUE(module->entries()[0].sites[2].derivable);
}

TEST(Module, ClassifiesByTheFirstClassThatHolds) {
  auto module = loadTest();
  auto key = [&](int64_t m) {
    const int64_t extents[] = {m};
    return module->classify(0, extents);
  };
  EXPECT_EQ(key(1), 0u);
  EXPECT_EQ(key(16), 1u); // also divisible, but the range comes first
  EXPECT_EQ(key(64), 2u);
  EXPECT_EQ(key(65), 3u);
  EXPECT_TRUE(module->isGeneric(3));
  EXPECT_FALSE(module->isGeneric(2));
  EXPECT_EQ(module->describe(0), "matmul[d0 == 1]");
  EXPECT_EQ(module->describe(3), "matmul[generic]");
  EXPECT_TRUE(module->facts(3).empty());
}

TEST(Module, ExpandsRootsInProgramOrder) {
  auto module = loadTest();
  std::vector<KeyId> keys{99};
  const int64_t roots[] = {1, 64};
  module->expand(0, roots, keys);
  EXPECT_EQ(keys, (std::vector<KeyId>{2, 0, 4}));
  const int64_t same[] = {1, 1};
  module->expand(0, same, keys);
  EXPECT_EQ(keys, (std::vector<KeyId>{0, 4}));
  const int64_t huge[] = {int64_t{1} << 62, 4}; // the product overflows
  module->expand(0, huge, keys);
  EXPECT_EQ(keys, (std::vector<KeyId>{2, 4}));
}

TEST(Module, GenericArtifactByDevice) {
  auto module = loadTest();
  EXPECT_NE(module->generic(0, schema::DeviceKind::host), nullptr);
  EXPECT_NE(module->generic(0, schema::DeviceKind::host, "x86-64"), nullptr);
  EXPECT_EQ(module->generic(0, schema::DeviceKind::host, "riscv"), nullptr);
  EXPECT_EQ(module->generic(0, schema::DeviceKind::cuda), nullptr);
  EXPECT_EQ(module->generic(1, schema::DeviceKind::host), nullptr);
}

TEST(Module, StaticModuleIsNotDynamic) {
  schema::BundleT bundle;
  bundle.format_version = 1;
  bundle.module_ = "static";
  bundle.producer = "test";
  auto module = Module::load(pack(bundle));
  ASSERT_TRUE(module);
  EXPECT_FALSE((*module)->dynamic());
}

TEST(Module, RefusesWhatTheVerifierLetsThrough) {
  using B = schema::BundleT;
  const std::pair<const char *, std::function<void(B &)>> cases[] = {
      {"format version 2", [](B &b) { b.format_version = 2; }},
      {"fact about extent 1, there are 1",
       [](B &b) { b.kernels[0]->classes[0]->facts = {eq(1, 1)}; }},
      {"divisor 0",
       [](B &b) { b.kernels[0]->classes[0]->facts = {divisible(0, 0)}; }},
      {"divisor -4",
       [](B &b) { b.kernels[0]->classes[0]->facts = {divisible(0, -4)}; }},
      {"range [9, 8] of extent 0 is empty",
       [](B &b) { b.kernels[0]->classes[0]->facts = {inRange(0, 9, 8)}; }},
      {"== -1 is negative",
       [](B &b) { b.kernels[0]->classes[0]->facts = {eq(0, -1)}; }},
      {"unknown kind of fact 9",
       [](B &b) {
         b.kernels[0]->classes[0]->facts = {
             {static_cast<schema::FactKind>(9), 0, 1, 1}};
       }},
      {"class 1 repeats an earlier one",
       [](B &b) {
         b.kernels[0]->classes[1]->facts = {eq(0, 1), eq(0, 1)};
       }},
      {"class 2 has no facts",
       [](B &b) { b.kernels[0]->classes[2]->facts.clear(); }},
      {"probability outside [0, 1]",
       [](B &b) { b.kernels[0]->classes[2]->probability = 1.5f; }},
      {"unknown element type",
       [](B &b) {
         b.kernels[0]->args[0]->element = static_cast<schema::ElementType>(99);
       }},
      {"argument 0: expression node 0 names symbol 1",
       [](B &b) { b.kernels[0]->args[0]->shape[0] = expr({symbol(1)}); }},
      {"argument 0: dimension 0 has no expression",
       [](B &b) { b.kernels[0]->args[0]->shape[0] = expr({}); }},
      {"flops: expression node 0 has unknown operator",
       [](B &b) {
         b.kernels[0]->flops =
             expr({node(static_cast<schema::ExprOp>(50), 0, 0)});
       }},
      {"two kernels named 'matmul'",
       [](B &b) { b.kernels[1]->name = "matmul"; }},
      {"invalid name", [](B &b) { b.kernels[1]->name = "a b"; }},
      {"no hash", [](B &b) { b.kernels[1]->hash.reset(); }},
      {"generic artifact 0 is of another kernel",
       [](B &b) {
         b.kernels[0]->generic[0]->kernel_hash =
             std::make_unique<schema::Digest>();
       }},
      {"generic artifact 0: artifact has an unknown target",
       [](B &b) {
         b.kernels[0]->generic[0]->target->device =
             static_cast<schema::DeviceKind>(7);
       }},
      {"generic artifact 0: workspace",
       [](B &b) { b.kernels[0]->generic[0]->workspace = expr({symbol(3)}); }},
      {"site 1: kernel number 2, there are 2",
       [](B &b) { b.entries[0]->sites[1]->kernel = 2; }},
      {"site 2: 1 extents, kernel 'fill' has 0",
       [](B &b) {
         b.entries[0]->sites[2]->extents.push_back(expr({constant(1)}));
       }},
      {"result 0 carries argument 1, there are 1",
       [](B &b) { b.entries[0]->results[0]->carries = 1; }},
      {"result 0 carries argument -2",
       [](B &b) { b.entries[0]->results[0]->carries = -2; }},
      {"result 0 carries argument 0 of another type",
       [](B &b) {
         b.entries[0]->results[0]->element = schema::ElementType::f16;
       }},
      {"empty range [2, 1]",
       [](B &b) {
         b.entries[0]->args[0]->bounded = true;
         b.entries[0]->args[0]->low = 2;
         b.entries[0]->args[0]->high = 1;
       }},
      {"invalid name or symbol", [](B &b) { b.entries[0]->symbol = "a\nb"; }},
  };
  for (const auto &[message, change] : cases)
    EXPECT_NE(loadChanged(change).find(message), std::string::npos)
        << "expected '" << message << "', got '" << loadChanged(change) << "'";
}

TEST(Module, TruncationsNeverCrash) {
  const std::vector<uint8_t> whole = pack(testBundle());
  for (size_t size = 0; size < whole.size(); ++size) {
    auto module = Module::load({whole.begin(), whole.begin() + size});
    if (module) // what is left may still be whole; using it must be safe
      for (KeyId key = 0; key < (*module)->keys().size(); ++key)
        (void)(*module)->describe(key);
  }
}

TEST(Module, EveryBitFlipIsRefusedOrHarmless) {
  const std::vector<uint8_t> whole = pack(testBundle());
  size_t refused = 0;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::vector<uint8_t> bytes = whole;
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    auto loaded = Module::load(std::move(bytes));
    if (!loaded) {
      ++refused;
      EXPECT_FALSE(loaded.error().message.empty());
      continue;
    }
    const Module &module = **loaded;
    std::vector<KeyId> keys;
    const int64_t roots[] = {3, 5};
    for (uint32_t e = 0; e < module.entries().size(); ++e)
      module.expand(e, roots, keys);
    for (uint32_t k = 0; k < module.kernels().size(); ++k) {
      const int64_t extents[64] = {1};
      (void)module.classify(
          k, std::span(extents, module.kernels()[k].dims.size()));
      (void)module.generic(k, schema::DeviceKind::host, "x");
    }
    for (KeyId key : keys)
      (void)module.describe(key);
    (void)module.program();
  }
  EXPECT_GT(refused, 0u);
}
