// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "history/ProfileRecorder.h"
#include "schema/TestBundle.h"

#include <gtest/gtest.h>

using namespace pgkp;
using namespace pgkp::rt;
namespace fx = pgkp::rt::fixtures;

namespace {

constexpr TimeNs s = kNsPerSecond;
constexpr KeyId kOne = 0, kSmall = 1, kGeneric = 3;

std::shared_ptr<const Module> testModule() {
  auto module = Module::load(fx::pack(fx::testBundle()));
  EXPECT_TRUE(module.has_value());
  return *module;
}

TEST(ProfileRecorder, OneRun) {
  ProfileRecorder recorder(testModule());
  const std::vector<int64_t> roots = {2, 16}, extents = {2};
  recorder.onRequest(0, roots, 10 * s);
  recorder.onRequest(0, roots, 11 * s);
  recorder.onUse(kSmall, 12 * s, extents);
  recorder.onUse(kSmall, 13 * s);
  recorder.onUse(kOne, 11 * s);
  recorder.onUse(kGeneric, 11 * s);
  recorder.onStageTimes(kSmall, 250, 3);
  recorder.onKernelTimes(kSmall, 900, 300);
  recorder.onKernelTimes(kSmall, 0, -1); // not known
  const auto profile = recorder.merge(nullptr, 20 * s);
  EXPECT_EQ(profile.runs, 1);
  ASSERT_EQ(profile.keys.size(), 2u); // by first use; generic needs none
  EXPECT_EQ(profile.keys[0]->first_use_s, 1);
  EXPECT_EQ(profile.keys[0]->first_use_rank, 1u);
  const auto &small = *profile.keys[1];
  EXPECT_EQ(small.kernel, "matmul");
  EXPECT_EQ(small.first_use_s, 2);
  EXPECT_EQ(small.uses, 2);
  EXPECT_NEAR(small.rate, 0.2, 1e-12);
  EXPECT_EQ(small.runs_used, 1);
  EXPECT_EQ(small.compile_ms, 250);
  EXPECT_EQ(small.generic_ns, 900);
  EXPECT_EQ(small.variant_ns, 300);
  EXPECT_EQ(small.sample_extents, extents);
  ASSERT_EQ(profile.roots.size(), 1u);
  EXPECT_EQ(profile.roots[0]->count, 2);
  EXPECT_EQ(profile.roots[0]->entry, "decode");
}

TEST(ProfileRecorder, RunsMergeAndAge) {
  auto module = testModule();
  ProfileRecorder first(module), second(module);
  first.onUse(kOne, 0);
  first.onUse(kSmall, 4 * s);
  const auto one = first.merge(nullptr, 10 * s);
  second.onUse(kSmall, 5 * s); // its own start
  const auto both = second.merge(&one, 15 * s);
  EXPECT_NEAR(both.runs, 1.8, 1e-12);
  ASSERT_EQ(both.keys.size(), 2u);
  const auto &old = *both.keys[0], &again = *both.keys[1];
  EXPECT_NEAR(old.runs_used, 0.8, 1e-12);
  EXPECT_EQ(old.first_use_s, 0);
  EXPECT_NEAR(again.runs_used, 1.8, 1e-12);
  EXPECT_NEAR(again.first_use_s, 4 * 0.8 / 1.8, 1e-12);
}

TEST(ProfileRecorder, AnEmptyRunChangesNothingAndAnotherModuleIsLeftOut) {
  auto module = testModule();
  ProfileRecorder first(module), idle(module);
  first.onUse(kOne, 0);
  auto one = first.merge(nullptr, 10 * s);
  const auto same = idle.merge(&one, 10 * s);
  EXPECT_EQ(same.runs, 1);
  EXPECT_EQ(same.keys[0]->runs_used, 1);
  one.module_hash =
      std::make_unique<schema::Digest>(fx::schemaDigest(fx::matmulHash()));
  EXPECT_EQ(first.merge(&one, 10 * s).runs, 1);
}

} // namespace
