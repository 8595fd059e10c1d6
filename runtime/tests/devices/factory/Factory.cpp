// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/factory/Factory.h"

#include <gtest/gtest.h>

using namespace pgkp::rt;
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
  auto cuda = makeDevice("cuda");
  ASSERT_FALSE(cuda);
  EXPECT_EQ(cuda.error().code, Code::unavailable);
}
