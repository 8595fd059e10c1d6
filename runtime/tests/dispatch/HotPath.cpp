// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A dispatch takes no lock, allocates nothing, makes no system call: the
// process gives up its right to both, then dispatches.
#include "devices/host/HostDevice.h"
#include "dispatch/Support.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace pgkp::rt;
using namespace pgkp::rt::testing;
namespace schema = pgkp::schema;

// Sanitizers replace malloc and make system calls of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

extern "C" void *__libc_malloc(size_t);
static volatile bool allocationForbidden = false;
static volatile unsigned allocations = 0;
extern "C" void *malloc(size_t bytes) {
  if (allocationForbidden)
    allocations = allocations + 1;
  return __libc_malloc(bytes);
}

namespace {

/// Runs `body` in a child that may only compute. \returns its exit code; -1 if
/// the kernel killed it for a system call.
template <typename Body> int confined(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    allocationForbidden = true;
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
      ::syscall(SYS_exit, 99);
    const int code = body();
    ::syscall(SYS_exit, allocations != 0 ? 98 : code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void bump(void *const *args) { ++*static_cast<int *>(args[0]); }

TEST(HotPath, TheConfinementBites) {
  EXPECT_EQ(confined([] { return 7; }), 7);
  EXPECT_EQ(confined([] { return static_cast<int>(::getppid()) & 0; }), -1);
  EXPECT_EQ(confined([] {
              ::free(::malloc(16));
              return 0;
            }),
            98);
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
  EXPECT_EQ(confined([&] {
              for (int64_t m = 16; m < 80; ++m)
                if (!dispatch(m, 3, DispatchReason::exact) ||
                    !dispatch(m, 8, DispatchReason::classMatch) ||
                    !dispatch(m, 5, DispatchReason::generic))
                  return 1;
              return calls == 64 * 9 ? 0 : 2;
            }),
            0);
}

} // namespace
#endif
