// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "history/ProfileRecorder.h"

#include "schema/ContentKey.h"
#include "schema/Envelope.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <map>

namespace pgkp::rt {

static std::unique_ptr<schema::Digest> packed(const Digest &digest) {
  return std::make_unique<schema::Digest>(
      flatbuffers::span<const uint8_t, 32>(digest.bytes));
}

ProfileRecorder::ProfileRecorder(std::shared_ptr<const Module> m)
    : module(std::move(m)), keys(module->keys().size()) {}

void ProfileRecorder::onRequest(uint32_t entry, std::span<const int64_t> roots,
                                TimeNs now) {
  if (entry >= module->entries().size())
    return;
  if (!begun)
    start = now;
  begun = true;
  size_t hash = entry;
  boost::hash_range(hash, roots.begin(), roots.end());
  // One place per hash: two vectors that collide are counted as the first of
  // them.
  if (auto it = requestIndex.find(hash); it != requestIndex.end()) {
    requests[it->second].count += 1;
  } else if (requests.size() < kMaxRoots) {
    requestIndex.emplace(hash, requests.size());
    requests.push_back({entry, {roots.begin(), roots.end()}, 1});
  }
}

void ProfileRecorder::onUse(KeyId id, TimeNs now,
                            std::span<const int64_t> extents) {
  if (id >= keys.size())
    return;
  if (!begun)
    start = now;
  begun = true;
  Key &key = keys[id];
  if (key.uses == 0) {
    key.first = now;
    key.rank = ranks++;
    key.extents.assign(extents.begin(), extents.end());
  }
  key.uses += 1;
}

void ProfileRecorder::onStageTimes(KeyId id, double compileMs, double loadMs) {
  if (id >= keys.size())
    return;
  if (compileMs > 0)
    keys[id].compileMs = static_cast<float>(compileMs);
  if (loadMs > 0)
    keys[id].loadMs = static_cast<float>(loadMs);
}

void ProfileRecorder::onKernelTimes(KeyId id, double genericNs,
                                    double variantNs) {
  if (id >= keys.size())
    return;
  if (genericNs > 0)
    keys[id].genericNs = genericNs;
  if (variantNs > 0)
    keys[id].variantNs = variantNs;
}

schema::ProfileT ProfileRecorder::merge(const schema::ProfileT *earlier,
                                        TimeNs now) const {
  schema::ProfileT out;
  out.format_version = kFormatVersion;
  out.module_hash = packed(module->hash());
  std::map<Digest, std::unique_ptr<schema::KeyProfileT>> byDigest;
  std::map<std::pair<std::string, std::vector<int64_t>>, double> roots;
  const double aging = begun ? kAging : 1;
  double earlierRuns = 0;
  if (earlier && earlier->module_hash &&
      toDigest(*earlier->module_hash) == module->hash()) {
    earlierRuns = earlier->runs * aging;
    for (const auto &key : earlier->keys) {
      if (!key || !key->kernel_hash)
        continue;
      auto copy = std::make_unique<schema::KeyProfileT>(*key);
      copy->runs_used *= aging;
      byDigest.insert_or_assign(
          keyDigest(toDigest(*key->kernel_hash), key->facts), std::move(copy));
    }
    for (const auto &request : earlier->roots)
      if (request)
        roots[{request->entry, request->roots}] += request->count * aging;
  }
  out.runs = earlierRuns + (begun ? 1 : 0);

  const double lasted = std::max(1e-3, toSeconds(now - start));
  for (KeyId id = 0; id < keys.size(); ++id) {
    const Key &key = keys[id];
    // A generic key needs no preparation.
    if (key.uses == 0 || module->isGeneric(id))
      continue;
    auto &slot = byDigest[module->keys()[id].digest];
    const KernelInfo &kernel = module->kernels()[module->keys()[id].kernel];
    if (!slot) {
      slot = std::make_unique<schema::KeyProfileT>();
      slot->kernel_hash = packed(kernel.hash);
      slot->kernel = kernel.name;
      const auto facts = module->facts(id);
      slot->facts.assign(facts.begin(), facts.end());
      slot->sample_extents = key.extents;
    }
    // Averages over the runs that used it, older ones weighing less.
    const double before = slot->runs_used, after = before + 1;
    auto average = [&](double old, double fresh) {
      return (old * before + fresh) / after;
    };
    slot->first_use_s =
        average(slot->first_use_s, std::max(0.0, toSeconds(key.first - start)));
    slot->uses = average(slot->uses, key.uses);
    slot->rate = average(slot->rate, key.uses / lasted);
    slot->first_use_rank = key.rank;
    slot->runs_used = after;
    if (key.compileMs > 0)
      slot->compile_ms = key.compileMs;
    if (key.loadMs > 0)
      slot->load_ms = key.loadMs;
    if (key.genericNs > 0)
      slot->generic_ns = key.genericNs;
    if (key.variantNs > 0)
      slot->variant_ns = key.variantNs;
  }
  for (auto &[digest, key] : byDigest)
    out.keys.push_back(std::move(key));
  if (out.keys.size() > kMaxKeys) {
    std::stable_sort(out.keys.begin(), out.keys.end(),
                     [](const auto &a, const auto &b) {
                       return a->runs_used * a->uses > b->runs_used * b->uses;
                     });
    out.keys.resize(kMaxKeys);
  }
  std::stable_sort(out.keys.begin(), out.keys.end(),
                   [](const auto &a, const auto &b) {
                     return a->first_use_s < b->first_use_s;
                   });

  for (const Roots &request : requests)
    roots[{module->entries()[request.entry].name, request.values}] +=
        request.count;
  for (const auto &[request, count] : roots) {
    auto entry = std::make_unique<schema::RootCountT>();
    entry->entry = request.first;
    entry->roots = request.second;
    entry->count = count;
    out.roots.push_back(std::move(entry));
  }
  std::stable_sort(
      out.roots.begin(), out.roots.end(),
      [](const auto &a, const auto &b) { return a->count > b->count; });
  if (out.roots.size() > kMaxRoots)
    out.roots.resize(kMaxRoots);
  return out;
}

} // namespace pgkp::rt
