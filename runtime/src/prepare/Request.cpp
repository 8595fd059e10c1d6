// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "prepare/Request.h"

#include "schema/ContentKey.h"
#include "schema/Module.h"

#include <algorithm>
#include <cmath>

namespace pgkp::rt {

static constexpr size_t kMaxMessage = 2000;

static schema::Digest schemaDigest(const Digest &d) {
  return schema::Digest(flatbuffers::span<const uint8_t, 32>(d.bytes));
}

static std::vector<uint8_t>
bytesOf(const flatbuffers::FlatBufferBuilder &builder) {
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

namespace {
/// The tables of a spec as they lie in a buffer, for what hashes them.
struct PackedSpec {
  explicit PackedSpec(const CompileSpec &spec) {
    target.Finish(schema::Target::Pack(target, &spec.target));
    if (spec.config)
      config.Finish(schema::Config::Pack(config, spec.config));
    hasConfig = spec.config;
  }
  const schema::Config *getConfig() {
    return hasConfig
               ? flatbuffers::GetRoot<schema::Config>(config.GetBufferPointer())
               : nullptr;
  }
  const schema::Target &getTarget() {
    return *flatbuffers::GetRoot<schema::Target>(target.GetBufferPointer());
  }

private:
  flatbuffers::FlatBufferBuilder config, target;
  bool hasConfig;
};
} // namespace

Digest contentKey(const CompileSpec &spec, std::string_view producer) {
  PackedSpec packed(spec);
  return contentKey(spec.kernelHash, spec.facts, packed.getConfig(),
                    packed.getTarget(), spec.format, spec.pipeline, producer);
}

Digest recipeKey(const CompileSpec &spec) {
  PackedSpec packed(spec);
  return recipeKey(spec.kernelHash, spec.facts, packed.getConfig(),
                   packed.getTarget(), spec.format, spec.pipeline);
}

schema::RecipeT makeRecipe(const CompileSpec &spec, const Digest &contentKey,
                           const std::string &producer) {
  schema::RecipeT recipe;
  recipe.content_key =
      std::make_unique<schema::Digest>(schemaDigest(contentKey));
  recipe.kernel_hash =
      std::make_unique<schema::Digest>(schemaDigest(spec.kernelHash));
  recipe.kernel = spec.kernel;
  recipe.facts.assign(spec.facts.begin(), spec.facts.end());
  if (spec.config)
    recipe.config = std::make_unique<schema::ConfigT>(*spec.config);
  recipe.target = std::make_unique<schema::TargetT>(spec.target);
  recipe.format = spec.format;
  recipe.pipeline = spec.pipeline;
  recipe.producer = producer;
  return recipe;
}

static void finishRequest(flatbuffers::FlatBufferBuilder &builder,
                          schema::Request kind,
                          flatbuffers::Offset<void> request) {
  schema::FinishRequestMessageBuffer(
      builder, schema::CreateRequestMessage(builder, kind, request));
}

CompileJob makeCompileJob(JobId id, const Digest &contentKey,
                          const CompileSpec &spec, std::string label) {
  flatbuffers::FlatBufferBuilder builder(spec.bytecode.size() + 1024);
  const schema::Digest key = schemaDigest(contentKey),
                       hash = schemaDigest(spec.kernelHash);
  const auto kernel = builder.CreateString(spec.kernel);
  const auto bytecode =
      builder.CreateVector(spec.bytecode.data(), spec.bytecode.size());
  const auto facts =
      builder.CreateVectorOfStructs(spec.facts.data(), spec.facts.size());
  flatbuffers::Offset<schema::Config> config;
  if (spec.config)
    config = schema::Config::Pack(builder, spec.config);
  const auto target = schema::Target::Pack(builder, &spec.target);
  const auto request = schema::CreateCompileRequest(
      builder, id, &key, &hash, kernel, bytecode, facts, config, target,
      spec.format, spec.pipeline);
  finishRequest(builder, schema::Request::CompileRequest, request.Union());
  return {.id = id,
          .contentKey = contentKey,
          .label = std::move(label),
          .request = bytesOf(builder),
          .producer = std::string(spec.producer),
          .numDims = spec.numDims,
          .numArgs = spec.numArgs};
}

CompileJob makeBundleJob(JobId id, const std::string &name,
                         std::span<const uint8_t> module,
                         std::span<const schema::TargetT> targets,
                         std::span<const uint8_t> profile) {
  flatbuffers::FlatBufferBuilder builder(module.size() + profile.size() + 1024);
  std::vector<flatbuffers::Offset<schema::Target>> packed;
  for (const schema::TargetT &target : targets)
    packed.push_back(schema::Target::Pack(builder, &target));
  const auto request = schema::CreateBundleRequest(
      builder, id, builder.CreateString(name),
      builder.CreateVector(module.data(), module.size()),
      builder.CreateVector(packed),
      builder.CreateVector(profile.data(), profile.size()));
  finishRequest(builder, schema::Request::BundleRequest, request.Union());
  return {.id = id, .label = name, .request = bytesOf(builder)};
}

CompileJob makePingJob(JobId id) {
  flatbuffers::FlatBufferBuilder builder;
  const auto request = schema::CreatePingRequest(builder, id);
  finishRequest(builder, schema::Request::PingRequest, request.Union());
  return {.id = id, .label = "ping", .request = bytesOf(builder)};
}

// For a log line: no line breaks or terminal controls, not endless.
static std::string oneLine(const flatbuffers::String *text) {
  std::string line;
  if (!text)
    return line;
  for (char c : text->string_view().substr(0, kMaxMessage))
    line += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? ' ' : c;
  while (!line.empty() && line.back() == ' ')
    line.pop_back();
  return line;
}

static bool sameFacts(const flatbuffers::Vector<const schema::Fact *> *l,
                      const flatbuffers::Vector<const schema::Fact *> *r) {
  auto canonical = [](const auto *facts) {
    std::vector<schema::Fact> copy;
    if (facts)
      for (const schema::Fact *fact : *facts)
        copy.push_back(*fact);
    return canonicalFacts(copy);
  };
  const auto left = canonical(l), right = canonical(r);
  return left.size() == right.size() &&
         std::equal(left.begin(), left.end(), right.begin(),
                    [](const schema::Fact &a, const schema::Fact &b) {
                      return a.kind() == b.kind() && a.dim() == b.dim() &&
                             a.a() == b.a() && a.b() == b.b();
                    });
}

static Status checkAnswer(const CompileJob &job,
                          const schema::CompileRequest &request,
                          const std::vector<uint8_t> &bytes) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  if (bytes.size() < 8 || !schema::VerifyArtifactBuffer(verifier))
    return makeError(Code::corrupt, "the artifact does not verify");
  const schema::Artifact &artifact = *schema::GetArtifact(bytes.data());
  auto same = [](const schema::Digest *l, const schema::Digest *r) {
    return l && r && toDigest(*l) == toDigest(*r);
  };
  if (!same(artifact.content_key(), request.content_key()))
    return makeError(Code::corrupt, "the artifact has another content key");
  if (!same(artifact.kernel_hash(), request.kernel_hash()) ||
      artifact.kernel()->str() != request.kernel()->str() ||
      !sameFacts(artifact.facts(), request.facts()))
    return makeError(Code::corrupt,
                     "the artifact is of another kernel or class");
  if (artifact.format() != request.format() ||
      artifact.target()->device() != request.target()->device())
    return makeError(Code::corrupt, "the artifact is for another target");
  PGKP_TRY(checkArtifact(artifact, job.numDims, job.numArgs));
  if (!artifact.code_hash() ||
      toDigest(*artifact.code_hash()) !=
          hashBytes({artifact.code()->data(), artifact.code()->size()}))
    return makeError(Code::corrupt,
                     "the artifact's code is not what was hashed");
  return {};
}

Expected<CompileResult> verifyAnswer(const CompileJob &job,
                                     std::span<const uint8_t> frame) {
  flatbuffers::Verifier verifier(frame.data(), frame.size());
  if (frame.size() < 8 ||
      !verifier.VerifyBuffer<schema::ResponseMessage>(nullptr))
    return makeError(Code::corrupt, "the answer does not verify");
  const schema::Response &response =
      *flatbuffers::GetRoot<schema::ResponseMessage>(frame.data())->response();
  if (response.job() != job.id)
    return makeError(Code::corrupt, "the answer is to job {}, not to {}",
                     response.job(), job.id);
  if (response.status() > schema::JobStatus::MAX)
    return makeError(Code::corrupt, "the answer has unknown status {}",
                     static_cast<int>(response.status()));

  CompileResult result;
  result.id = job.id;
  result.contentKey = job.contentKey;
  result.producer = oneLine(response.producer());
  result.peakRssKib = response.peak_rss_kib();
  const double cpu = static_cast<double>(response.cpu_ms()) * 1e-3;
  result.cpuSeconds = std::isfinite(cpu) && cpu > 0 ? cpu : 0;
  if (response.status() != schema::JobStatus::ok) {
    result.outcome = JobOutcome::rejected;
    result.message = oneLine(response.message());
    if (result.message.empty())
      result.message = schema::EnumNameJobStatus(response.status());
    return result;
  }

  const schema::RequestMessage &message =
      *flatbuffers::GetRoot<schema::RequestMessage>(job.request.data());
  // Copied out first: nested buffers are not aligned for their own contents.
  auto take = [&](const flatbuffers::Vector<uint8_t> *bytes) {
    if (bytes)
      result.payload.assign(bytes->begin(), bytes->end());
  };
  switch (message.request_type()) {
  case schema::Request::CompileRequest:
    take(response.artifact());
    PGKP_TRY(
        checkAnswer(job, *message.request_as_CompileRequest(), result.payload));
    break;
  case schema::Request::BundleRequest:
    take(response.bundle());
    if (auto module = Module::load(result.payload); !module)
      return makeError(Code::corrupt, "{}", module.error().message);
    break;
  default:
    break;
  }
  result.outcome = JobOutcome::done;
  return result;
}

} // namespace pgkp::rt
