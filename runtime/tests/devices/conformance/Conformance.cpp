// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The contract of devices/device/Device.h, held against every device.
#include "devices/Fixtures.h"
#include "devices/cuda/CudaDevice.h"
#include "devices/device/Memref.h"
#include "devices/host/HostDevice.h"
#include "devices/sim/SimDevice.h"

#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

using namespace pgkp::rt;
namespace schema = pgkp::schema;
using namespace pgkp::rt::testing;

namespace {

struct Backend {
  std::string name;
  std::function<std::unique_ptr<Device>()> make;
  bool computes; ///< launches really run
  /// What fixtures are called here: "" for "NAME.so".
  std::string suffix = ".so";
};

std::unique_ptr<Device> makeManualSim(bool drains) {
  static ManualClock clock;
  SimOptions options;
  options.loadDrains = drains;
  return makeSimDevice(clock, options);
}

void PrintTo(const Backend &backend, std::ostream *out) {
  *out << backend.name;
}

/// The GPU of this machine, if it is one that the fixtures are for.
std::unique_ptr<Device> makeRealCuda() {
  auto device = makeCudaDevice();
  return device && (*device)->target().chip == "sm_90a" &&
                 !readFixture("fixture_axpy", ".cubin").empty()
             ? std::move(*device)
             : nullptr;
}

std::vector<Backend> backends() {
  std::vector<Backend> all{
      {"host", [] { return makeHostDevice(); }, true},
      {"hostSeparateMemory",
       [] { return makeHostDevice({.separateMemory = true}); }, true},
      {"sim", [] { return makeManualSim(true); }, false},
      {"simNoDrain", [] { return makeManualSim(false); }, false},
      {"cudaFake",
       [] {
         auto device =
             makeCudaDevice({.library = fixturePath("pgkp_fake_cuda.so")});
         EXPECT_TRUE(device) << device.error().message;
         return device ? std::move(*device) : nullptr;
       },
       true, "_cuda.so"},
  };
  if (makeRealCuda())
    all.push_back({"cuda", makeRealCuda, true, ".cubin"});
  return all;
}

class DeviceConformance : public ::testing::TestWithParam<Backend> {
protected:
  void SetUp() override {
    device = GetParam().make();
    ASSERT_TRUE(device);
    auto created = device->createStream();
    ASSERT_TRUE(created) << created.error().message;
    stream = std::move(*created);
  }

  ArtifactBuilder artifact(const std::string &fixture, uint8_t id) {
    std::vector<uint8_t> code = readFixture(fixture, GetParam().suffix);
    EXPECT_FALSE(code.empty()) << fixture;
    ArtifactBuilder builder(device->target(), device->codeFormat(),
                            std::move(code), fixtureKey(id));
    if (device->kind() == schema::DeviceKind::cuda) {
      const bool scratch = fixture == "fixture_scratch";
      builder.deviceLaunch(scratch ? 2 : 3, scratch);
    }
    return builder;
  }

  std::unique_ptr<Image> loadOrDie(const std::vector<uint8_t> &bytes) {
    auto image = device->load(view(bytes));
    EXPECT_TRUE(image) << image.error().message;
    return image ? std::move(*image) : nullptr;
  }

  void *allocateOrDie(uint64_t bytes) {
    auto memory = device->allocate(*stream, bytes);
    EXPECT_TRUE(memory) << memory.error().message;
    return memory ? *memory : nullptr;
  }

  /// out = f(x, y) on n elements.
  std::vector<float> runAxpy(const Image &image, int64_t n) {
    std::vector<float> x(n), y(n), out(n, -1);
    std::iota(x.begin(), x.end(), 1);
    std::iota(y.begin(), y.end(), 100);
    const uint64_t bytes = n * sizeof(float);
    void *dx = allocateOrDie(bytes), *dy = allocateOrDie(bytes),
         *dout = allocateOrDie(bytes);
    EXPECT_TRUE(device->copyIn(*stream, dx, x.data(), bytes));
    EXPECT_TRUE(device->copyIn(*stream, dy, y.data(), bytes));
    EXPECT_TRUE(device->copyIn(*stream, dout, out.data(), bytes));
    MemrefHeader hx(dx, {{n}}), hy(dy, {{n}}), hout(dout, {{n}});
    void *args[] = {hx.data(), hy.data(), hout.data()};
    const int64_t extents[] = {n};
    Status launched = device->launch(*stream, image, {args, extents, 0});
    EXPECT_TRUE(launched) << launched.error().message;
    EXPECT_TRUE(device->copyOut(*stream, out.data(), dout, bytes));
    EXPECT_TRUE(stream->synchronize());
    for (void *memory : {dx, dy, dout})
      device->release(*stream, memory);
    return out;
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
};

TEST_P(DeviceConformance, SaysWhatItIs) {
  EXPECT_FALSE(device->name().empty());
  const schema::TargetT target = device->target();
  EXPECT_EQ(target.device, device->kind());
  EXPECT_FALSE(target.chip.empty());
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(schema::Target::Pack(builder, &target));
  EXPECT_TRUE(device->accepts(
      *flatbuffers::GetRoot<schema::Target>(builder.GetBufferPointer())));
}

TEST_P(DeviceConformance, LoadsAndLaunches) {
  const auto bytes = artifact("fixture_axpy", 1).pack();
  auto image = loadOrDie(bytes);
  ASSERT_TRUE(image);
  EXPECT_GT(image->bytes(), 0u);
  const std::vector<float> out = runAxpy(*image, 1000);
  if (!GetParam().computes)
    return;
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(out[i], 2.0f * (i + 1) + (i + 100)) << i;
}

TEST_P(DeviceConformance, TwoVariantsOfOneKernelAreTwoImages) {
  const auto two = artifact("fixture_axpy", 1).pack();
  const auto three = artifact("fixture_axpy3", 2).pack();
  auto first = loadOrDie(two);
  auto second = loadOrDie(three);
  auto again = loadOrDie(two);
  ASSERT_TRUE(first && second && again);
  second.reset();
  second = loadOrDie(three);
  ASSERT_TRUE(second);
  if (!GetParam().computes)
    return;
  EXPECT_EQ(runAxpy(*first, 1)[0], 102);
  EXPECT_EQ(runAxpy(*second, 1)[0], 103);
  EXPECT_EQ(runAxpy(*again, 1)[0], 102);
}

TEST_P(DeviceConformance, LoadedAndUnloadedManyTimesTheRightCodeRuns) {
  const auto two = artifact("fixture_axpy", 1).pack();
  const auto three = artifact("fixture_axpy3", 2).pack();
  std::unique_ptr<Image> kept;
  for (int round = 0; round < 50; ++round) {
    const bool isThree = round % 3 == 0;
    auto image = loadOrDie(isThree ? three : two);
    ASSERT_TRUE(image);
    const auto out = runAxpy(*image, 4);
    if (GetParam().computes) {
      ASSERT_EQ(out[0], isThree ? 103 : 102) << round;
    }
    if (round % 7 == 0)
      kept = std::move(image);
  }
}

TEST_P(DeviceConformance, RefusesForeignTargets) {
  auto builder = artifact("fixture_axpy", 1);
  builder.artifact.target->chip = "no-such-chip";
  auto loaded = device->load(view(builder.pack()));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::unsupported);
  EXPECT_NE(loaded.error().message.find("no-such-chip"), std::string::npos);
  EXPECT_NE(loaded.error().message.find("axpy"), std::string::npos);

  builder = artifact("fixture_axpy", 1);
  builder.artifact.target->device = device->kind() == schema::DeviceKind::cuda
                                        ? schema::DeviceKind::host
                                        : schema::DeviceKind::cuda;
  loaded = device->load(view(builder.pack()));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::unsupported);
}

TEST_P(DeviceConformance, RefusesArtifactsWithoutKey) {
  auto builder = artifact("fixture_axpy", 1);
  builder.artifact.content_key.reset();
  auto loaded = device->load(view(builder.pack()));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::corrupt);
}

TEST_P(DeviceConformance, ScratchMemoryGrowsWithTheCall) {
  const auto bytes = artifact("fixture_scratch", 3).workspace(4).pack();
  auto image = loadOrDie(bytes);
  ASSERT_TRUE(image);
  for (int64_t n : {0, 1, 100, 7, 100000, 3}) {
    std::vector<float> x(n), out(n);
    std::iota(x.begin(), x.end(), 1);
    const uint64_t size = n * sizeof(float);
    void *dx = allocateOrDie(size), *dout = allocateOrDie(size);
    ASSERT_TRUE(device->copyIn(*stream, dx, x.data(), size));
    MemrefHeader hx(dx, {{n}}), hout(dout, {{n}});
    void *args[] = {hx.data(), hout.data()};
    const int64_t extents[] = {n};
    ASSERT_TRUE(device->launch(*stream, *image, {args, extents, size}));
    ASSERT_TRUE(device->copyOut(*stream, out.data(), dout, size));
    ASSERT_TRUE(stream->synchronize());
    for (int64_t i = 0; GetParam().computes && i < n; ++i)
      ASSERT_EQ(out[i], n - i);
    device->release(*stream, dx);
    device->release(*stream, dout);
  }
}

TEST_P(DeviceConformance, MemoryIsAlignedDistinctAndReused) {
  std::vector<void *> live;
  for (uint64_t bytes : {0, 0, 1, 63, 64, 65, 128, 1000, 4096, 1 << 20}) {
    void *memory = allocateOrDie(bytes);
    ASSERT_TRUE(memory);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u) << bytes;
    EXPECT_EQ(std::count(live.begin(), live.end(), memory), 0);
    live.push_back(memory);
  }
  void *last = live.back();
  for (void *memory : live)
    device->release(*stream, memory);
  EXPECT_EQ(allocateOrDie(1 << 20), last) << "a released block is used again";
  device->release(*stream, last);
}

TEST_P(DeviceConformance, EveryByteOfAnAllocationIsUsable) {
  for (uint64_t bytes = 1; bytes < (1 << 16); bytes = bytes * 5 / 4 + 1) {
    void *memory = allocateOrDie(bytes);
    std::vector<uint8_t> in(bytes), out(bytes);
    for (uint64_t i = 0; i < bytes; ++i)
      in[i] = static_cast<uint8_t>(i * 31 + bytes);
    ASSERT_TRUE(device->copyIn(*stream, memory, in.data(), bytes));
    ASSERT_TRUE(device->copyOut(*stream, out.data(), memory, bytes));
    ASSERT_TRUE(stream->synchronize());
    ASSERT_EQ(in, out) << bytes;
    device->release(*stream, memory);
  }
}

TEST_P(DeviceConformance, ImpossibleAllocationsAreErrors) {
  for (uint64_t bytes : {uint64_t{1} << 45, uint64_t{1} << 50, ~uint64_t{0}}) {
    auto memory = device->allocate(*stream, bytes);
    if (memory) { // overcommit: nothing was touched
      device->release(*stream, *memory);
      continue;
    }
    EXPECT_EQ(memory.error().code, Code::exhausted);
  }
  EXPECT_FALSE(device->allocate(*stream, ~uint64_t{0}));
}

TEST_P(DeviceConformance, MemoryMovesBetweenStreams) {
  auto other = device->createStream();
  ASSERT_TRUE(other);
  void *memory = allocateOrDie(256);
  device->release(**other, memory);
  auto again = device->allocate(**other, 256);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, memory);
  device->release(**other, *again);
  other->reset();
  // Free blocks of a stream that is gone serve the others.
  EXPECT_EQ(allocateOrDie(256), memory);
}

TEST_P(DeviceConformance, StridedCopies) {
  // A 3x4 window at (1, 2) of a 6x8 matrix, transposed into a 4x3 one.
  constexpr int64_t rows = 6, columns = 8;
  std::vector<int32_t> matrix(rows * columns), out(12, -1);
  std::iota(matrix.begin(), matrix.end(), 0);
  void *src = allocateOrDie(matrix.size() * 4), *dst = allocateOrDie(48);
  ASSERT_TRUE(device->copyIn(*stream, src, matrix.data(), matrix.size() * 4));
  MemrefHeader dstHeader(dst, {{4, 3}});
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[2], strides[2];
  } window{src, src, 1 * columns + 2, {4, 3}, {1, columns}};
  ASSERT_TRUE(device->copyStrided(*stream, 2, 4, &window, dstHeader.data()));
  ASSERT_TRUE(device->copyOut(*stream, out.data(), dst, 48));
  ASSERT_TRUE(stream->synchronize());
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 3; ++j)
      EXPECT_EQ(out[i * 3 + j], (1 + j) * columns + 2 + i);

  window.sizes[0] = 5;
  Status bad = device->copyStrided(*stream, 2, 4, &window, dstHeader.data());
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::invalidArgument);
  device->release(*stream, src);
  device->release(*stream, dst);
}

TEST_P(DeviceConformance, SynchronizedStreamsAreIdle) {
  const auto bytes = artifact("fixture_axpy", 1).pack();
  auto image = loadOrDie(bytes);
  ASSERT_TRUE(image);
  runAxpy(*image, 16);
  ASSERT_TRUE(stream->synchronize());
  EXPECT_TRUE(stream->idle());
}

TEST_P(DeviceConformance, IdleWhenEverythingIsDone) {
  const auto bytes = artifact("fixture_axpy", 1).pack();
  auto image = loadOrDie(bytes);
  ASSERT_TRUE(image);
  EXPECT_TRUE(device->idle()) << "nothing was launched";
  runAxpy(*image, 100);
  EXPECT_TRUE(device->idle());
  EXPECT_FALSE(device->capturing());
}

TEST_P(DeviceConformance, ThreadsWithStreamsOfTheirOwn) {
  const auto two = artifact("fixture_axpy", 1).pack();
  const auto three = artifact("fixture_axpy3", 2).pack();
  auto shared = loadOrDie(two);
  std::atomic<int> failures{0};
  auto work = [&](int thread) {
    auto own = device->createStream();
    for (int round = 0; round < 40; ++round) {
      auto image = device->load(view(three));
      const int64_t n = 8 + thread;
      std::vector<float> ones(n, 1), out(n);
      const uint64_t size = n * 4;
      auto x = device->allocate(**own, size), o = device->allocate(**own, size);
      if (!own || !image || !x || !o) {
        ++failures;
        return;
      }
      (void)device->copyIn(**own, *x, ones.data(), size);
      MemrefHeader hx(*x, {{n}}), ho(*o, {{n}});
      void *args[] = {hx.data(), hx.data(), ho.data()};
      const int64_t extents[] = {n};
      for (const Image *run : {shared.get(), image->get()}) {
        if (!device->launch(**own, *run, {args, extents, 0}) ||
            !device->copyOut(**own, out.data(), *o, size) ||
            !(*own)->synchronize() ||
            (GetParam().computes && out[0] != (run == shared.get() ? 3 : 4)))
          ++failures;
      }
      device->release(**own, *x);
      device->release(**own, *o);
    }
  };
  std::thread a(work, 1), b(work, 2), c(work, 3);
  a.join();
  b.join();
  c.join();
  EXPECT_EQ(failures, 0);
}

TEST_P(DeviceConformance, ManyArguments) {
  const auto bytes = artifact("fixture_axpy", 1).pack();
  auto image = loadOrDie(bytes);
  ASSERT_TRUE(image);
  const int64_t n = 4;
  void *memory = allocateOrDie(16);
  const std::vector<float> ones(4, 1);
  ASSERT_TRUE(device->copyIn(*stream, memory, ones.data(), 16));
  MemrefHeader header(memory, {{n}});
  for (size_t count : {3u, 64u, 65u, 200u}) {
    std::vector<void *> args(count, header.data());
    const int64_t extents[] = {n};
    ASSERT_TRUE(device->launch(*stream, *image, {args, extents, 0}));
  }
  std::vector<float> out(4);
  ASSERT_TRUE(device->copyOut(*stream, out.data(), memory, 16));
  ASSERT_TRUE(stream->synchronize());
  if (GetParam().computes) {
    EXPECT_EQ(out[0], 81); // 3^4: four launches of out = 2 x + x in place
  }
  device->release(*stream, memory);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceConformance,
                         ::testing::ValuesIn(backends()),
                         [](const auto &info) { return info.param.name; });

} // namespace
