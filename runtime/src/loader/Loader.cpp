// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "loader/Loader.h"

#include <algorithm>
#include <utility>

namespace pgkp::rt {
namespace {

bool sameFacts(const flatbuffers::Vector<const schema::Fact *> *stored,
               std::span<const schema::Fact> expected) {
  if (!stored)
    return expected.empty();
  return std::equal(
      stored->begin(), stored->end(), expected.begin(), expected.end(),
      [](const schema::Fact *a, const schema::Fact &b) {
        return a->kind() == b.kind() && a->dim() == b.dim() &&
               a->a() == b.a() &&
               (b.kind() != schema::FactKind::range || a->b() == b.b());
      });
}

/// Everything that must hold of the bytes before the device sees them.
Expected<const schema::Artifact *> verify(const LoadRequest &request) {
  flatbuffers::Verifier verifier(request.artifact.data(),
                                 request.artifact.size());
  if (!schema::VerifyArtifactBuffer(verifier))
    return makeError(Code::corrupt, "key {}: artifact does not verify",
                     request.key);
  const schema::Artifact *artifact =
      schema::GetArtifact(request.artifact.data());
  const std::string name = artifact->kernel()->str();
  if (!artifact->content_key() || !artifact->code_hash() ||
      !artifact->kernel_hash())
    return makeError(Code::corrupt,
                     "kernel '{}': artifact lacks a key or a checksum", name);
  if (toDigest(*artifact->kernel_hash()) != request.kernelHash)
    return makeError(
        Code::corrupt, "kernel '{}': artifact is for kernel {}, expected {}",
        name, toDigest(*artifact->kernel_hash()).hex().substr(0, 16),
        request.kernelHash.hex().substr(0, 16));
  if (!sameFacts(artifact->facts(), request.facts))
    return makeError(Code::corrupt,
                     "kernel '{}': artifact is for another class, expected {}",
                     name, toString(request.facts));
  if (hashBytes({artifact->code()->data(), artifact->code()->size()}) !=
      toDigest(*artifact->code_hash()))
    return makeError(Code::corrupt, "kernel '{}': code checksum differs", name);
  return artifact;
}

} // namespace

Loader::Loader(Device &device, DispatchTable &table, const Clock &clock,
               const Activity &activity, LoaderOptions options)
    : device(device), table(table), clock(clock), activity(activity),
      options(options), graveyard(std::make_shared<Graveyard>()) {}

Loader::~Loader() {
  std::vector<std::unique_ptr<const Image>> dead;
  std::lock_guard lock(graveyard->mutex);
  graveyard->open = false;
  dead.swap(graveyard->images);
}

void Loader::submit(LoadRequest request) {
  std::lock_guard lock(mutex);
  queue.push_back({std::move(request), clock.now()});
}

bool Loader::demand(KeyId key) {
  std::lock_guard lock(mutex);
  bool found = false;
  for (Waiting &waiting : queue)
    if (waiting.request.key == key)
      waiting.request.demanded = found = true;
  return found;
}

size_t Loader::cancel(KeyId key) {
  std::lock_guard lock(mutex);
  return std::erase_if(queue, [&](const Waiting &waiting) {
    return waiting.request.key == key;
  });
}

size_t Loader::waiting() const {
  std::lock_guard lock(mutex);
  return queue.size();
}

LoaderCounts Loader::counts() const {
  std::lock_guard lock(mutex);
  return count;
}

bool Loader::mayDrain(TimeNs now, const std::deque<Waiting> &waiting) const {
  if (!device.loadDrains() || activity.idle())
    return true;
  return std::any_of(waiting.begin(), waiting.end(), [&](const Waiting &entry) {
    return entry.request.demanded || now - entry.since >= options.maxDefer;
  });
}

PumpResult Loader::pump() {
  PumpResult result;
  // Images of reclaimed variants go to the graveyard.
  table.collect();

  const TimeNs begin = clock.now();
  std::deque<Waiting> ready;
  {
    std::lock_guard lock(mutex);
    if (!mayDrain(begin, queue)) {
      for (Waiting &waiting : queue)
        if (!std::exchange(waiting.deferred, true)) {
          ++count.deferred;
          result.deferred.push_back(waiting.request.key);
        }
      return result;
    }
    ready.swap(queue);
  }

  std::vector<std::unique_ptr<const Image>> dead;
  {
    std::lock_guard lock(graveyard->mutex);
    dead.swap(graveyard->images);
  }
  const size_t unloaded = dead.size();
  dead.clear();

  uint64_t window = 0;
  if (!ready.empty()) {
    std::lock_guard lock(mutex);
    window = ++count.windows;
  }
  uint64_t failed = 0;
  for (Waiting &waiting : ready) {
    LoadRequest &request = waiting.request;
    LoadResult load{request.kernel, request.key, window,
                    clock.now(),    0,           this->load(request)};
    if (load.variant && request.publish)
      if (Status status = table.publish(request.kernel, *load.variant); !status)
        load.variant = tl::unexpected<Error>(std::move(status.error()));
    load.end = clock.now();
    failed += !load.variant;
    result.loads.push_back(std::move(load));
  }

  std::lock_guard lock(mutex);
  count.unloaded += unloaded;
  count.failed += failed;
  if (!ready.empty())
    count.windowTime += clock.now() - begin;
  return result;
}

Expected<Variant> Loader::load(LoadRequest &request) {
  PGKP_ASSIGN(const schema::Artifact *artifact, verify(request));
  Variant variant;
  variant.key = request.key;
  PGKP_ASSIGN(variant.workspace,
              Expr::parse(artifact->workspace(), request.numExtents));
  PGKP_ASSIGN(variant.image, imageFor(*artifact));
  variant.facts = std::move(request.facts);
  variant.nsPerUse = request.nsPerUse;
  variant.gain = request.gain;
  return variant;
}

Expected<std::shared_ptr<const Image>>
Loader::imageFor(const schema::Artifact &artifact) {
  const Digest key = toDigest(*artifact.content_key());
  if (auto known = images.find(key); known != images.end()) {
    if (auto image = known->second.lock()) {
      std::lock_guard lock(mutex);
      ++count.shared;
      return image;
    }
    images.erase(known);
  }
  PGKP_ASSIGN(std::unique_ptr<Image> loaded, device.load(artifact));
  std::shared_ptr<const Image> image(
      loaded.release(), [yard = graveyard](const Image *unused) {
        std::unique_ptr<const Image> owned(unused);
        std::lock_guard lock(yard->mutex);
        if (yard->open)
          yard->images.push_back(std::move(owned));
      });
  images.emplace(key, image);
  std::lock_guard lock(mutex);
  ++count.loaded;
  return image;
}

} // namespace pgkp::rt
