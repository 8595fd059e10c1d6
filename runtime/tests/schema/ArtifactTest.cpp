// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the FlatBuffers verifier lets through in the launch part of an artifact.
#include "TestBundle.h"

#include <gtest/gtest.h>

using namespace pgkp::rt;
using namespace pgkp::rt::fixtures;
namespace schema = pgkp::schema;

namespace {

constexpr size_t kDims = 1, kArgs = 2;

schema::ArtifactT deviceArtifact() {
  schema::ArtifactT result = *artifact("matmul", matmulHash(), {});
  auto map = std::make_unique<schema::TensorMapT>();
  map->arg = 1;
  map->element = schema::ElementType::bf16;
  map->sizes.push_back(expr({constant(64)}));
  map->sizes.push_back(expr({symbol(0)}));
  map->strides.push_back(expr({constant(128)}));
  map->box.push_back(expr({constant(64)}));
  map->box.push_back(expr({constant(8)}));
  result.tensor_maps.push_back(std::move(map));
  result.params = {
      schema::Param(schema::ParamKind::pointer, 4, 0),
      schema::Param(schema::ParamKind::tensor_map, 0, 0),
      schema::Param(schema::ParamKind::workspace, 0, 0),
      schema::Param(schema::ParamKind::counters, 0, 0),
      schema::Param(schema::ParamKind::extent, 0, 0),
  };
  return result;
}

Status check(const schema::ArtifactT &artifact) {
  const std::vector<uint8_t> bytes = pack(artifact);
  return checkArtifact(*schema::GetArtifact(bytes.data()), kDims, kArgs);
}

TEST(Artifact, TakesEveryKindOfParameter) {
  const Status status = check(deviceArtifact());
  EXPECT_TRUE(status) << status.error().message;
}

TEST(Artifact, RefusesParametersThatReferToNothing) {
  for (const schema::Param &bad :
       {schema::Param(schema::ParamKind::pointer, 4, kArgs),
        schema::Param(schema::ParamKind::pointer, 9, 0),
        schema::Param(schema::ParamKind::extent, 0, kDims),
        schema::Param(schema::ParamKind::tensor_map, 0, 1),
        schema::Param(schema::ParamKind::workspace, 0, 1),
        schema::Param(static_cast<schema::ParamKind>(6), 0, 0)}) {
    schema::ArtifactT artifact = deviceArtifact();
    artifact.params.push_back(bad);
    const Status status = check(artifact);
    ASSERT_FALSE(status) << static_cast<int>(bad.kind());
    EXPECT_EQ(status.error().code, Code::corrupt);
  }
}

TEST(Artifact, RefusesTensorMapsThatContradictThemselves) {
  auto refused = [](auto change) {
    schema::ArtifactT artifact = deviceArtifact();
    change(*artifact.tensor_maps[0]);
    const Status status = check(artifact);
    return !status && status.error().code == Code::corrupt;
  };
  using Map = schema::TensorMapT;
  EXPECT_TRUE(refused([](Map &map) { map.arg = kArgs; }));
  EXPECT_TRUE(refused([](Map &map) { map.strides.clear(); }));
  EXPECT_TRUE(refused([](Map &map) { map.box.pop_back(); }));
  EXPECT_TRUE(refused([](Map &map) {
    map.sizes.clear();
    map.strides.clear();
    map.box.clear();
  }));
  EXPECT_TRUE(refused([](Map &map) { map.sizes[0] = expr({symbol(kDims)}); }));
  EXPECT_TRUE(
      refused([](Map &map) { map.swizzle = static_cast<schema::Swizzle>(4); }));
}

} // namespace
