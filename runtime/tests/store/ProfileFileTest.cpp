// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/ProfileFile.h"

#include "base/File.h"
#include "base/LogCapture.h"
#include "base/TempDir.h"
#include "schema/Envelope.h"
#include "schema/TestBundle.h"

#include <gtest/gtest.h>
#include <limits>

using namespace pgkp;
using namespace pgkp::rt;

namespace {
void addKey(schema::ProfileT &profile, int64_t m, double firstUse, double uses,
            double runsUsed = 1) {
  auto key = std::make_unique<schema::KeyProfileT>();
  key->kernel_hash = std::make_unique<schema::Digest>(
      fixtures::schemaDigest(fixtures::matmulHash()));
  key->kernel = "matmul";
  key->facts = {fixtures::eq(0, m)};
  key->first_use_s = firstUse;
  key->uses = uses;
  key->runs_used = runsUsed;
  key->rate = uses / 10;
  profile.keys.push_back(std::move(key));
}

schema::ProfileT run() {
  schema::ProfileT profile;
  profile.format_version = 1;
  profile.runs = 1;
  profile.module_hash = std::make_unique<schema::Digest>(
      fixtures::schemaDigest(fixtures::matmulHash()));
  return profile;
}

void addRoots(schema::ProfileT &profile, std::vector<int64_t> roots,
              double count) {
  profile.roots.push_back(std::make_unique<schema::RootCountT>());
  profile.roots.back()->entry = "decode";
  profile.roots.back()->roots = std::move(roots);
  profile.roots.back()->count = count;
}
} // namespace

TEST(Profile, MergeAgesAndAverages) {
  schema::ProfileT first = run(), second = run();
  addKey(first, 1, 2.0, 10);
  addKey(first, 2, 1.0, 4);
  first.keys[0]->generic_ns = 100;
  addKey(second, 1, 4.0, 20);
  addKey(second, 3, 0.5, 6);
  second.keys[0]->variant_ns = 50;
  const schema::ProfileT merged = mergeProfiles(first, second);
  EXPECT_DOUBLE_EQ(merged.runs, 1.8);
  ASSERT_EQ(merged.keys.size(), 3u); // in order of first use: 3, 2, 1
  EXPECT_EQ(merged.keys[0]->facts[0].a(), 3);
  EXPECT_DOUBLE_EQ(merged.keys[0]->runs_used, 1);
  EXPECT_DOUBLE_EQ(merged.keys[0]->uses, 6 / 1.8);
  EXPECT_EQ(merged.keys[1]->facts[0].a(), 2);
  EXPECT_DOUBLE_EQ(merged.keys[1]->runs_used, 0.8);
  EXPECT_DOUBLE_EQ(merged.keys[1]->uses, 4 * 0.8 / 1.8);
  const schema::KeyProfileT &both = *merged.keys[2];
  EXPECT_DOUBLE_EQ(both.runs_used, 1.8);
  EXPECT_DOUBLE_EQ(both.first_use_s, (0.8 * 2.0 + 4.0) / 1.8);
  EXPECT_DOUBLE_EQ(both.uses, (0.8 * 10 + 20) / 1.8);
  EXPECT_EQ(both.generic_ns, 100);
  EXPECT_EQ(both.variant_ns, 50);
  EXPECT_EQ(both.first_use_rank, 2u);
}

TEST(Profile, UnusedKeysFadeAway) {
  schema::ProfileT profile = run();
  addKey(profile, 1, 0, 1);
  int runs = 0;
  while (!profile.keys.empty()) {
    profile = mergeProfiles(profile, run());
    ASSERT_LT(++runs, 20);
  }
  EXPECT_EQ(runs, 14); // 0.8^14 < 0.05
  EXPECT_NEAR(profile.runs, 5, 0.3);
}

TEST(Profile, FactOrderDoesNotMakeTwoKeys) {
  schema::ProfileT first = run(), second = run();
  addKey(first, 1, 0, 1);
  first.keys[0]->facts = {fixtures::eq(0, 1), fixtures::eq(1, 2)};
  addKey(second, 1, 0, 1);
  second.keys[0]->facts = {fixtures::eq(1, 2), fixtures::eq(0, 1)};
  EXPECT_EQ(mergeProfiles(first, second).keys.size(), 1u);
}

TEST(Profile, KeepsTheMostUsedKeys) {
  schema::ProfileT older, newer = run();
  for (int64_t m = 0; m < 17000; ++m)
    addKey(newer, m, static_cast<double>(m), m < 1000 ? 1 : 2);
  const schema::ProfileT merged = mergeProfiles(older, newer);
  ASSERT_EQ(merged.keys.size(), kMaxProfileKeys);
  EXPECT_EQ(merged.keys.back()->facts[0].a(), 16999);
  EXPECT_EQ(merged.keys.front()->uses, 1);
}

TEST(Profile, RootsOfAnotherModuleAreDropped) {
  schema::ProfileT first = run(), second = run();
  addRoots(first, {1, 2}, 5);
  addRoots(second, {1, 2}, 1);
  addRoots(second, {3, 4}, 9);
  schema::ProfileT merged = mergeProfiles(first, second);
  ASSERT_EQ(merged.roots.size(), 2u);
  EXPECT_EQ(merged.roots[0]->count, 9);
  EXPECT_EQ(merged.roots[1]->count, 5);
  first.module_hash.reset();
  merged = mergeProfiles(first, second);
  EXPECT_EQ(merged.roots[1]->count, 1);
}

TEST(Profile, FilesRoundTripAndMerge) {
  TempDir dir;
  const std::string path = dir / "p";
  EXPECT_EQ(loadProfile(path).error().code, Code::notFound);
  schema::ProfileT one = run();
  addKey(one, 1, 0, 5);
  ASSERT_TRUE(saveProfileMerged(path, one));
  ASSERT_TRUE(saveProfileMerged(path, one));
  auto loaded = loadProfile(path);
  ASSERT_TRUE(loaded);
  EXPECT_DOUBLE_EQ(loaded->runs, 1.8);
  ASSERT_EQ(loaded->keys.size(), 1u);
  EXPECT_DOUBLE_EQ(loaded->keys[0]->uses, 5);
}

TEST(Profile, DamageIsFoundAndReplaced) {
  TempDir dir;
  LogCapture log;
  const std::string path = dir / "p";
  schema::ProfileT one = run();
  addKey(one, 1, 0, 5);
  ASSERT_TRUE(saveProfile(path, one));
  std::vector<uint8_t> file = readFile(path).value();
  file[file.size() / 2] ^= 4;
  ASSERT_TRUE(writeFileAtomically(path, file));
  EXPECT_EQ(loadProfile(path).error().code, Code::corrupt);
  ASSERT_TRUE(saveProfileMerged(path, one));
  EXPECT_EQ(log.count("it is replaced"), 1u);
  EXPECT_TRUE(loadProfile(path));
}

TEST(Profile, ImpossibleNumbersAreCorrupt) {
  TempDir dir;
  const std::string path = dir / "p";
  for (double bad : {-1.0, std::numeric_limits<double>::infinity(),
                     std::numeric_limits<double>::quiet_NaN()}) {
    schema::ProfileT one = run();
    addKey(one, 1, bad, 5);
    ASSERT_TRUE(saveProfile(path, one));
    EXPECT_EQ(loadProfile(path).error().code, Code::corrupt);
  }
}

TEST(Profile, BitFlipsInsideTheEnvelopeNeverCrash) {
  TempDir dir;
  schema::ProfileT one = run();
  addKey(one, 1, 0, 5);
  addRoots(one, {1, 2}, 3);
  const std::vector<uint8_t> good = serializeProfile(one);
  for (size_t bit = 0; bit < 8 * good.size(); bit += 3) {
    std::vector<uint8_t> bad = good;
    bad[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    overwrite(dir / "p", seal(FileKind::profile, bad));
    if (auto profile = loadProfile(dir / "p"))
      (void)mergeProfiles(*profile, one);
  }
}
