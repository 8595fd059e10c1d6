// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/sim/SimDevice.h"
#include "devices/Fixtures.h"

#include <gtest/gtest.h>

using namespace pgkp::rt;
namespace schema = pgkp::schema;
using namespace pgkp::rt::testing;

namespace {

class SimDeviceTest : public ::testing::Test {
protected:
  void make(bool drains = true) {
    SimOptions options;
    options.loadDrains = drains;
    options.loadTime = [](const SimKernel &) { return TimeNs{50}; };
    options.kernelTime = [](const SimKernel &kernel,
                            std::span<const int64_t> extents) {
      return kernel.artifact.facts.empty() ? 2 * extents[0] : extents[0];
    };
    options.history = 2;
    device = makeSimDevice(clock, options);
    stream = *device->createStream();
  }

  std::unique_ptr<Image> load(bool specialized) {
    ArtifactBuilder builder(device->target(), schema::CodeFormat::none, {1, 2},
                            fixtureKey(specialized ? 2 : 1));
    if (specialized)
      builder.artifact.facts = {schema::Fact(schema::FactKind::eq, 0, 100, 0)};
    return *device->load(view(builder.pack()));
  }
  void launch(Stream &on, const Image &image, int64_t extent) {
    const int64_t extents[] = {extent};
    ASSERT_TRUE(device->launch(on, image, {{}, extents, 0}));
  }

  ManualClock clock{1000};
  std::unique_ptr<SimDevice> device;
  std::unique_ptr<Stream> stream;
};

TEST_F(SimDeviceTest, LaunchesAreAsynchronousAndInOrder) {
  make();
  auto generic = load(false), exact = load(true);
  EXPECT_EQ(clock.now(), 1100);
  launch(*stream, *generic, 100);
  launch(*stream, *exact, 100);
  EXPECT_EQ(clock.now(), 1100);
  EXPECT_FALSE(stream->idle());
  ASSERT_TRUE(stream->synchronize());
  EXPECT_EQ(clock.now(), 1400);
  EXPECT_TRUE(stream->idle());

  launch(*stream, *exact, 7);
  const auto recent = device->recent();
  ASSERT_EQ(recent.size(), 2u); // the history's limit
  EXPECT_EQ(recent[0].begin, 1300);
  EXPECT_EQ(recent[0].end, 1400);
  EXPECT_EQ(recent[1].extents, std::vector<int64_t>{7});
  EXPECT_EQ(recent[1].contentKey, fixtureKey(2));
  EXPECT_EQ(device->counts().launches, 3u);
  EXPECT_EQ(device->counts().busy, 307);
}

TEST_F(SimDeviceTest, LoadingDrains) {
  make();
  auto generic = load(false);
  auto other = *device->createStream();
  launch(*other, *generic, 200); // 1050..1450
  auto exact = load(true);
  EXPECT_EQ(clock.now(), 1500);
  EXPECT_TRUE(other->idle());
}

TEST_F(SimDeviceTest, LoadingBesideWork) {
  make(false);
  auto generic = load(false);
  launch(*stream, *generic, 200); // 1050..1450
  auto exact = load(true);
  EXPECT_EQ(clock.now(), 1100);
  EXPECT_FALSE(stream->idle());
}

TEST_F(SimDeviceTest, WithoutAWaiterLoadsDelayLaterLaunches) {
  SimOptions options;
  options.loadTime = [](const SimKernel &) { return TimeNs{50}; };
  SimDevice accounting(clock, options);
  auto own = *accounting.createStream();
  ArtifactBuilder builder(accounting.target(), schema::CodeFormat::none, {1},
                          fixtureKey(1));
  auto image = *accounting.load(view(builder.pack()));
  EXPECT_EQ(clock.now(), 1000);
  const int64_t extents[] = {1};
  ASSERT_TRUE(accounting.launch(*own, *image, {{}, extents, 0}));
  EXPECT_EQ(accounting.recent().back().begin, 1050);
}

TEST_F(SimDeviceTest, CountsImages) {
  make();
  auto a = load(false), b = load(true);
  EXPECT_EQ(device->loaded(), 2u);
  a.reset();
  EXPECT_EQ(device->loaded(), 1u);
  EXPECT_EQ(device->counts().loads, 2u);
}

TEST_F(SimDeviceTest, Faults) {
  make();
  device->failNext(SimDevice::Operation::launch, {Code::io, "lost"}, 2);
  auto image = load(false);
  launch(*stream, *image, 1);
  const int64_t extents[] = {1};
  auto failed = device->launch(*stream, *image, {{}, extents, 0});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "lost");
  launch(*stream, *image, 1);
  device->failNext(SimDevice::Operation::allocate, {Code::exhausted, "full"});
  EXPECT_FALSE(device->allocate(*stream, 1));
  EXPECT_TRUE(device->allocate(*stream, 1));
}

} // namespace
