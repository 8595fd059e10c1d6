// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "loader/Loader.h"
#include "devices/Fixtures.h"
#include "devices/device/Memref.h"
#include "devices/host/HostDevice.h"
#include "devices/sim/SimDevice.h"

#include <gtest/gtest.h>

using namespace pgkp::rt;
using namespace pgkp::rt::testing;
namespace schema = pgkp::schema;

namespace {

constexpr uint32_t kRanks[] = {1};
const Digest kKernel = hashBytes(std::array<uint8_t, 1>{42});

/// A request for `key`, whose class is `d0 == key`.
LoadRequest makeRequest(const Device &device, KeyId key,
                        const std::string &fixture = "fixture_axpy",
                        uint8_t id = 1) {
  LoadRequest request;
  request.key = key;
  request.kernelHash = kKernel;
  request.numExtents = 1;
  request.facts = {schema::Fact(schema::FactKind::eq, 0, key, 0)};
  ArtifactBuilder builder(device.target(), device.codeFormat(),
                          readFixture(fixture), fixtureKey(id));
  builder.artifact.kernel_hash =
      std::make_unique<schema::Digest>(toSchema(kKernel));
  builder.artifact.facts = request.facts;
  builder.workspace(4);
  request.artifact = builder.pack();
  return request;
}

/// The same with the artifact changed.
template <typename Change>
LoadRequest changed(const Device &device, Change change) {
  LoadRequest request = makeRequest(device, 7);
  schema::ArtifactT artifact;
  view(request.artifact).UnPackTo(&artifact);
  change(artifact);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(schema::Artifact::Pack(builder, &artifact),
                 schema::ArtifactIdentifier());
  request.artifact.assign(builder.GetBufferPointer(),
                          builder.GetBufferPointer() + builder.GetSize());
  return request;
}

class LoaderTest : public ::testing::Test {
protected:
  void make(bool drains) {
    SimOptions options;
    options.loadDrains = drains;
    options.loadTime = [](const SimKernel &) { return 5 * kNsPerMs; };
    sim = makeSimDevice(clock, options);
    loader = std::make_unique<Loader>(*sim, table, clock, activity,
                                      LoaderOptions{.maxDefer = kNsPerSecond});
  }
  KeyId lookup(int64_t extent) {
    DispatchTable::Session session(reader);
    const Resolved found = reader.lookup(0, {&extent, 1});
    return found.variant ? found.variant->key : kNoKey;
  }

  ManualClock clock;
  Activity activity;
  std::unique_ptr<SimDevice> sim;
  DispatchTable table{kRanks};
  DispatchTable::Reader reader{table};
  std::unique_ptr<Loader> loader;
};

TEST_F(LoaderTest, WithoutDrainingLoadsAtOnceEvenWhileServing) {
  make(false);
  activity.begin();
  loader->submit(makeRequest(*sim, 7));
  EXPECT_EQ(lookup(7), kNoKey);
  const PumpResult result = loader->pump();
  ASSERT_EQ(result.loads.size(), 1u);
  ASSERT_TRUE(result.loads[0].variant)
      << result.loads[0].variant.error().message;
  EXPECT_EQ(result.loads[0].end - result.loads[0].begin, 5 * kNsPerMs);
  EXPECT_EQ(lookup(7), 7u);
  EXPECT_EQ(loader->waiting(), 0u);
  EXPECT_EQ(loader->counts().deferred, 0u);
}

TEST_F(LoaderTest, DrainingLoadsGatherForOneIdleWindow) {
  make(true);
  activity.begin();
  loader->submit(makeRequest(*sim, 7));
  EXPECT_EQ(loader->pump().deferred, std::vector<KeyId>{7});
  loader->submit(makeRequest(*sim, 8, "fixture_axpy3", 2));
  EXPECT_EQ(loader->pump().deferred, std::vector<KeyId>{8});
  EXPECT_TRUE(loader->pump().deferred.empty()) << "each is counted once";
  EXPECT_EQ(sim->counts().loads, 0u);
  activity.end();
  const PumpResult result = loader->pump();
  ASSERT_EQ(result.loads.size(), 2u);
  EXPECT_EQ(result.loads[0].window, result.loads[1].window);
  EXPECT_EQ(lookup(7), 7u);
  EXPECT_EQ(lookup(8), 8u);
  const LoaderCounts counts = loader->counts();
  EXPECT_EQ(counts.loaded, 2u);
  EXPECT_EQ(counts.windows, 1u);
  EXPECT_EQ(counts.deferred, 2u);
  EXPECT_EQ(counts.windowTime, 10 * kNsPerMs);
}

TEST_F(LoaderTest, SafePointsDemandsAndPatienceOpenAWindow) {
  make(true);
  activity.begin();
  loader->submit(makeRequest(*sim, 7));
  EXPECT_TRUE(loader->pump().loads.empty());
  activity.safePoint();
  EXPECT_EQ(loader->pump().loads.size(), 1u);

  activity.begin(); // ends the safe point
  loader->submit(makeRequest(*sim, 8));
  EXPECT_TRUE(loader->pump().loads.empty());
  EXPECT_FALSE(loader->demand(9));
  EXPECT_TRUE(loader->demand(8));
  EXPECT_EQ(loader->pump().loads.size(), 1u);

  loader->submit(makeRequest(*sim, 9));
  EXPECT_TRUE(loader->pump().loads.empty());
  clock.advance(kNsPerSecond - 1);
  EXPECT_TRUE(loader->pump().loads.empty());
  clock.advance(1);
  EXPECT_EQ(loader->pump().loads.size(), 1u);
}

TEST_F(LoaderTest, UnpublishedLoadsAreTheCallersToPublish) {
  make(false);
  LoadRequest request = makeRequest(*sim, 7);
  request.publish = false;
  loader->submit(std::move(request));
  PumpResult result = loader->pump();
  ASSERT_TRUE(result.loads[0].variant);
  EXPECT_EQ(lookup(7), kNoKey);
  const int64_t extents[] = {100};
  EXPECT_EQ(result.loads[0].variant->workspace.evaluate(extents), 400);
  ASSERT_TRUE(table.publish(0, std::move(*result.loads[0].variant)));
  EXPECT_EQ(lookup(7), 7u);
}

TEST_F(LoaderTest, UnloadsLateAndInAWindow) {
  make(true);
  loader->submit(makeRequest(*sim, 7));
  loader->pump();
  ASSERT_EQ(sim->loaded(), 1u);
  activity.begin();
  reader.enter();
  table.withdraw(0, 7);
  loader->pump();
  EXPECT_EQ(sim->loaded(), 1u) << "a session may still use it";
  reader.leave();
  loader->pump();
  EXPECT_EQ(sim->loaded(), 1u) << "unloading drains, and the device is busy";
  activity.end();
  loader->pump();
  EXPECT_EQ(sim->loaded(), 0u);
  EXPECT_EQ(loader->counts().unloaded, 1u);
}

TEST_F(LoaderTest, ImagesOutliveTheLoaderAndAreUnloaded) {
  make(true);
  LoadRequest request = makeRequest(*sim, 7);
  request.publish = false;
  loader->submit(std::move(request));
  PumpResult result = loader->pump();
  loader.reset();
  EXPECT_EQ(sim->loaded(), 1u);
  result.loads.clear();
  EXPECT_EQ(sim->loaded(), 0u);
}

TEST_F(LoaderTest, OneImageForOneContentKey) {
  make(false);
  loader->submit(makeRequest(*sim, 7));
  loader->submit(makeRequest(*sim, 8));
  loader->pump();
  EXPECT_EQ(sim->counts().loads, 1u);
  EXPECT_EQ(loader->counts().shared, 1u);
  EXPECT_EQ(table.find(0, 7)->image, table.find(0, 8)->image);
}

TEST_F(LoaderTest, CancelledLoadsNeverHappen) {
  make(true);
  loader->submit(makeRequest(*sim, 7));
  EXPECT_EQ(loader->cancel(7), 1u);
  EXPECT_EQ(loader->cancel(7), 0u);
  EXPECT_TRUE(loader->pump().loads.empty());
}

TEST_F(LoaderTest, RefusesWhatDoesNotVerify) {
  make(false);
  const Device &device = *sim;
  std::vector<std::pair<std::string, LoadRequest>> bad;
  bad.emplace_back("checksum", changed(device, [](schema::ArtifactT &artifact) {
                     artifact.code[artifact.code.size() / 2] ^= 1;
                   }));
  bad.emplace_back("class", changed(device, [](schema::ArtifactT &artifact) {
                     artifact.facts[0] =
                         schema::Fact(schema::FactKind::eq, 0, 6, 0);
                   }));
  bad.emplace_back("class", changed(device, [](schema::ArtifactT &artifact) {
                     artifact.facts.clear();
                   }));
  bad.emplace_back("for kernel",
                   changed(device, [](schema::ArtifactT &artifact) {
                     artifact.kernel_hash =
                         std::make_unique<schema::Digest>(toSchema(Digest{}));
                   }));
  bad.emplace_back("lacks", changed(device, [](schema::ArtifactT &artifact) {
                     artifact.code_hash.reset();
                   }));
  bad.emplace_back("symbol", changed(device, [](schema::ArtifactT &artifact) {
                     artifact.workspace->nodes[0] =
                         schema::ExprNode(schema::ExprOp::symbol, 0, 0, 5);
                   }));
  LoadRequest truncated = makeRequest(device, 7);
  truncated.artifact.resize(truncated.artifact.size() / 2);
  bad.emplace_back("verify", std::move(truncated));
  LoadRequest empty = makeRequest(device, 7);
  empty.artifact.clear();
  bad.emplace_back("verify", std::move(empty));

  for (auto &[word, request] : bad) {
    loader->submit(std::move(request));
    const PumpResult result = loader->pump();
    ASSERT_EQ(result.loads.size(), 1u);
    ASSERT_FALSE(result.loads[0].variant) << word;
    EXPECT_EQ(result.loads[0].variant.error().code, Code::corrupt) << word;
    EXPECT_NE(result.loads[0].variant.error().message.find(word),
              std::string::npos)
        << result.loads[0].variant.error().message;
  }
  EXPECT_EQ(sim->counts().loads, 0u);
  EXPECT_EQ(loader->counts().failed, bad.size());
  EXPECT_EQ(lookup(7), kNoKey);
}

TEST_F(LoaderTest, EveryCorruptByteOfTheCodeIsSeen) {
  make(false);
  const LoadRequest good = makeRequest(*sim, 7);
  const size_t begin = static_cast<size_t>(view(good.artifact).code()->data() -
                                           good.artifact.data());
  const size_t size = view(good.artifact).code()->size();
  ASSERT_GT(size, 1000u);
  for (size_t at = 0; at < size; at += 37) {
    LoadRequest request = good;
    request.artifact[begin + at] ^= 0x10;
    loader->submit(std::move(request));
    ASSERT_FALSE(loader->pump().loads[0].variant) << at;
  }
}

TEST_F(LoaderTest, ADeviceThatFailsIsNotTheEnd) {
  make(false);
  sim->failNext(SimDevice::Operation::load, {Code::exhausted, "no memory"});
  loader->submit(makeRequest(*sim, 7));
  const PumpResult failed = loader->pump();
  ASSERT_FALSE(failed.loads[0].variant);
  EXPECT_EQ(failed.loads[0].variant.error().code, Code::exhausted);
  loader->submit(makeRequest(*sim, 7));
  EXPECT_TRUE(loader->pump().loads[0].variant);
}

TEST(LoaderOnHost, CodeRunsAfterLoading) {
  auto device = makeHostDevice();
  SteadyClock clock;
  Activity activity;
  DispatchTable table(kRanks);
  Loader loader(*device, table, clock, activity);
  loader.submit(makeRequest(*device, 7));
  loader.submit(makeRequest(*device, 8, "fixture_axpy3", 2));
  for (const LoadResult &load : loader.pump().loads)
    ASSERT_TRUE(load.variant) << load.variant.error().message;

  auto stream = device->createStream();
  ASSERT_TRUE(stream);
  DispatchTable::Reader reader(table);
  DispatchTable::Session session(reader);
  for (int64_t n : {7, 8}) {
    std::vector<float> x(n, 10), y(n, 1), out(n);
    MemrefHeader hx(x.data(), {{n}}), hy(y.data(), {{n}}),
        ho(out.data(), {{n}});
    void *args[] = {hx.data(), hy.data(), ho.data()};
    const Resolved found = reader.lookup(0, {&n, 1});
    ASSERT_TRUE(found.variant);
    ASSERT_TRUE(device->launch(**stream, *found.variant->image,
                               {args, {&n, 1}, found.workspaceBytes}));
    EXPECT_EQ(out[n - 1], n == 7 ? 21 : 31);
  }
}

} // namespace
