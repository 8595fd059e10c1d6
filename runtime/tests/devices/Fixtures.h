// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Artifacts for tests, from the shared objects that CMake builds.
#pragma once

#include "base/Digest.h"
#include "schema/Module.h"
#include "schema/record_generated.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace pgkp::rt::testing {

/// Where the fixtures are: PGKP_TEST_FIXTURES, else where they were built.
inline std::string fixturePath(const std::string &file) {
  const char *moved = std::getenv("PGKP_TEST_FIXTURES");
  return std::string(moved ? moved : PGKP_FIXTURE_DIR) + "/" + file;
}

inline std::vector<uint8_t> readFixture(const std::string &name,
                                        const std::string &suffix = ".so") {
  std::ifstream file(fixturePath(name + suffix), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The build id of the fixture with this number.
inline Digest fixtureKey(uint8_t id) {
  Digest key;
  key.bytes[0] = id;
  key.bytes[1] = 0xab;
  key.bytes[2] = 0xcd;
  return key;
}

/// An artifact in the making: change what the test is about, then pack.
struct ArtifactBuilder {
  schema::ArtifactT artifact;

  ArtifactBuilder(const schema::TargetT &target, schema::CodeFormat format,
                  std::vector<uint8_t> code, const Digest &key) {
    artifact.kernel = "axpy";
    artifact.symbol = "pgkp_kernel";
    artifact.producer = "test";
    artifact.target = std::make_unique<schema::TargetT>(target);
    artifact.format = format;
    artifact.code = std::move(code);
    artifact.content_key = std::make_unique<schema::Digest>(toSchema(key));
    artifact.kernel_hash =
        std::make_unique<schema::Digest>(toSchema(hashBytes({})));
    artifact.code_hash =
        std::make_unique<schema::Digest>(toSchema(hashBytes(artifact.code)));
  }

  /// Bytes per element times extent 0.
  ArtifactBuilder &workspace(int64_t bytesPerElement) {
    artifact.workspace = std::make_unique<schema::ExprT>();
    artifact.workspace->nodes = {
        schema::ExprNode(schema::ExprOp::symbol, 0, 0, 0),
        schema::ExprNode(schema::ExprOp::constant, 0, 0, bytesPerElement),
        schema::ExprNode(schema::ExprOp::product, 0, 1, 0)};
    return *this;
  }

  /// The launch of a GPU fixture: `pointers` tensors of f32, scratch memory if
  /// wanted, then the extent.
  ArtifactBuilder &deviceLaunch(uint16_t pointers, bool scratch) {
    auto constant = [](int64_t value) {
      auto expr = std::make_unique<schema::ExprT>();
      expr->nodes = {schema::ExprNode(schema::ExprOp::constant, 0, 0, value)};
      return expr;
    };
    artifact.launch = std::make_unique<schema::LaunchT>();
    for (int i = 0; i < 3; ++i)
      artifact.launch->grid.push_back(constant(1));
    artifact.launch->block = {128, 1, 1};
    artifact.params.clear();
    for (uint16_t i = 0; i < pointers; ++i)
      artifact.params.emplace_back(schema::ParamKind::pointer, 4, i);
    if (scratch)
      artifact.params.emplace_back(schema::ParamKind::workspace, 0, 0);
    artifact.params.emplace_back(schema::ParamKind::extent, 0, 0);
    return *this;
  }

  std::vector<uint8_t> pack() const {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(schema::Artifact::Pack(builder, &artifact),
                   schema::ArtifactIdentifier());
    return {builder.GetBufferPointer(),
            builder.GetBufferPointer() + builder.GetSize()};
  }
};

inline const schema::Artifact &view(const std::vector<uint8_t> &bytes) {
  return *schema::GetArtifact(bytes.data());
}

} // namespace pgkp::rt::testing
