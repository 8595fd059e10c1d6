// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A CUDA device on the fake driver, and streams as an application has.
#pragma once

#include "devices/Fixtures.h"
#include "devices/cuda/CudaDevice.h"
#include "devices/cuda/Driver.h"
#include "devices/cuda/fake/FakeCuda.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace pgkp::rt::testing {

inline std::string fakeLibrary() { return fixturePath("pgkp_fake_cuda.so"); }

inline const fake_cuda_t *fakeControl() {
  void *library = dlopen(fakeLibrary().c_str(), RTLD_NOW);
  return reinterpret_cast<fake_cuda_fn>(dlsym(library, "fakeCuda"))();
}

inline ArtifactBuilder fakeArtifact(Device &device, const std::string &name,
                                    uint8_t id = 1) {
  ArtifactBuilder builder(device.target(), device.codeFormat(),
                          readFixture(name, "_cuda.so"), fixtureKey(id));
  const bool scratch = name == "fixture_scratch";
  builder.deviceLaunch(scratch ? 2 : 3, scratch);
  return builder;
}

class FakeCudaTest : public ::testing::Test {
protected:
  void SetUp() override {
    fake->reset();
    auto made = makeCudaDevice({.library = fakeLibrary()});
    ASSERT_TRUE(made) << made.error().message;
    device = std::move(*made);
    auto created = device->createStream();
    ASSERT_TRUE(created) << created.error().message;
    stream = std::move(*created);
  }

  const cuda::Driver &driver() { return **cuda::Driver::open(fakeLibrary()); }
  void *currentFakeContext() {
    cuda::ContextHandle context = nullptr;
    driver().primaryRetain(&context, 0);
    driver().primaryRelease(0);
    return context;
  }
  void *makeFakeStream() {
    const cuda::CurrentContext current(
        driver(), static_cast<cuda::ContextHandle>(currentFakeContext()));
    cuda::StreamHandle native = nullptr;
    driver().streamCreate(&native, 0);
    return native;
  }
  void destroyFakeStream(void *native) {
    const cuda::CurrentContext current(
        driver(), static_cast<cuda::ContextHandle>(currentFakeContext()));
    driver().streamDestroy(static_cast<cuda::StreamHandle>(native));
  }
  /// Work that the device under test does not know of.
  void launchOnFakeStream(void *native) {
    const cuda::CurrentContext current(
        driver(), static_cast<cuda::ContextHandle>(currentFakeContext()));
    driver().copyIn(0, nullptr, 0, static_cast<cuda::StreamHandle>(native));
  }

  const fake_cuda_t *const fake = fakeControl();
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
};

} // namespace pgkp::rt::testing
