// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/Pack.h"

#include "base/Failpoint.h"
#include "base/File.h"
#include "base/LogCapture.h"
#include "base/TempDir.h"
#include "schema/Envelope.h"
#include "schema/SkewedFile.h"
#include "schema/TestBundle.h"
#include "schema/pack_generated.h"

#include <cerrno>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace pgkp;
using namespace pgkp::rt;

namespace {
constexpr size_t kSealed = kEnvelopeBytes, kSigned = kEnvelopeBytes + 96;

std::shared_ptr<const StoredArtifact> artifact(int64_t n) {
  auto table = fixtures::variant(n);
  return StoredArtifact::create(toDigest(*table->content_key),
                                fixtures::pack(*table))
      .value();
}

struct PackTest : ::testing::Test {
  ~PackTest() override { clearFailpoints(); }

  PackContents contents() {
    PackContents result;
    result.producer = "pgkp test";
    for (int64_t n : {1, 2, 3})
      result.artifacts.push_back(artifact(n));
    schema::ProfileT profile;
    profile.format_version = 1;
    profile.runs = 3;
    profile.device = "host";
    profile.keys.push_back(std::make_unique<schema::KeyProfileT>());
    profile.keys[0]->kernel_hash = std::make_unique<schema::Digest>(
        fixtures::schemaDigest(fixtures::matmulHash()));
    profile.keys[0]->uses = 7;
    result.profile = std::move(profile);
    return result;
  }
  Expected<PackContents> open(const std::vector<uint8_t> &file) {
    return openPack(file, key.publicKey(), "p.pgkpack");
  }
  /// Signed by us, but not made by makePack.
  std::vector<uint8_t> sign(std::span<const uint8_t> pack) {
    const PublicKey signer = key.publicKey();
    const Signature signature = key.sign(kPackDomain, pack);
    std::vector<uint8_t> payload(signer.raw().begin(), signer.raw().end());
    payload.insert(payload.end(), signature.begin(), signature.end());
    payload.insert(payload.end(), pack.begin(), pack.end());
    return seal(FileKind::pack, payload);
  }
  std::vector<uint8_t> sign(const schema::PackBodyT &pack) {
    flatbuffers::FlatBufferBuilder builder;
    schema::FinishPackBodyBuffer(builder,
                                 schema::PackBody::Pack(builder, &pack));
    return sign(std::span(builder.GetBufferPointer(), builder.GetSize()));
  }
  std::unique_ptr<Store> openStore(const std::string &name) {
    StoreOptions options;
    options.directory = dir / name;
    return Store::open(options);
  }

  SecretKey key = SecretKey::generate().value();
  TempDir dir;
  LogCapture log;
};
} // namespace

TEST_F(PackTest, CarriesArtifactsAndProfileToAnotherStore) {
  const std::vector<uint8_t> file = makePack(contents(), key).value();
  auto opened = open(file);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->producer, "pgkp test");
  ASSERT_TRUE(opened->profile);
  EXPECT_EQ(opened->profile->runs, 3);
  EXPECT_EQ(opened->profile->keys.at(0)->uses, 7);
  auto store = openStore("there");
  ASSERT_TRUE(store->put(artifact(2)->contentKey(),
                         fixtures::pack(*fixtures::variant(2))));
  auto report = importArtifacts(*store, *opened);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->added, 2u);
  EXPECT_EQ(report->present, 1u);
  store = openStore("there");
  for (int64_t n : {1, 2, 3}) {
    auto found = store->get(artifact(n)->contentKey());
    ASSERT_TRUE(found) << n;
    EXPECT_TRUE(
        std::ranges::equal((*found)->payload(), artifact(n)->payload()));
  }
  EXPECT_TRUE(log.lines().empty());
}

TEST_F(PackTest, EveryDamagedByteIsFound) {
  PackContents one;
  one.artifacts.push_back(artifact(1));
  const std::vector<uint8_t> good = makePack(one, key).value();
  for (size_t i = 0; i < good.size(); ++i) {
    std::vector<uint8_t> bad = good;
    bad[i] ^= static_cast<uint8_t>(1 + i % 255);
    auto opened = open(bad);
    ASSERT_FALSE(opened) << i;
    EXPECT_EQ(opened.error().message.find('\n'), std::string::npos);
  }
}

TEST_F(PackTest, WhoeverSealsDamageAgainIsStoppedByTheSignature) {
  PackContents one;
  one.artifacts.push_back(artifact(1));
  const std::vector<uint8_t> good = makePack(one, key).value();
  // Public key, signature, then all of what is signed.
  for (size_t i = kSealed; i < good.size(); ++i) {
    std::vector<uint8_t> payload(good.begin() + kSealed, good.end());
    payload[i - kSealed] ^= 0x10;
    auto opened = open(seal(FileKind::pack, payload));
    ASSERT_FALSE(opened) << i;
    EXPECT_EQ(opened.error().code, Code::permission) << i;
  }
}

TEST_F(PackTest, EveryTruncationIsFound) {
  PackContents one;
  one.artifacts.push_back(artifact(1));
  const std::vector<uint8_t> good = makePack(one, key).value();
  for (size_t size = 0; size < good.size(); ++size) {
    auto opened = open({good.begin(), good.begin() + static_cast<long>(size)});
    ASSERT_FALSE(opened) << size;
    EXPECT_EQ(opened.error().code, Code::corrupt) << size;
    EXPECT_NE(opened.error().message.find("p.pgkpack"), std::string::npos);
  }
}

TEST_F(PackTest, SaysWhatIsWrongWithTheSignature) {
  const std::vector<uint8_t> good = makePack(contents(), key).value();
  const SecretKey other = SecretKey::generate().value();
  auto stranger = openPack(good, other.publicKey(), "p.pgkpack");
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().message,
            "'p.pgkpack': pack is signed by key " + key.publicKey().name() +
                ", key " + other.publicKey().name() + " is expected");

  std::vector<uint8_t> payload(good.begin() + kSealed, good.end());
  std::fill_n(payload.begin() + 32, 64, uint8_t{0});
  auto unsigned_ = open(seal(FileKind::pack, payload));
  ASSERT_FALSE(unsigned_);
  EXPECT_NE(unsigned_.error().message.find("is not signed"), std::string::npos);

  payload.resize(95);
  auto none = open(seal(FileKind::pack, payload));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no signature"), std::string::npos);

  // Another's signature under our public key.
  const std::span<const uint8_t> pack(good.data() + kSigned,
                                      good.size() - kSigned);
  const Signature forged = other.sign(kPackDomain, pack);
  payload.assign(good.begin() + kSealed, good.end());
  std::copy(forged.begin(), forged.end(), payload.begin() + 32);
  auto wrong = open(seal(FileKind::pack, payload));
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("does not fit"), std::string::npos);

  // Ours, but over a message of another kind.
  const Signature domain = key.sign("something else\n", pack);
  std::copy(domain.begin(), domain.end(), payload.begin() + 32);
  EXPECT_EQ(open(seal(FileKind::pack, payload)).error().code, Code::permission);
}

TEST_F(PackTest, WhatWeTrustIsCheckedAllTheSame) {
  EXPECT_EQ(open(sign(std::vector<uint8_t>(100, 0x41))).error().code,
            Code::corrupt);
  schema::PackBodyT pack;
  pack.format_version = 2;
  auto newer = open(sign(pack));
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, Code::unsupported);
  EXPECT_NE(newer.error().message.find("format version 2"), std::string::npos);

  pack.format_version = 1;
  EXPECT_TRUE(open(sign(pack)));
  auto refused = [&](std::vector<uint8_t> payload) {
    pack.artifacts.clear();
    pack.artifacts.push_back(std::make_unique<schema::PackedArtifactT>());
    pack.artifacts[0]->payload = fixtures::pack(*fixtures::variant(1));
    pack.artifacts.push_back(std::make_unique<schema::PackedArtifactT>());
    pack.artifacts[1]->payload = std::move(payload);
    auto opened = open(sign(pack));
    return opened ? "" : opened.error().message;
  };
  EXPECT_EQ(refused(fixtures::pack(*fixtures::variant(2))), "");
  EXPECT_NE(refused({}).find("artifact 1 of 2"), std::string::npos);
  auto table = fixtures::variant(2);
  table->code[3] ^= 1;
  EXPECT_NE(refused(fixtures::pack(*table)).find("not what was hashed"),
            std::string::npos);
  table = fixtures::variant(2);
  table->producer = "another compiler";
  EXPECT_NE(refused(fixtures::pack(*table)).find("not what its key says"),
            std::string::npos);

  pack.artifacts.clear();
  pack.profile.assign(64, 7);
  EXPECT_EQ(open(sign(pack)).error().code, Code::corrupt);
}

TEST_F(PackTest, OtherFilesAndFormatVersionsAreToldApart) {
  const std::vector<uint8_t> file = makePack(contents(), key).value();
  EXPECT_EQ(open(fixtures::withFormat(file, 3)).error().code,
            Code::unsupported);
  auto other = open(seal(FileKind::profile, std::vector<uint8_t>(8)));
  EXPECT_EQ(other.error().message,
            "'p.pgkpack' is a PGKP profile, expected a pack");
}

TEST_F(PackTest, NothingIsNoPack) {
  EXPECT_EQ(makePack({}, key).error().code, Code::invalidArgument);
}

TEST_F(PackTest, FullDiskIsAnErrorOfAnImport) {
  auto store = openStore("full");
  setFailpoint("store.write", FailpointAction::error, ENOSPC, 0);
  auto report = importArtifacts(*store, contents());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::io);
  EXPECT_NE(report.error().message.find("0 of 3 were added"),
            std::string::npos);
}

TEST_F(PackTest, KeysAreStandardPemFiles) {
  ASSERT_TRUE(key.save(dir / "key.pem"));
  ASSERT_TRUE(key.publicKey().save(dir / "key.pub.pem"));
  struct stat info;
  ASSERT_EQ(stat((dir / "key.pem").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_FALSE(key.save(dir / "key.pem")); // it may be somebody's only one
  const SecretKey again = SecretKey::load(dir / "key.pem").value();
  EXPECT_EQ(again.publicKey(), key.publicKey());
  EXPECT_EQ(PublicKey::load(dir / "key.pub.pem").value(), key.publicKey());
  EXPECT_EQ(PublicKey::load(dir / "key.pem").error().code,
            Code::invalidArgument);
  EXPECT_EQ(SecretKey::load(dir / "key.pub.pem").error().code,
            Code::invalidArgument);
  EXPECT_EQ(SecretKey::load(dir / "none.pem").error().code, Code::notFound);
}

// RFC 8410, section 10.1 and 10.3: the examples.
TEST_F(PackTest, ReadsTheExamplesOfRfc8410) {
  const std::string publicPem =
      "-----BEGIN PUBLIC KEY-----\n"
      "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
      "-----END PUBLIC KEY-----\n";
  const std::string secretPem =
      "-----BEGIN PRIVATE KEY-----\n"
      "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
      "-----END PRIVATE KEY-----\n";
  auto write = [&](const char *name, const std::string &text) {
    overwrite(dir / name,
              {reinterpret_cast<const uint8_t *>(text.data()), text.size()});
    return dir / name;
  };
  auto secret = SecretKey::load(write("s.pem", secretPem));
  auto pub = PublicKey::load(write("p.pem", publicPem));
  ASSERT_TRUE(secret && pub);
  EXPECT_EQ(secret->publicKey(), *pub);
  EXPECT_FALSE(
      PublicKey::load(write("cut.pem", publicPem.substr(0, 60))).has_value());
  std::string wrong = publicPem;
  wrong[30] = 'Z'; // another algorithm, or no DER at all
  EXPECT_FALSE(PublicKey::load(write("other.pem", wrong)).has_value());
}
