// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Serve.h"

#include "pgkp/Codegen/Driver.h"
#include "schema/Frame.h"
#include "schema/Module.h"

#include <ctime>
#include <sys/resource.h>

namespace pgkp::rt {

schema::JobStatus jobStatus(Code code) {
  switch (code) {
  case Code::invalidArgument:
  case Code::notFound:
  case Code::corrupt:
    return schema::JobStatus::bad_input;
  case Code::unsupported:
    return schema::JobStatus::unsupported;
  default:
    return schema::JobStatus::internal;
  }
}

static double cpuMs() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
}

template <typename Vector>
static std::vector<uint8_t> copyBytes(const Vector *bytes) {
  return bytes ? std::vector<uint8_t>(bytes->begin(), bytes->end())
               : std::vector<uint8_t>();
}

static Expected<std::vector<uint8_t>>
compile(mlir::pgkp::HostCompiler &compiler,
        const schema::CompileRequest &request) {
  mlir::pgkp::VariantRequest variant;
  variant.kernel = request.kernel()->str();
  if (request.kernel_hash())
    variant.kernelHash = toDigest(*request.kernel_hash());
  if (request.content_key())
    variant.contentKey = toDigest(*request.content_key());
  variant.module = copyBytes(request.bytecode());
  if (request.facts())
    for (const schema::Fact *fact : *request.facts())
      variant.facts.push_back(*fact);
  variant.config = request.config();
  request.target()->UnPackTo(&variant.target);
  variant.format = request.format();
  variant.pipeline = request.pipeline();
  PGKP_ASSIGN(schema::ArtifactT artifact, compiler.compile(variant));
  flatbuffers::FlatBufferBuilder builder(artifact.code.size() + 4096);
  schema::FinishArtifactBuffer(builder,
                               schema::Artifact::Pack(builder, &artifact));
  return std::vector<uint8_t>(builder.GetBufferPointer(),
                              builder.GetBufferPointer() + builder.GetSize());
}

static Expected<std::vector<uint8_t>>
bundle(mlir::pgkp::HostCompiler &compiler,
       const schema::BundleRequest &request) {
  std::vector<schema::TargetT> targets;
  if (request.targets())
    for (const schema::Target *target : *request.targets())
      target->UnPackTo(&targets.emplace_back());
  PGKP_ASSIGN(schema::BundleT result,
              compiler.buildBundle(request.name()->str(),
                                   copyBytes(request.module_()), targets,
                                   copyBytes(request.profile())));
  flatbuffers::FlatBufferBuilder builder(1 << 20);
  schema::FinishBundleBuffer(builder, schema::Bundle::Pack(builder, &result));
  return std::vector<uint8_t>(builder.GetBufferPointer(),
                              builder.GetBufferPointer() + builder.GetSize());
}

std::vector<uint8_t> answer(mlir::pgkp::HostCompiler &compiler,
                            std::span<const uint8_t> frame) {
  const double start = cpuMs();
  schema::ResponseT response;
  response.producer = mlir::pgkp::getProducer();
  auto finish = [&](Expected<std::vector<uint8_t>> result,
                    std::vector<uint8_t> &field) {
    if (result) {
      field = std::move(*result);
      return;
    }
    response.status = jobStatus(result.error().code);
    response.message = result.error().message;
  };

  flatbuffers::Verifier verifier(frame.data(), frame.size());
  if (frame.size() < 8 || !schema::VerifyRequestMessageBuffer(verifier)) {
    response.status = schema::JobStatus::bad_input;
    response.message = "the request does not verify";
  } else {
    const schema::RequestMessage &message =
        *schema::GetRequestMessage(frame.data());
    switch (message.request_type()) {
    case schema::Request::CompileRequest: {
      const auto &request = *message.request_as_CompileRequest();
      response.job = request.job();
      finish(compile(compiler, request), response.artifact);
      break;
    }
    case schema::Request::BundleRequest: {
      const auto &request = *message.request_as_BundleRequest();
      response.job = request.job();
      finish(bundle(compiler, request), response.bundle);
      break;
    }
    case schema::Request::PingRequest:
      response.job = message.request_as_PingRequest()->job();
      break;
    default:
      response.status = schema::JobStatus::bad_input;
      response.message = "unknown kind of request";
    }
  }
  response.cpu_ms = static_cast<float>(cpuMs() - start);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  response.peak_rss_kib = static_cast<uint64_t>(usage.ru_maxrss);

  schema::ResponseMessageT message;
  message.response = std::make_unique<schema::ResponseT>(std::move(response));
  flatbuffers::FlatBufferBuilder builder(4096);
  builder.Finish(schema::ResponseMessage::Pack(builder, &message));
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

Status serve(int fd) {
  mlir::pgkp::HostCompiler compiler;
  while (true) {
    Expected<std::vector<uint8_t>> request = readFrame(fd);
    if (!request) {
      if (request.error().code == Code::notFound)
        return {}; // the runtime is done with us
      return tl::unexpected<Error>(request.error());
    }
    PGKP_TRY(writeFrame(fd, answer(compiler, *request)));
  }
}

} // namespace pgkp::rt
