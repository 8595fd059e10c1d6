// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A small valid bundle for tests of every room: a product with classes
/// and a static kernel, an entry whose sites use them.
#pragma once

#include "schema/ContentKey.h"
#include "schema/Module.h"

#include <memory>
#include <string>
#include <vector>

namespace pgkp::rt::fixtures {

inline schema::Digest schemaDigest(const Digest &d) {
  return schema::Digest(flatbuffers::span<const uint8_t, 32>(d.bytes));
}

inline schema::ExprNode constant(int64_t value) {
  return {schema::ExprOp::constant, 0, 0, value};
}
inline schema::ExprNode symbol(int64_t index) {
  return {schema::ExprOp::symbol, 0, 0, index};
}
inline schema::ExprNode node(schema::ExprOp op, uint16_t lhs, uint16_t rhs) {
  return {op, lhs, rhs, 0};
}
inline std::unique_ptr<schema::ExprT>
expr(std::vector<schema::ExprNode> nodes) {
  auto result = std::make_unique<schema::ExprT>();
  result->nodes = std::move(nodes);
  return result;
}
inline schema::Fact eq(uint16_t dim, int64_t value) {
  return {schema::FactKind::eq, dim, value, 0};
}
inline schema::Fact divisible(uint16_t dim, int64_t divisor) {
  return {schema::FactKind::divisible, dim, divisor, 0};
}
inline schema::Fact inRange(uint16_t dim, int64_t low, int64_t high) {
  return {schema::FactKind::range, dim, low, high};
}

inline std::unique_ptr<schema::ArtifactT> artifact(const std::string &kernel,
                                                   const Digest &kernelHash,
                                                   const Digest &contentKey,
                                                   size_t codeBytes = 64) {
  auto result = std::make_unique<schema::ArtifactT>();
  result->content_key =
      std::make_unique<schema::Digest>(schemaDigest(contentKey));
  result->kernel_hash =
      std::make_unique<schema::Digest>(schemaDigest(kernelHash));
  result->kernel = kernel;
  result->target = std::make_unique<schema::TargetT>();
  result->target->chip = "x86-64";
  result->format = schema::CodeFormat::elf;
  result->code.assign(codeBytes, 0x5a);
  result->symbol = "pgkp_kernel";
  result->code_hash =
      std::make_unique<schema::Digest>(schemaDigest(hashBytes(result->code)));
  result->workspace = expr({constant(0)});
  result->producer = "test";
  return result;
}

inline Digest matmulHash() {
  return Hasher().add(std::string_view("matmul")).finish();
}

/// matmul(m): classes [m == 1], [m in 2..63], [m % 16 == 0]; fill(): static.
/// decode(batch, seq): matmul[batch * seq], matmul[batch], fill, matmul[?].
inline schema::BundleT testBundle() {
  schema::BundleT bundle;
  bundle.format_version = 1;
  bundle.module_ = "test.mlir";
  bundle.producer = "test";

  auto matmul = std::make_unique<schema::KernelT>();
  matmul->name = "matmul";
  matmul->family = "matmul";
  matmul->hash = std::make_unique<schema::Digest>(schemaDigest(matmulHash()));
  matmul->dims = {"m"};
  matmul->bytecode = {1, 2, 3};
  for (bool output : {false, true}) {
    auto arg = std::make_unique<schema::KernelArgT>();
    arg->shape.push_back(expr({symbol(0)}));
    arg->shape.push_back(expr({constant(64)}));
    arg->output = output;
    matmul->args.push_back(std::move(arg));
  }
  for (const std::vector<schema::Fact> &facts :
       {std::vector{eq(0, 1)}, std::vector{inRange(0, 2, 63)},
        std::vector{divisible(0, 16)}}) {
    auto klass = std::make_unique<schema::ClassT>();
    klass->facts = facts;
    klass->probability = 0.5f;
    matmul->classes.push_back(std::move(klass));
  }
  auto config = std::make_unique<schema::ConfigT>();
  auto item = std::make_unique<schema::ConfigItemT>();
  item->name = "mr";
  item->integer = 6;
  config->items.push_back(std::move(item));
  matmul->configs.push_back(std::move(config));
  matmul->flops =
      expr({symbol(0), constant(8192), node(schema::ExprOp::product, 0, 1)});
  matmul->generic.push_back(artifact("matmul", matmulHash(), {}));
  bundle.kernels.push_back(std::move(matmul));

  auto fill = std::make_unique<schema::KernelT>();
  fill->name = "fill";
  fill->hash = std::make_unique<schema::Digest>(
      schemaDigest(Hasher().add(std::string_view("fill")).finish()));
  bundle.kernels.push_back(std::move(fill));

  auto entry = std::make_unique<schema::EntryT>();
  entry->name = "decode";
  entry->symbol = "pgkp_entry_decode";
  entry->roots = {"batch", "seq"};
  auto arg = std::make_unique<schema::EntryArgT>();
  arg->name = "x";
  arg->shape.push_back(expr({symbol(0)}));
  arg->shape.push_back(expr({symbol(1)}));
  entry->args.push_back(std::move(arg));
  auto result = std::make_unique<schema::EntryResultT>();
  result->shape.push_back(expr({symbol(0)}));
  result->shape.push_back(expr({symbol(1)}));
  result->carries = 0;
  entry->results.push_back(std::move(result));
  auto site = [&](uint32_t kernel) {
    entry->sites.push_back(std::make_unique<schema::SiteT>());
    entry->sites.back()->kernel = kernel;
    return entry->sites.back().get();
  };
  site(0)->extents.push_back(
      expr({symbol(0), symbol(1), node(schema::ExprOp::product, 0, 1)}));
  site(0)->extents.push_back(expr({symbol(0)}));
  site(1);
  site(0); // extents unknown
  bundle.entries.push_back(std::move(entry));
  return bundle;
}

inline std::vector<uint8_t> pack(const schema::BundleT &bundle) {
  flatbuffers::FlatBufferBuilder builder;
  schema::FinishBundleBuffer(builder, schema::Bundle::Pack(builder, &bundle));
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

inline std::vector<uint8_t> pack(const schema::ArtifactT &artifact) {
  flatbuffers::FlatBufferBuilder builder;
  schema::FinishArtifactBuffer(builder,
                               schema::Artifact::Pack(builder, &artifact));
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

/// Gives the artifact the content key of its own terms. \returns the key.
inline Digest giveKey(schema::ArtifactT &artifact) {
  artifact.content_key = std::make_unique<schema::Digest>();
  const std::vector<uint8_t> bytes = pack(artifact);
  const Digest key = contentKeyOf(*schema::GetArtifact(bytes.data()));
  artifact.content_key = std::make_unique<schema::Digest>(schemaDigest(key));
  return key;
}

/// The variant of `matmul` for m == n.
inline std::unique_ptr<schema::ArtifactT> variant(int64_t n,
                                                  size_t codeBytes = 64) {
  auto result = artifact("matmul", matmulHash(), {}, codeBytes);
  result->facts = {eq(0, n)};
  result->stages = std::make_unique<schema::StageTimesT>();
  result->stages->compile_ms = 150;
  giveKey(*result);
  return result;
}

} // namespace pgkp::rt::fixtures
