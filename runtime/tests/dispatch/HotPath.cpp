// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A look-up and a launch take no lock, allocate nothing, make no system call.
#include "base/Confined.h"
#include "devices/host/HostDevice.h"
#include "dispatch/Support.h"

#include <gtest/gtest.h>
#include <mutex>
#include <unistd.h>

using namespace pgkp::rt;
using namespace pgkp::rt::testing;

#ifdef PGKP_CAN_CONFINE
namespace {

void bump(void *const *args) { ++*static_cast<int *>(args[0]); }

TEST(HotPath, TheConfinementBites) {
  const std::string free = confined([] { return true; });
  if (free.starts_with("skip"))
    GTEST_SKIP() << free;
  EXPECT_EQ(free, "");
  EXPECT_EQ(confined([] { return false; }), "a wrong result");
  EXPECT_EQ(confined([] { return ::getppid() >= 0; }), "a system call");
  EXPECT_EQ(confined([] {
              void *volatile memory = ::malloc(16);
              ::free(memory);
              return true;
            }),
            "1 allocations");
  std::mutex mutex;
  EXPECT_EQ(confined([&] { return std::lock_guard(mutex), true; }), "1 locks");
}

TEST(HotPath, DispatchOnlyComputes) {
  const uint32_t ranks[] = {2};
  DispatchTable table(ranks);
  auto image = [] { return std::shared_ptr<const Image>(makeHostImage(bump)); };
  std::vector<Variant> variants;
  variants.push_back(makeVariant(100, {}));
  for (KeyId key = 0; key < 16; ++key)
    variants.push_back(
        makeVariant(key, {in(0, key * 10, key * 10 + 9), divisible(1, 4)}));
  for (KeyId key = 16; key < 80; ++key)
    variants.push_back(makeVariant(key, {eq(0, key), eq(1, 3)}));
  for (Variant &variant : variants)
    variant.image = image();
  ASSERT_TRUE(table.publish(0, std::move(variants)));

  auto device = makeHostDevice();
  auto stream = device->createStream();
  ASSERT_TRUE(stream);
  DispatchTable::Reader reader(table);
  int calls = 0;
  auto dispatch = [&](int64_t m, int64_t n, DispatchReason expected) {
    const int64_t extents[] = {m, n};
    DispatchTable::Session session(reader);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const Resolved found = reader.lookup(0, extents);
      void *args[] = {&calls};
      if (!found.variant || found.reason != expected ||
          !device->launch(**stream, found.handle,
                          {args, extents, 64 * found.workspaceBytes}))
        return false;
    }
    return true;
  };
  const std::string did = confined([&] {
    for (int64_t m = 16; m < 80; ++m)
      if (!dispatch(m, 3, DispatchReason::exact) ||
          !dispatch(m, 8, DispatchReason::classMatch) ||
          !dispatch(m, 5, DispatchReason::generic))
        return false;
    return calls == 64 * 9;
  });
  if (did.starts_with("skip"))
    GTEST_SKIP() << did;
  EXPECT_EQ(did, "");
}

} // namespace
#endif
