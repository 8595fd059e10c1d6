// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The CUDA device on a fake driver: what the conformance suite cannot see.
#include "devices/cuda/CudaDevice.h"
#include "devices/cuda/FakeDriver.h"
#include "devices/device/Memref.h"

#include <functional>
#include <gtest/gtest.h>

using namespace pgkp::rt;
using namespace pgkp::rt::testing;
namespace schema = pgkp::schema;

namespace {

class CudaDeviceTest : public FakeCudaTest {
protected:
  std::unique_ptr<Image> load(const ArtifactBuilder &builder) {
    auto image = device->load(view(builder.pack()));
    EXPECT_TRUE(image) << image.error().message;
    return image ? std::move(*image) : nullptr;
  }
  ArtifactBuilder axpy() { return fakeArtifact(*device, "fixture_axpy"); }

  Status launch(const Image &image, Stream &on, int64_t n = 4) {
    auto memory = device->allocate(on, 64);
    if (!memory)
      return tl::unexpected<Error>(memory.error());
    MemrefHeader header(*memory, {{n}});
    void *args[] = {header.data(), header.data(), header.data()};
    const int64_t extents[] = {n};
    Status status = device->launch(on, image, {args, extents, 0});
    device->release(on, *memory);
    return status;
  }
};

TEST_F(CudaDeviceTest, NamesItselfAndItsChip) {
  EXPECT_EQ(device->name(), "Fake GPU 0");
  EXPECT_EQ(device->target().chip, "sm_90a");
  EXPECT_EQ(device->codeFormat(), schema::CodeFormat::cubin);
  EXPECT_TRUE(device->asynchronous());
  EXPECT_TRUE(device->separateMemory());

  auto accepts = [&](const char *chip) {
    schema::TargetT target;
    target.device = schema::DeviceKind::cuda;
    target.chip = chip;
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(schema::Target::Pack(builder, &target));
    return device->accepts(
        *flatbuffers::GetRoot<schema::Target>(builder.GetBufferPointer()));
  };
  EXPECT_TRUE(accepts("sm_90"));
  EXPECT_TRUE(accepts("sm_90a"));
  for (const char *other : {"sm_80", "sm_89", "sm_91", "sm_100", "sm_100a",
                            "sm_", "sm_90b", "90", "x86-64"})
    EXPECT_FALSE(accepts(other)) << other;
}

TEST_F(CudaDeviceTest, OlderChipsTakeCodeOfTheirGeneration) {
  fake->set_devices(1, 8, 6);
  auto older = makeCudaDevice({.library = fakeLibrary()});
  ASSERT_TRUE(older);
  EXPECT_EQ((*older)->target().chip, "sm_86");
  schema::TargetT target;
  target.device = schema::DeviceKind::cuda;
  target.chip = "sm_80";
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(schema::Target::Pack(builder, &target));
  EXPECT_TRUE((*older)->accepts(
      *flatbuffers::GetRoot<schema::Target>(builder.GetBufferPointer())));
}

TEST_F(CudaDeviceTest, NoLibraryNoDeviceNoPlace) {
  auto missing = makeCudaDevice({.library = "/nowhere/libcuda.so.1"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::unavailable);
  EXPECT_NE(missing.error().message.find("/nowhere/libcuda.so.1"),
            std::string::npos)
      << missing.error().message;

  auto second = makeCudaDevice({.library = fakeLibrary(), .ordinal = 1});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::unavailable);
  EXPECT_EQ(second.error().message,
            "device 'cuda:1': this machine shows 1 CUDA device");

  fake->set_devices(1, 6, 1);
  auto old = makeCudaDevice({.library = fakeLibrary()});
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, Code::unsupported);
}

TEST_F(CudaDeviceTest, ALibraryThatIsNoDriverSaysWhatItLacks) {
  auto device =
      makeCudaDevice({.library = fixturePath("fixture_axpy_cuda.so")});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, Code::unavailable);
  EXPECT_NE(device.error().message.find("cuInit"), std::string::npos);
}

TEST_F(CudaDeviceTest, SeveralDevicesHaveTheirOwnImages) {
  fake->set_devices(2, 9, 0);
  auto other = makeCudaDevice({.library = fakeLibrary(), .ordinal = 1});
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ((*other)->name(), "Fake GPU 1");
  const auto bytes = axpy().pack();
  auto here = device->load(view(bytes));
  auto there = (*other)->load(view(bytes));
  ASSERT_TRUE(here && there);
  EXPECT_EQ(fake->counts().live_modules, 2u);
}

TEST_F(CudaDeviceTest, ContextsOfTheCallerAreUsedAndLeftAlone) {
  const int before = fake->counts().primary_references;
  void *context = currentFakeContext();
  auto adopted = makeCudaDevice({.library = fakeLibrary(), .context = context});
  ASSERT_TRUE(adopted) << adopted.error().message;
  EXPECT_EQ(fake->counts().primary_references, before);
  EXPECT_EQ((*adopted)->name(), "Fake GPU 0");
}

TEST_F(CudaDeviceTest, LeavesNothingBehind) {
  {
    auto image = load(axpy());
    ASSERT_TRUE(launch(*image, *stream));
  }
  stream.reset();
  device.reset();
  const fake_counts_t counts = fake->counts();
  EXPECT_EQ(counts.live_streams, 0u);
  EXPECT_EQ(counts.live_events, 0u);
  EXPECT_EQ(counts.live_modules, 0u);
  EXPECT_EQ(counts.live_bytes, 0u);
  EXPECT_EQ(counts.primary_references, 0);
}

//===-- Launches
//-----------------------------------------------------------===//

TEST_F(CudaDeviceTest, GeometryFollowsTheExtents) {
  ArtifactBuilder builder = axpy();
  schema::LaunchT &launch = *builder.artifact.launch;
  // ceil(n / 128), 2, 1
  launch.grid[0]->nodes = {
      schema::ExprNode(schema::ExprOp::symbol, 0, 0, 0),
      schema::ExprNode(schema::ExprOp::constant, 0, 0, 128),
      schema::ExprNode(schema::ExprOp::ceildiv, 0, 1, 0)};
  launch.grid[1]->nodes = {schema::ExprNode(schema::ExprOp::constant, 0, 0, 2)};
  launch.block = {128, 2, 1};
  launch.shared_bytes = 100000;
  launch.programmatic = true;
  auto image = load(builder);
  EXPECT_EQ(fake->counts().max_dynamic_shared, 100000);
  void *memory = *device->allocate(*stream, 4 * 300);
  MemrefHeader header(memory, {{300}});
  void *args[] = {header.data(), header.data(), header.data()};
  const int64_t extents[] = {300};
  ASSERT_TRUE(device->launch(*stream, *image, {args, extents, 0}));
  const fake_launch_t last = fake->counts().last;
  EXPECT_EQ(last.grid[0], 3u);
  EXPECT_EQ(last.grid[1], 2u);
  EXPECT_EQ(last.grid[2], 1u);
  EXPECT_EQ(last.block[1], 2u);
  EXPECT_EQ(last.shared_bytes, 100000u);
  EXPECT_TRUE(last.programmatic);

  const int64_t none[] = {0};
  ASSERT_TRUE(device->launch(*stream, *image, {args, none, 0}));
  EXPECT_EQ(fake->counts().launches, 1u) << "an empty grid is not launched";
  const int64_t huge[] = {int64_t{1} << 40};
  Status refused = device->launch(*stream, *image, {args, huge, 0});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalidArgument);
  device->release(*stream, memory);
}

TEST_F(CudaDeviceTest, OffsetsOfMemrefsCount) {
  auto image = load(axpy());
  auto *memory = static_cast<float *>(*device->allocate(*stream, 64));
  const std::vector<float> in{1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_TRUE(device->copyIn(*stream, memory, in.data(), 32));
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[1], strides[1];
  } tail{memory, memory, 4, {4}, {1}};
  MemrefHeader out(memory, {{4}});
  void *args[] = {&tail, &tail, out.data()};
  const int64_t extents[] = {4};
  ASSERT_TRUE(device->launch(*stream, *image, {args, extents, 0}));
  std::vector<float> got(8);
  ASSERT_TRUE(device->copyOut(*stream, got.data(), memory, 32));
  EXPECT_EQ(got, (std::vector<float>{15, 18, 21, 24, 5, 6, 7, 8}));
  device->release(*stream, memory);
}

TEST_F(CudaDeviceTest, TensorMapsAreMadeForEachCall) {
  ArtifactBuilder builder = axpy();
  auto map = std::make_unique<schema::TensorMapT>();
  auto symbolOrConstant = [](bool symbol, int64_t value) {
    auto expr = std::make_unique<schema::ExprT>();
    expr->nodes = {schema::ExprNode(symbol ? schema::ExprOp::symbol
                                           : schema::ExprOp::constant,
                                    0, 0, value)};
    return expr;
  };
  map->arg = 0;
  map->element = schema::ElementType::bf16;
  map->sizes.push_back(symbolOrConstant(false, 64));
  map->sizes.push_back(symbolOrConstant(true, 0));
  map->strides.push_back(symbolOrConstant(false, 128));
  map->box.push_back(symbolOrConstant(false, 64));
  map->box.push_back(symbolOrConstant(false, 8));
  map->swizzle = schema::Swizzle::b128;
  builder.artifact.tensor_maps.push_back(std::move(map));
  builder.artifact.symbol = "fixture_keep_map";
  builder.artifact.params = {schema::Param(schema::ParamKind::tensor_map, 0, 0),
                             schema::Param(schema::ParamKind::pointer, 4, 1)};
  auto image = load(builder);
  void *in = *device->allocate(*stream, 64),
       *out = *device->allocate(*stream, 128);
  MemrefHeader header(in, {{1}}), outHeader(out, {{16}});
  void *args[] = {header.data(), outHeader.data()};
  const int64_t extents[] = {24};
  Status launched = device->launch(*stream, *image, {args, extents, 0});
  ASSERT_TRUE(launched) << launched.error().message;
  uint64_t words[16];
  ASSERT_TRUE(device->copyOut(*stream, words, out, sizeof words));
  EXPECT_EQ(words[0], reinterpret_cast<uint64_t>(in));
  EXPECT_EQ(words[1], 9u | 2u << 8 | 3u << 16) << "bf16, rank 2, 128 bytes";
  EXPECT_EQ(words[2], 64u);
  EXPECT_EQ(words[3], 24u);
  EXPECT_EQ(words[4], 128u);
  EXPECT_EQ(words[5], 64u);
  EXPECT_EQ(words[6], 8u);
  const int64_t none[] = {0};
  EXPECT_FALSE(device->launch(*stream, *image, {args, none, 0}));
  device->release(*stream, in);
  device->release(*stream, out);
}

TEST_F(CudaDeviceTest, CountersAreZerosOfTheStream) {
  ArtifactBuilder builder = axpy();
  builder.artifact.symbol = "fixture_sum_counters";
  builder.artifact.params = {schema::Param(schema::ParamKind::counters, 0, 0),
                             schema::Param(schema::ParamKind::pointer, 4, 0)};
  auto image = load(builder);
  // Memory that was dirty before.
  void *dirty = *device->allocate(*stream, 64 << 10);
  const std::vector<uint8_t> ones(64 << 10, 0xff);
  ASSERT_TRUE(device->copyIn(*stream, dirty, ones.data(), ones.size()));
  device->release(*stream, dirty);
  void *out = *device->allocate(*stream, 64);
  MemrefHeader header(out, {{1}});
  void *args[] = {header.data()};
  ASSERT_TRUE(device->launch(*stream, *image, {args, {}, 0}));
  uint64_t sum = 1;
  ASSERT_TRUE(device->copyOut(*stream, &sum, out, sizeof sum));
  EXPECT_EQ(sum, 0u);
  device->release(*stream, out);
}

TEST_F(CudaDeviceTest, CallsThatDoNotFitAreErrors) {
  auto image = load(axpy());
  MemrefHeader header(nullptr, {{1}});
  void *args[] = {header.data()};
  const int64_t extents[] = {1};
  Status few = device->launch(*stream, *image, {args, extents, 0});
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().message,
            "kernel 'axpy' takes 3 arguments and 1 extents; got 1 and 1");
}

//===-- Failures
//-----------------------------------------------------------===//

TEST_F(CudaDeviceTest, RefusesPtxGarbageAndMissingKernels) {
  ArtifactBuilder builder = axpy();
  builder.artifact.format = schema::CodeFormat::ptx;
  auto ptx = device->load(view(builder.pack()));
  ASSERT_FALSE(ptx);
  EXPECT_EQ(ptx.error().code, Code::unsupported);

  builder = axpy();
  builder.artifact.code.assign(100, 1);
  auto garbage = device->load(view(builder.pack()));
  ASSERT_FALSE(garbage);
  EXPECT_EQ(garbage.error().code, Code::corrupt);
  EXPECT_EQ(garbage.error().message,
            "kernel 'axpy': cuModuleLoadData: as the test wanted "
            "(CUDA_ERROR_INVALID_IMAGE)");

  builder = axpy();
  builder.artifact.symbol = "not_there";
  auto missing = device->load(view(builder.pack()));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::corrupt);
  EXPECT_EQ(missing.error().message,
            "kernel 'axpy': symbol 'not_there' is missing");

  builder = axpy();
  builder.artifact.launch.reset();
  auto nowhere = device->load(view(builder.pack()));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, Code::corrupt);

  builder = axpy();
  builder.artifact.launch->shared_bytes = 240000;
  EXPECT_FALSE(device->load(view(builder.pack())));
  EXPECT_EQ(fake->counts().live_modules, 0u) << "refused images are unloaded";
}

TEST_F(CudaDeviceTest, EveryFailingCallIsAnError) {
  auto image = load(axpy());
  struct {
    const char *call;
    std::function<Status()> run;
  } cases[] = {
      {"cuLaunchKernelEx", [&] { return launch(*image, *stream); }},
      {"cuStreamSynchronize", [&] { return stream->synchronize(); }},
      {"cuMemcpyHtoDAsync_v2",
       [&] { return device->copyIn(*stream, nullptr, "x", 1); }},
      {"cuMemcpyDtoHAsync_v2",
       [&] {
         char byte;
         return device->copyOut(*stream, &byte, nullptr, 1);
       }},
      {"cuStreamCreate",
       [&]() -> Status {
         auto made = device->createStream();
         return made ? Status{} : tl::unexpected<Error>(made.error());
       }},
      {"cuEventCreate",
       [&]() -> Status {
         auto made = device->createStream();
         return made ? Status{} : tl::unexpected<Error>(made.error());
       }},
      {"cuFuncLoad",
       [&]() -> Status {
         auto made = device->load(view(axpy().pack()));
         return made ? Status{} : tl::unexpected<Error>(made.error());
       }},
  };
  for (const auto &[call, run] : cases) {
    fake->fail(call, 719, 1);
    const uint64_t streams = fake->counts().live_streams;
    Status status = run();
    ASSERT_FALSE(status) << call;
    EXPECT_EQ(status.error().code, Code::internal);
    EXPECT_EQ(fake->counts().live_streams, streams) << call;
  }
  EXPECT_TRUE(launch(*image, *stream)) << "and then it works again";
  for (const char *call :
       {"cuInit", "cuDeviceGetCount", "cuDevicePrimaryCtxRetain",
        "cuDeviceGetName", "cuMemPoolCreate"}) {
    if (std::string_view(call) == "cuInit")
      continue; // once for the process
    fake->fail(call, 719, 1);
    EXPECT_FALSE(makeCudaDevice({.library = fakeLibrary()})) << call;
  }
  EXPECT_EQ(fake->counts().primary_references, 1);
}

TEST_F(CudaDeviceTest, MemoryIsTrimmedBeforeItRunsOut) {
  fake->set_memory(64 << 20);
  {
    auto other = device->createStream();
    ASSERT_TRUE(other);
    auto large = device->allocate(**other, 48 << 20);
    ASSERT_TRUE(large);
    device->release(**other, *large);
  } // its blocks serve everybody now, but only this size
  auto memory = device->allocate(*stream, 20 << 20);
  ASSERT_TRUE(memory) << memory.error().message;
  device->release(*stream, *memory);
  auto tooMuch = device->allocate(*stream, 128 << 20);
  ASSERT_FALSE(tooMuch);
  EXPECT_EQ(tooMuch.error().code, Code::exhausted);
}

TEST_F(CudaDeviceTest, StreamsOfTheCallerSurvive) {
  void *native = makeFakeStream();
  {
    auto adopted = device->adoptStream(native);
    ASSERT_TRUE(adopted);
    auto image = load(axpy());
    ASSERT_TRUE(launch(*image, **adopted));
  }
  EXPECT_EQ(fake->counts().live_streams, 3u)
      << "ours, the pool's, the caller's";
  destroyFakeStream(native);
}

//===-- What is in flight
//--------------------------------------------------===//

TEST_F(CudaDeviceTest, KnowsWhenWorkIsDoneWithoutAskingTheStream) {
  auto image = load(axpy());
  EXPECT_TRUE(device->idle());
  EXPECT_EQ(fake->counts().records, 0u) << "nothing launched, nothing asked";
  fake->hold(nullptr, 1);
  ASSERT_TRUE(launch(*image, *stream));
  EXPECT_FALSE(device->idle());
  EXPECT_FALSE(stream->idle());
  fake->hold(nullptr, 0);
  EXPECT_TRUE(device->idle());
  const uint64_t records = fake->counts().records;
  EXPECT_TRUE(device->idle());
  EXPECT_EQ(fake->counts().records, records) << "known already";
}

TEST_F(CudaDeviceTest, RegisteredStreamsCount) {
  void *native = makeFakeStream();
  ASSERT_TRUE(device->registerStream(native));
  ASSERT_TRUE(device->registerStream(native)) << "twice is once";
  EXPECT_TRUE(device->idle());
  fake->hold(native, 1);
  launchOnFakeStream(native);
  EXPECT_FALSE(device->idle());
  fake->hold(native, 0);
  EXPECT_TRUE(device->idle());
  fake->capture(native, 1);
  EXPECT_TRUE(device->capturing());
  EXPECT_FALSE(device->idle());
  fake->capture(native, 0);
  launchOnFakeStream(native);
  fake->hold(native, 1);
  device->forgetStream(native);
  EXPECT_TRUE(device->idle());
  destroyFakeStream(native);
}

//===-- Captures
//-----------------------------------------------------------===//

TEST_F(CudaDeviceTest, CapturedCodeAndMemoryStay) {
  void *native = makeFakeStream();
  auto adopted = device->adoptStream(native);
  ASSERT_TRUE(adopted);
  auto image = load(axpy());
  fake->capture(native, 1);
  EXPECT_TRUE(device->capturing());
  EXPECT_TRUE((*adopted)->capturing());
  ASSERT_TRUE(launch(*image, **adopted));
  auto captured = device->allocate(**adopted, 1 << 20);
  ASSERT_TRUE(captured) << captured.error().message;
  device->release(**adopted, *captured);
  fake->capture(native, 0);
  auto usual = device->allocate(**adopted, 1 << 20);
  ASSERT_TRUE(usual);
  EXPECT_NE(*usual, *captured) << "the graph still uses it";
  device->release(**adopted, *usual);
  image.reset();
  EXPECT_EQ(fake->counts().unloads, 0u) << "the graph still launches it";
  EXPECT_EQ(fake->counts().loads_in_capture, 0u);
  adopted->reset();
  destroyFakeStream(native);
}

TEST_F(CudaDeviceTest, OtherThreadsWorkDuringACapture) {
  auto image = load(axpy());
  void *native = makeFakeStream();
  fake->capture(native, 1);
  // In the default mode the driver refuses these calls, whoever makes them.
  EXPECT_TRUE(stream->synchronize());
  EXPECT_TRUE(launch(*image, *stream));
  EXPECT_TRUE(device->allocate(*stream, 3 << 20));
  EXPECT_TRUE(load(axpy()));
  fake->capture(native, 0);
  destroyFakeStream(native);
}

} // namespace
