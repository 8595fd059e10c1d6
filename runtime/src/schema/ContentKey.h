// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The name of a compiled variant: everything that can change its code.
#pragma once

#include "base/Digest.h"
#include "schema/record_generated.h"
#include "schema/wire_generated.h"

#include <span>
#include <string_view>
#include <vector>

namespace pgkp::rt {

/// BLAKE2b-256 over kernel hash (bytecode without debug info), facts in
/// canonical order, configuration sorted by name, device, chip and features,
/// code format, pipeline, and the producer (PGKP and LLVM build identities; for
/// cubins the assembler's version too). The driver's version is a load
/// precondition and not part of it (design section 6).
Digest contentKey(const Digest &kernelHash, std::span<const schema::Fact> facts,
                  const schema::Config *config, const schema::Target &target,
                  schema::CodeFormat format, schema::Pipeline pipeline,
                  std::string_view producer);

/// The key that an artifact's own terms give. A record is what its name says if
/// they are equal.
Digest contentKeyOf(const schema::Artifact &artifact);

/// The same terms without the producer: what a recipe is filed under, so that
/// another compiler finds it.
Digest recipeKey(const Digest &kernelHash, std::span<const schema::Fact> facts,
                 const schema::Config *config, const schema::Target &target,
                 schema::CodeFormat format, schema::Pipeline pipeline);

/// Sorted by extent, kind and values, each once; operands that a kind does not
/// use are 0. Two lists with equal canonical forms are the same class.
std::vector<schema::Fact> canonicalFacts(std::span<const schema::Fact> facts);

/// A key's identity across runs and machines: kernel hash + canonical facts.
Digest keyDigest(const Digest &kernelHash, std::span<const schema::Fact> facts);

} // namespace pgkp::rt
