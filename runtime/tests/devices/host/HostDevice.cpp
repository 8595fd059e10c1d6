// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/host/HostDevice.h"
#include "devices/Fixtures.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace pgkp::rt;
namespace schema = pgkp::schema;
using namespace pgkp::rt::testing;

namespace {

ArtifactBuilder axpy(Device &device) {
  return ArtifactBuilder(device.target(), schema::CodeFormat::elf,
                         readFixture("fixture_axpy"), fixtureKey(1));
}

Error loadError(Device &device, const ArtifactBuilder &builder) {
  const auto bytes = builder.pack();
  auto loaded = device.load(view(bytes));
  EXPECT_FALSE(loaded);
  return loaded ? Error{} : loaded.error();
}

TEST(HostDevice, TargetIsAPsabiLevel) {
  auto device = makeHostDevice();
  const schema::TargetT target = device->target();
#if defined(__x86_64__)
  EXPECT_EQ(target.chip.rfind("x86-64", 0), 0u) << target.chip;
#endif
  EXPECT_EQ(target.features, "");
}

TEST(HostDevice, AcceptsLowerLevelsOnly) {
#if defined(__x86_64__)
  auto device = makeHostDevice();
  auto accepts = [&](const char *chip, const char *features = "") {
    schema::TargetT target;
    target.device = schema::DeviceKind::host;
    target.chip = chip;
    target.features = features;
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(schema::Target::Pack(builder, &target));
    return device->accepts(
        *flatbuffers::GetRoot<schema::Target>(builder.GetBufferPointer()));
  };
  EXPECT_TRUE(accepts("x86-64"));
  EXPECT_EQ(accepts("x86-64-v3"), __builtin_cpu_supports("x86-64-v3") != 0);
  EXPECT_EQ(accepts("x86-64-v4"), __builtin_cpu_supports("x86-64-v4") != 0);
  EXPECT_FALSE(accepts("x86-64-v5"));
  EXPECT_FALSE(accepts("znver3"));
  EXPECT_FALSE(accepts("x86-64", "+avx512f"));
#endif
}

TEST(HostDevice, BuildIdMustBeTheContentKey) {
  auto device = makeHostDevice();
  auto builder = axpy(*device);
  builder.artifact.content_key =
      std::make_unique<schema::Digest>(toSchema(fixtureKey(2)));
  const Error error = loadError(*device, builder);
  EXPECT_EQ(error.code, Code::corrupt);
  EXPECT_NE(error.message.find("pgkp_build_id"), std::string::npos);
}

TEST(HostDevice, MissingSymbolIsNamed) {
  auto device = makeHostDevice();
  auto builder = axpy(*device);
  builder.artifact.symbol = "no_such_kernel";
  const Error error = loadError(*device, builder);
  EXPECT_EQ(error.code, Code::corrupt);
  EXPECT_NE(error.message.find("no_such_kernel"), std::string::npos);
}

TEST(HostDevice, BadCodeIsAnErrorAndNotACrash) {
  auto device = makeHostDevice();
  auto builder = axpy(*device);
  const std::vector<uint8_t> good = builder.artifact.code;
  for (size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{64}}) {
    builder.artifact.code.assign(good.begin(), good.begin() + size);
    EXPECT_FALSE(loadError(*device, builder).message.empty()) << size;
  }
  builder.artifact.code.assign(4096, 0x41);
  EXPECT_EQ(loadError(*device, builder).code, Code::corrupt);
  builder.artifact.code = good;
  builder.artifact.code[18] = 0x28; // e_machine: Arm
  EXPECT_EQ(loadError(*device, builder).code, Code::unsupported);
  builder.artifact.code = good;
  builder.artifact.format = schema::CodeFormat::ptx;
  EXPECT_EQ(loadError(*device, builder).code, Code::unsupported);
}

TEST(HostDevice, ImagesOfTheProcessItself) {
  auto device = makeHostDevice();
  auto stream = device->createStream();
  ASSERT_TRUE(stream);
  auto image =
      makeHostImage([](void *const *args) { ++*static_cast<int *>(args[0]); });
  int calls = 0;
  void *args[] = {&calls};
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(device->launch(**stream, *image, {args, {}, 0}));
  EXPECT_EQ(calls, 3);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(HostDeviceDeathTest, SeparateMemoryIsOutOfReach) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto device = makeHostDevice({.separateMemory = true});
  auto stream = device->createStream();
  ASSERT_TRUE(stream);
  auto memory = device->allocate(**stream, 100);
  ASSERT_TRUE(memory);
  EXPECT_DEATH(*static_cast<volatile char *>(*memory) = 1, "");
  device->release(**stream, *memory);
}
#endif

} // namespace
