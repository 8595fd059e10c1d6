// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Jobs for the worker: what is asked, and whether the answer is one to
/// it.
#pragma once

#include "prepare/Compiler.h"
#include "schema/manifest_generated.h"
#include "schema/recipe_generated.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pgkp::rt {

/// One variant of one kernel. Spans and pointers are read at once, not kept.
struct CompileSpec {
  Digest kernelHash;
  std::string kernel;
  std::span<const uint8_t> bytecode;
  std::span<const schema::Fact> facts;
  const schema::ConfigT *config = nullptr; ///< null: the worker's default
  schema::TargetT target;
  schema::CodeFormat format = schema::CodeFormat::elf;
  schema::Pipeline pipeline = schema::Pipeline::full;
  std::string_view producer; ///< CompileJob::producer
  size_t numDims = 64, numArgs = 65535;
};

/// schema/ContentKey.h for the unpacked form.
Digest contentKey(const CompileSpec &spec, std::string_view producer);

/// schema/ContentKey.h for the unpacked form.
Digest recipeKey(const CompileSpec &spec);

/// What the store keeps of it: its terms.
schema::RecipeT makeRecipe(const CompileSpec &spec, const Digest &contentKey,
                           const std::string &producer);

CompileJob makeCompileJob(JobId id, const Digest &contentKey,
                          const CompileSpec &spec, std::string label);

/// `profile`: a serialized Profile, may be empty.
CompileJob makeBundleJob(JobId id, const std::string &name,
                         std::span<const uint8_t> module,
                         std::span<const schema::TargetT> targets,
                         std::span<const uint8_t> profile);

/// Asks for the worker's identity; the result's payload is empty.
CompileJob makePingJob(JobId id);

/// Reads a worker's answer, which may be anything. On success outcome (done or
/// rejected), message, payload, cpuSeconds, peakRssKib and producer are set.
/// corrupt: it is no answer to this job; the worker cannot be trusted any more.
Expected<CompileResult> verifyAnswer(const CompileJob &job,
                                     std::span<const uint8_t> frame);

} // namespace pgkp::rt
