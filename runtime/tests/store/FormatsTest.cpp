// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Files of the present format versions, as they were written once: a build that
// cannot read them any more has to raise a version number, and then brings new
// ones (--gtest_also_run_disabled_tests --gtest_filter='Formats.DISABLED_*').
#include "base/File.h"
#include "base/TempDir.h"
#include "schema/Envelope.h"
#include "schema/Frame.h"
#include "schema/TestBundle.h"
#include "schema/wire_generated.h"
#include "store/Pack.h"
#include "store/ProfileFile.h"
#include "store/StoreImpl.h"

#include <filesystem>
#include <gtest/gtest.h>

using namespace pgkp;
using namespace pgkp::rt;
namespace fs = std::filesystem;

namespace {
std::string stored(const std::string &name) {
  return PGKP_STORED_FORMATS "/" + name;
}

Digest key(int64_t n) { return toDigest(*fixtures::variant(n)->content_key); }

schema::ProfileT makeProfile() {
  schema::ProfileT profile;
  profile.format_version = kFormatVersion;
  profile.module_hash = std::make_unique<schema::Digest>(
      fixtures::schemaDigest(fixtures::matmulHash()));
  profile.runs = 2.5;
  profile.device = "host x86-64";
  profile.keys.push_back(std::make_unique<schema::KeyProfileT>());
  schema::KeyProfileT &one = *profile.keys[0];
  one.kernel_hash = std::make_unique<schema::Digest>(
      fixtures::schemaDigest(fixtures::matmulHash()));
  one.kernel = "matmul";
  one.facts = {fixtures::eq(0, 1)};
  one.first_use_s = 0.25;
  one.uses = 7;
  one.runs_used = 2;
  one.compile_ms = 40;
  one.sample_extents = {1};
  profile.roots.push_back(std::make_unique<schema::RootCountT>());
  profile.roots[0]->entry = "decode";
  profile.roots[0]->roots = {1, 17};
  profile.roots[0]->count = 3;
  return profile;
}
std::vector<uint8_t> packAnswer(const schema::ResponseT &response) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(schema::CreateResponseMessage(
      builder, schema::Response::Pack(builder, &response)));
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}
} // namespace

TEST(Formats, Artifact) {
  auto payload = readSealed(FileKind::artifact, stored("artifact.pgkp"));
  ASSERT_TRUE(payload) << payload.error().message;
  auto artifact = StoredArtifact::create(key(1), *payload);
  ASSERT_TRUE(artifact) << artifact.error().message;
  EXPECT_TRUE((*artifact)->keyHolds()); // content keys are what they were
  EXPECT_EQ((*artifact)->costMs(), 150);
  EXPECT_EQ((*artifact)->artifact().kernel()->str(), "matmul");
}

TEST(Formats, ArtifactInAStore) {
  TempDir dir;
  const std::string hex = key(1).hex();
  const std::string path =
      dir / "v2/artifacts/" + hex.substr(0, 2) + "/" + hex + ".pgkp";
  fs::permissions(dir.path, fs::perms::owner_all);
  fs::create_directories(fs::path(path).parent_path());
  fs::permissions(dir / "v2", fs::perms::owner_all);
  fs::copy_file(stored("artifact.pgkp"), path);
  StoreOptions options;
  options.directory = dir.path;
  EXPECT_TRUE(Store::open(options)->get(key(1)));
}

TEST(Formats, Bundle) {
  auto payload = readSealed(FileKind::bundle, stored("bundle.pgkp"));
  ASSERT_TRUE(payload) << payload.error().message;
  auto module = Module::load(std::move(*payload));
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ((*module)->kernels().size(), 2u);
  EXPECT_EQ((*module)->findEntry("decode"), 0u);
}

TEST(Formats, Profile) {
  auto profile = loadProfile(stored("profile.pgkp"));
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(serializeProfile(*profile), serializeProfile(makeProfile()));
}

TEST(Formats, TuningAndRecipe) {
  auto payload = readSealed(FileKind::tuning, stored("tuning.pgkp"));
  ASSERT_TRUE(payload) << payload.error().message;
  const Digest variant = key(1);
  const std::string device = "host x86-64";
  auto tuning = parseTuning(*payload, &variant, &device);
  ASSERT_TRUE(tuning) << tuning.error().message;
  EXPECT_EQ(tuning->variantNs, 400);

  payload = readSealed(FileKind::recipe, stored("recipe.pgkp"));
  ASSERT_TRUE(payload) << payload.error().message;
  auto recipe = parseRecipe(*payload, nullptr);
  ASSERT_TRUE(recipe) << recipe.error().message;
  EXPECT_EQ(toDigest(*recipe->content_key), variant);
  EXPECT_EQ(recipe->compile_ms, 150);
}

TEST(Formats, Pack) {
  const PublicKey signer = PublicKey::load(stored("signer.pub.pem")).value();
  auto pack = openPack(readFile(stored("pack.pgkpack")).value(), signer, "p");
  ASSERT_TRUE(pack) << pack.error().message;
  ASSERT_EQ(pack->artifacts.size(), 2u);
  EXPECT_EQ(pack->artifacts[1]->contentKey(), key(2));
  ASSERT_TRUE(pack->profile);
  EXPECT_EQ(serializeProfile(*pack->profile), serializeProfile(makeProfile()));
}

TEST(Formats, DISABLED_Write) {
  ASSERT_TRUE(writeSealed(FileKind::artifact, stored("artifact.pgkp"),
                          fixtures::pack(*fixtures::variant(1))));
  ASSERT_TRUE(writeSealed(FileKind::bundle, stored("bundle.pgkp"),
                          fixtures::pack(fixtures::testBundle())));
  ASSERT_TRUE(saveProfile(stored("profile.pgkp"), makeProfile()));

  TempDir dir;
  StoreOptions options;
  options.directory = dir / "cache";
  auto store = Store::open(options);
  ASSERT_TRUE(store->put(key(1), fixtures::pack(*fixtures::variant(1))));
  TuningResult tuning;
  tuning.contentKey = key(1);
  tuning.device = "host x86-64";
  tuning.genericNs = 1000;
  tuning.variantNs = 400;
  tuning.launches = 24;
  tuning.extents = {1};
  ASSERT_TRUE(store->putTuning(tuning));
  auto copyOnly = [&](const char *folder, const char *name) {
    for (auto &entry :
         fs::recursive_directory_iterator(dir / "cache/v2/" + folder))
      if (entry.is_regular_file())
        fs::copy_file(entry, stored(name),
                      fs::copy_options::overwrite_existing);
  };
  copyOnly("tuning", "tuning.pgkp");
  copyOnly("recipes", "recipe.pgkp");

  const SecretKey key = SecretKey::generate().value();
  fs::remove(stored("signer.pub.pem"));
  ASSERT_TRUE(key.publicKey().save(stored("signer.pub.pem")));
  PackContents contents;
  contents.producer = "pgkp-cache test";
  contents.profile = makeProfile();
  for (int64_t n : {1, 2}) {
    const auto table = fixtures::variant(n);
    contents.artifacts.push_back(
        StoredArtifact::create(toDigest(*table->content_key),
                               fixtures::pack(*table))
            .value());
  }
  ASSERT_TRUE(writeFileAtomically(stored("pack.pgkpack"),
                                  makePack(contents, key).value()));

  // What the fuzz target of the worker's protocol begins with.
  const std::string seeds = stored("../../fuzz/seeds/wire/");
  schema::ResponseT response;
  response.job = 1;
  response.producer = "test";
  ASSERT_TRUE(writeFileAtomically(seeds + "ping", packAnswer(response)));
  std::vector<uint8_t> frame = packAnswer(response);
  FrameHeader header;
  header.size = frame.size();
  frame.insert(frame.begin(), reinterpret_cast<uint8_t *>(&header),
               reinterpret_cast<uint8_t *>(&header + 1));
  ASSERT_TRUE(writeFileAtomically(seeds + "frame", frame));
  response.artifact = fixtures::pack(*fixtures::variant(1));
  ASSERT_TRUE(writeFileAtomically(seeds + "compile", packAnswer(response)));
  response.artifact.clear();
  response.bundle = fixtures::pack(fixtures::testBundle());
  ASSERT_TRUE(writeFileAtomically(seeds + "bundle", packAnswer(response)));
  response.bundle.clear();
  response.status = schema::JobStatus::bad_input;
  response.message = "no";
  ASSERT_TRUE(writeFileAtomically(seeds + "refused", packAnswer(response)));
}
