// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Speaks the worker's protocol and compiles nothing: the kernel's or bundle's
// name says how it is to behave. A bundle's "module" is answered as the bundle
// itself.
#include "base/Digest.h"
#include "schema/Frame.h"
#include "schema/wire_generated.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fstream>
#include <iterator>
#include <sched.h>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

using namespace pgkp;
using namespace pgkp::rt;

namespace {

constexpr const char *kProducer = "test worker 1";
int socketFd = -1;

std::string openDescriptors() {
  std::string text;
  DIR *directory = opendir("/proc/self/fd");
  while (const dirent *entry = readdir(directory))
    if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(directory))
      text += std::string(text.empty() ? "" : ",") + entry->d_name;
  closedir(directory);
  return text;
}

std::string environmentText() {
  std::string text;
  for (char **variable = environ; *variable; ++variable)
    text += std::string(*variable) + ";";
  return text;
}

std::string processText() {
  rlimit core{}, memory{};
  getrlimit(RLIMIT_CORE, &core);
  getrlimit(RLIMIT_AS, &memory);
  int parentDeath = 0;
  prctl(PR_GET_PDEATHSIG, &parentDeath);
  sigset_t mask;
  sigprocmask(SIG_BLOCK, nullptr, &mask);
  return fmt::format(
      "scheduler={} nice={} io={} core={} memory={} death={} privileges={} "
      "leader={} blocked={} sigusr1={}",
      sched_getscheduler(0), getpriority(PRIO_PROCESS, 0),
      syscall(SYS_ioprio_get, 1, 0) >> 13, core.rlim_cur,
      memory.rlim_cur == RLIM_INFINITY ? 0 : memory.rlim_cur >> 20, parentDeath,
      prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), getpgrp() == getpid(),
      sigismember(&mask, SIGTERM), signal(SIGUSR1, SIG_DFL) == SIG_DFL);
}

/// Which calls the sandbox refuses: "inet=1 unix=0 keyctl=1".
std::string sandboxText() {
  auto refused = [](long result) { return result < 0 && errno == EPERM; };
  return fmt::format(
      "inet={:d} unix={:d} keyctl={:d}",
      refused(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0)),
      refused(syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0)),
      // KEYCTL_GET_KEYRING_ID of the process's own keyring, not to be made.
      refused(syscall(SYS_keyctl, 0, -2, 0, 0, 0)));
}

std::vector<uint8_t> readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A word that tells how to behave from now on, for tests that change their
/// mind: $TMPDIR/worker-mode.
std::string modeFromFile() {
  const char *directory = getenv("TMPDIR");
  const auto word = directory
                        ? readFile(std::string(directory) + "/worker-mode")
                        : std::vector<uint8_t>();
  return {word.begin(), word.end()};
}

/// Code that computes, of one class: tests/devices/fixtures/variant.c with its
/// build id and class filled in.
std::vector<uint8_t> variantCode(const schema::ArtifactT &artifact) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  const std::string path(self, length > 0 ? static_cast<size_t>(length) : 0);
  std::vector<uint8_t> code = readFile(path.substr(0, path.rfind('/')) +
                                       "/fixtures/fixture_variant.so");
  auto put = [&](std::string_view pattern, size_t offset, const void *bytes,
                 size_t size) {
    const auto at = std::search(
        code.begin(), code.end(), pattern.begin(), pattern.end(),
        [](uint8_t l, char r) { return l == static_cast<uint8_t>(r); });
    if (at == code.end())
      _exit(5);
    std::memcpy(&*at + offset, bytes, size);
  };
  std::string id("\x05\xab\xcd", 3);
  id.resize(32);
  put(id, 0, artifact.content_key->bytes()->data(), 32);
  int64_t bounds[3] = {0, INT64_MAX, 1};
  for (const schema::Fact &fact : artifact.facts) {
    if (fact.kind() == schema::FactKind::divisible) {
      bounds[2] = fact.a();
      continue;
    }
    bounds[0] = fact.a();
    bounds[1] = fact.kind() == schema::FactKind::eq ? fact.a() : fact.b();
  }
  put("PGKPFACT", 8, bounds, sizeof bounds);
  return code;
}

std::vector<uint8_t> packArtifact(const schema::CompileRequest &request,
                                  const std::string &how) {
  schema::ArtifactT artifact;
  schema::CompileRequestT table;
  request.UnPackTo(&table);
  artifact.content_key = std::move(table.content_key);
  artifact.kernel_hash = std::move(table.kernel_hash);
  artifact.kernel = table.kernel;
  artifact.facts = table.facts;
  artifact.config = std::move(table.config);
  artifact.target = std::move(table.target);
  artifact.format = table.format;
  artifact.symbol = "pgkp_kernel";
  artifact.producer = kProducer;
  if (artifact.kernel == "axpy")
    artifact.code = variantCode(artifact);
  else
    artifact.code.assign(how == "big" ? 8'000'000 : 100, 0x42);
  artifact.code_hash = std::make_unique<schema::Digest>(
      flatbuffers::span<const uint8_t, 32>(hashBytes(artifact.code).bytes));
  if (how == "wrong-key") {
    std::array<uint8_t, 32> other{};
    artifact.content_key = std::make_unique<schema::Digest>(
        flatbuffers::span<const uint8_t, 32>(other));
  }
  if (how == "wrong-code")
    artifact.code[7] ^= 1;
  if (how == "wrong-kernel")
    artifact.kernel = "other";
  if (how == "wrong-facts")
    artifact.facts.emplace_back(schema::FactKind::eq, 0, 77, 0);
  if (how == "wrong-format")
    artifact.format = schema::CodeFormat::cubin;
  flatbuffers::FlatBufferBuilder builder;
  schema::FinishArtifactBuffer(builder,
                               schema::Artifact::Pack(builder, &artifact));
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

void answer(schema::ResponseT response) {
  if (response.producer.empty())
    response.producer = kProducer;
  schema::ResponseMessageT message;
  message.response = std::make_unique<schema::ResponseT>(std::move(response));
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(schema::ResponseMessage::Pack(builder, &message));
  if (!writeFrame(socketFd, {builder.GetBufferPointer(), builder.GetSize()}))
    _exit(4);
}

void raw(const void *bytes, size_t size) {
  if (write(socketFd, bytes, size) != static_cast<ssize_t>(size))
    _exit(4);
}

void burn(double seconds) {
  const clock_t end = clock() + static_cast<clock_t>(seconds * CLOCKS_PER_SEC);
  while (clock() < end)
    ;
}

/// What ends or blocks the process, or answers something else.
/// \returns true if no proper answer is to follow.
bool misbehave(const std::string &how) {
  if (how == "die")
    raise(SIGKILL);
  if (how == "abort") {
    fprintf(stderr, "LLVM ERROR: out of registers\nStack dump:\n0. nothing\n");
    fflush(stderr);
    signal(SIGABRT, SIG_DFL);
    abort();
  }
  if (how == "exit")
    _exit(3);
  if (how == "burn-and-die") {
    burn(0.2);
    raise(SIGKILL);
  }
  if (how == "hang")
    for (;;)
      pause();
  if (how == "stop")
    raise(SIGSTOP);
  if (how == "grandchild") {
    if (fork() == 0)
      for (;;)
        pause();
    for (;;)
      pause();
  }
  if (how == "close") {
    close(socketFd);
    for (;;)
      pause();
  }
  if (how == "no-frame") {
    raw("these are 26 bytes of text", 26);
    return true;
  }
  if (how == "garbage") {
    std::vector<uint8_t> bytes(1000);
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<uint8_t>(i * 2654435761u >> 7);
    return writeFrame(socketFd, bytes).has_value();
  }
  if (how == "huge") {
    FrameHeader header;
    header.size = uint64_t{1} << 40;
    raw(&header, sizeof header);
    return true;
  }
  if (how == "truncated") {
    FrameHeader header;
    header.size = 1000;
    raw(&header, sizeof header);
    raw("start", 5);
    _exit(0);
  }
  return false;
}

void handle(const schema::RequestMessage &message) {
  schema::ResponseT response;
  if (const auto *ping = message.request_as_PingRequest()) {
    response.job = ping->job();
    return answer(std::move(response));
  }
  if (const auto *request = message.request_as_BundleRequest()) {
    const std::string how = request->name()->str();
    response.job = request->job();
    if (misbehave(how.substr(0, how.find('.'))))
      return;
    response.bundle.assign(request->module_()->begin(),
                           request->module_()->end());
    if (how == "bad.mlir") {
      response.status = schema::JobStatus::bad_input;
      response.message = "bad.mlir:3:7: expected operation name";
    }
    return answer(std::move(response));
  }
  const schema::CompileRequest &request = *message.request_as_CompileRequest();
  const std::string mode = modeFromFile();
  const std::string how = mode.empty() ? request.kernel()->str() : mode;
  response.job = request.job();
  response.cpu_ms = 1;
  response.peak_rss_kib = 1000;
  if (misbehave(how))
    return;
  if (how == "slow")
    usleep(100'000);
  if (how == "burn")
    burn(0.2);
  if (how == "lying")
    response.cpu_ms = 1e30f;
  if (how == "fat")
    response.peak_rss_kib = uint64_t{1} << 40;
  if (how == "reject") {
    response.status = schema::JobStatus::bad_input;
    response.message = "kernel has\nno body\x1b[31m";
    return answer(std::move(response));
  }
  if (how == "environment" || how == "descriptors" || how == "process" ||
      how == "sandbox") {
    response.status = schema::JobStatus::unsupported;
    response.message = how == "environment"   ? environmentText()
                       : how == "descriptors" ? openDescriptors()
                       : how == "sandbox"     ? sandboxText()
                                              : processText();
    return answer(std::move(response));
  }
  if (how == "skewed")
    response.producer = "test worker 2";
  if (how == "wait-urgent") // until somebody raises us
    for (int i = 0; i < 2000 && sched_getscheduler(0) != SCHED_OTHER; ++i)
      usleep(10'000);
  if (how == "wrong-job")
    ++response.job;
  if (how == "empty")
    return answer(std::move(response));
  if (how == "wrong-status")
    response.status = static_cast<schema::JobStatus>(99);
  response.artifact = packArtifact(request, how);
  if (how == "twice") {
    schema::ResponseT again = response;
    answer(std::move(again));
  }
  answer(std::move(response));
  if (how == "answer-and-die")
    raise(SIGKILL);
}

} // namespace

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i)
    if (strncmp(argv[i], "--fd=", 5) == 0)
      socketFd = atoi(argv[i] + 5);
  if (socketFd < 0)
    return 2;
  for (;;) {
    Expected<std::vector<uint8_t>> frame = readFrame(socketFd);
    if (!frame)
      return frame.error().code == Code::notFound ? 0 : 1;
    flatbuffers::Verifier verifier(frame->data(), frame->size());
    if (!schema::VerifyRequestMessageBuffer(verifier))
      return 1;
    handle(*schema::GetRequestMessage(frame->data()));
  }
}
