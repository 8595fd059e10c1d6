// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/factory/Factory.h"
#include "devices/Fixtures.h"

#include <gtest/gtest.h>

using namespace pgkp::rt;
using namespace pgkp::rt::testing;
namespace schema = pgkp::schema;

TEST(DeviceFactory, MakesByName) {
  for (std::string_view name : {"host", "sim"}) {
    auto device = makeDevice(name);
    ASSERT_TRUE(device) << device.error().message;
    EXPECT_EQ(schema::EnumNameDeviceKind((*device)->kind()), name);
  }
}

TEST(DeviceFactory, ErrorsNameTheDevice) {
  auto unknown = makeDevice("tpu");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::invalidArgument);
  EXPECT_EQ(unknown.error().message,
            "device 'tpu' is unknown; expected host, cuda or sim");
  for (const char *bad : {"cuda:", "cuda:x", "cuda:1x", "cuda:-1"}) {
    auto device = makeDevice(bad);
    ASSERT_FALSE(device) << bad;
    EXPECT_EQ(device.error().code, Code::invalidArgument);
  }
}

TEST(DeviceFactory, FindsCudaDevicesByNumber) {
  setenv("PGKP_CUDA_DRIVER", fixturePath("pgkp_fake_cuda.so").c_str(), 1);
  auto first = makeDevice("cuda");
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ((*first)->name(), "Fake GPU 0");
  auto second = makeDevice("cuda:1");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::unavailable);
  setenv("PGKP_CUDA_DRIVER", "/nowhere/libcuda.so", 1);
  auto none = makeDevice("cuda");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::unavailable);
  unsetenv("PGKP_CUDA_DRIVER");
}
