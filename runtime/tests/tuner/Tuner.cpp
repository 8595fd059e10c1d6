// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/Tuner.h"
#include "base/Random.h"
#include "devices/Fixtures.h"
#include "devices/device/Memref.h"
#include "devices/host/HostDevice.h"
#include "devices/sim/SimDevice.h"

#include <gtest/gtest.h>

using namespace pgkp::rt;
using namespace pgkp::rt::testing;
namespace schema = pgkp::schema;

namespace {

Expr symbol() {
  schema::ExprT table;
  table.nodes = {schema::ExprNode(schema::ExprOp::symbol, 0, 0, 0)};
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(schema::Expr::Pack(builder, &table));
  return *Expr::parse(
      flatbuffers::GetRoot<schema::Expr>(builder.GetBufferPointer()), 1);
}

/// Three vectors of extent 0 and the element type given.
KernelInfo makeKernel(schema::ElementType type = schema::ElementType::f32) {
  KernelInfo kernel;
  kernel.name = "axpy";
  kernel.dims = {"n"};
  for (int i = 0; i < 3; ++i)
    kernel.args.push_back({type, {symbol()}, i == 2});
  return kernel;
}

class TunerOnSim : public ::testing::Test {
protected:
  /// Nanoseconds of a launch, by the number of the content key.
  using Costs = std::function<TimeNs(uint8_t key)>;
  void make(Costs costs) {
    SimOptions options;
    options.kernelTime = [costs](const SimKernel &kernel,
                                 std::span<const int64_t>) {
      return costs(kernel.contentKey.bytes[0]);
    };
    generic.reset(); // a device outlives its images
    variant.reset();
    sim = makeSimDevice(clock, options);
    for (uint8_t key : {1, 2}) {
      ArtifactBuilder builder(sim->target(), schema::CodeFormat::none, {1},
                              fixtureKey(key));
      (key == 1 ? generic : variant) = *sim->load(view(builder.pack()));
    }
  }
  TuneResult measure(const TuneOptions &options = {}) {
    Tuner tuner(*sim, clock);
    const int64_t extents[] = {1000};
    auto result = tuner.measure(makeKernel(), extents, {generic.get(), 0},
                                {variant.get(), 0}, options);
    EXPECT_TRUE(result) << result.error().message;
    return result.value_or(TuneResult{});
  }

  ManualClock clock;
  std::unique_ptr<SimDevice> sim;
  std::unique_ptr<Image> generic, variant;
};

TEST_F(TunerOnSim, FasterIsWorthIt) {
  make([](uint8_t key) { return key == 1 ? 100'000 : 60'000; });
  const TuneResult result = measure();
  EXPECT_TRUE(result.worth);
  EXPECT_DOUBLE_EQ(result.genericNs, 100'000);
  EXPECT_DOUBLE_EQ(result.variantNs, 60'000);
  EXPECT_DOUBLE_EQ(result.gain(), 100.0 / 60);
  EXPECT_EQ(result.pairs, 3u) << "a clear verdict ends early";
  EXPECT_EQ(result.launches, sim->counts().launches);
  EXPECT_DOUBLE_EQ(result.deviceSeconds, toSeconds(sim->counts().busy));
}

TEST_F(TunerOnSim, TheRaceEndsAtOnce) {
  make([](uint8_t key) { return key == 1 ? 100'000 : 131'000; });
  const TuneResult result = measure();
  EXPECT_FALSE(result.worth);
  EXPECT_EQ(result.launches, 4u);
}

TEST_F(TunerOnSim, EqualIsNotWorthIt) {
  for (TimeNs cost : {100'000, 99'000}) {
    make([cost](uint8_t key) { return key == 1 ? 100'000 : cost; });
    EXPECT_FALSE(measure().worth) << cost;
  }
  make([](uint8_t key) { return key == 1 ? 100'000 : 97'000; });
  EXPECT_TRUE(measure().worth);
}

TEST_F(TunerOnSim, NoiseAloneIsNotWorthIt) {
  SeededRandom random(11);
  int wrong = 0;
  for (int round = 0; round < 200; ++round) {
    make([&](uint8_t) { return 80'000 + TimeNs(random.below(40'000)); });
    wrong += measure().worth;
  }
  EXPECT_LE(wrong, 10) << "of 200 equal pairs";
}

TEST_F(TunerOnSim, GainsAreSeenThroughNoise) {
  SeededRandom random(12);
  int right = 0;
  for (int round = 0; round < 100; ++round) {
    make([&](uint8_t key) {
      return (key == 1 ? 100'000 : 70'000) + TimeNs(random.below(20'000));
    });
    right += measure().worth;
  }
  EXPECT_GE(right, 98);
}

TEST_F(TunerOnSim, ShortKernelsAreRepeated) {
  make([](uint8_t key) { return key == 1 ? 200 : 100; });
  const TuneResult result = measure();
  EXPECT_TRUE(result.worth);
  EXPECT_DOUBLE_EQ(result.variantNs, 100);
  EXPECT_GT(result.launches, 400u);
}

TEST_F(TunerOnSim, TheBudgetEndsIt) {
  make([](uint8_t key) { return key == 1 ? 10'000'000 : 9'500'000; });
  TuneOptions options;
  EXPECT_EQ(measure(options).pairs, 3u); // 50 ms were over in the third
  options.budget = kNsPerSecond;
  EXPECT_EQ(measure(options).pairs, options.maxPairs);
}

TEST_F(TunerOnSim, FailuresAreErrors) {
  make([](uint8_t) { return 100'000; });
  Tuner tuner(*sim, clock);
  const TuneSide a{generic.get(), 0}, b{variant.get(), 0};
  int64_t extent = -1;
  EXPECT_EQ(tuner.measure(makeKernel(), {&extent, 1}, a, b).error().code,
            Code::invalidArgument);
  for (int64_t huge : {int64_t{1} << 40, int64_t{1} << 62}) {
    EXPECT_EQ(tuner.measure(makeKernel(), {&huge, 1}, a, b).error().code,
              Code::exhausted);
  }
  extent = 10;
  sim->failNext(SimDevice::Operation::launch, {Code::io, "lost"}, 5);
  EXPECT_EQ(tuner.measure(makeKernel(), {&extent, 1}, a, b).error().message,
            "lost");
  EXPECT_TRUE(tuner.measure(makeKernel(), {&extent, 1}, a, b));
}

// What the kernels see: seeded finite values, zeros for integers, scratch.
struct Seen {
  std::vector<float> floats;
  std::vector<int32_t> integers;
  bool scalarIsOne = false;
  bool scratch = false;
};
Seen seen;

TEST(TunerOnHost, Arguments) {
  auto device = makeHostDevice();
  auto image = makeHostImage([](void *const *args) {
    const auto *x = static_cast<const pgkp_memref_header_t *>(args[0]);
    const auto *i = static_cast<const pgkp_memref_header_t *>(args[1]);
    const int64_t n = x->sizes_and_strides[0];
    const auto *floats = static_cast<const float *>(x->aligned);
    const auto *integers = static_cast<const int32_t *>(i->aligned);
    seen.floats.assign(floats, floats + n);
    seen.integers.assign(integers, integers + n);
    seen.scalarIsOne = *static_cast<const float *>(args[2]) == 1;
    seen.scratch = args[3] != nullptr;
  });
  KernelInfo kernel;
  kernel.name = "k";
  kernel.args = {{schema::ElementType::f32, {symbol()}, false},
                 {schema::ElementType::i32, {symbol()}, false},
                 {schema::ElementType::f32, {}, false}};
  SteadyClock clock;
  Tuner tuner(*device, clock);
  const int64_t n = 257;
  auto result =
      tuner.measure(kernel, {&n, 1}, {image.get(), 64}, {image.get(), 64});
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(seen.floats.size(), 257u);
  for (float value : seen.floats)
    EXPECT_TRUE(value >= -1 && value < 1);
  EXPECT_NE(seen.floats[0], seen.floats[1]);
  EXPECT_EQ(seen.integers, std::vector<int32_t>(257, 0));
  EXPECT_TRUE(seen.scalarIsOne);
  EXPECT_TRUE(seen.scratch);
}

TEST(TunerOnHost, HalfTypesHoldTheSameValues) {
  static std::vector<uint16_t> bits;
  auto device = makeHostDevice();
  auto image = makeHostImage([](void *const *args) {
    const auto *x = static_cast<const pgkp_memref_header_t *>(args[0]);
    const auto *values = static_cast<const uint16_t *>(x->aligned);
    bits.assign(values, values + x->sizes_and_strides[0]);
  });
  SteadyClock clock;
  Tuner tuner(*device, clock);
  const int64_t n = 300;
  for (auto type : {schema::ElementType::bf16, schema::ElementType::f16}) {
    ASSERT_TRUE(tuner.measure(makeKernel(type), {&n, 1}, {image.get(), 0},
                              {image.get(), 0}));
    ASSERT_EQ(bits.size(), 300u);
    for (uint16_t value : bits) {
      const int exponent = type == schema::ElementType::f16
                               ? (value >> 10 & 0x1f) - 15
                               : (value >> 7 & 0xff) - 127;
      EXPECT_TRUE((value & 0x7fff) == 0 || (exponent >= -7 && exponent <= 0))
          << value;
    }
  }
}

// Real time: eight times the work is never worth it, an eighth is.
TEST(TunerOnHost, RealKernels) {
  auto device = makeHostDevice();
  auto load = [&](const char *fixture, uint8_t id) {
    ArtifactBuilder builder(device->target(), schema::CodeFormat::elf,
                            readFixture(fixture), fixtureKey(id));
    auto image = device->load(view(builder.pack()));
    EXPECT_TRUE(image) << image.error().message;
    return std::move(*image);
  };
  auto fast = load("fixture_axpy", 1), slow = load("fixture_slow", 4);
  SteadyClock clock;
  Tuner tuner(*device, clock);
  const int64_t n = 50'000;
  auto good =
      tuner.measure(makeKernel(), {&n, 1}, {slow.get(), 0}, {fast.get(), 0});
  ASSERT_TRUE(good);
  EXPECT_TRUE(good->worth);
  EXPECT_GT(good->gain(), 2);
  auto bad =
      tuner.measure(makeKernel(), {&n, 1}, {fast.get(), 0}, {slow.get(), 0});
  ASSERT_TRUE(bad);
  EXPECT_FALSE(bad->worth);
}

} // namespace
