// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/ProfileFile.h"

#include "base/Log.h"
#include "schema/ContentKey.h"
#include "schema/Envelope.h"
#include "schema/Module.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

namespace pgkp::rt {

// Below this a key or root vector was seen long ago: 14 runs after its only
// one.
static constexpr double kForgotten = 0.05;
static constexpr size_t kMaxVector = 64;

static bool isAmount(double value) {
  return std::isfinite(value) && value >= 0;
}

static Status checkProfile(const schema::ProfileT &profile,
                           const std::string &path) {
  auto corrupt = [&](size_t index, const char *what) {
    return makeError(Code::corrupt, "'{}': entry {} of the profile has {}",
                     path, index, what);
  };
  if (profile.keys.size() > kMaxProfileKeys ||
      profile.roots.size() > kMaxProfileKeys || !isAmount(profile.runs))
    return makeError(Code::corrupt, "'{}': profile has impossible counts",
                     path);
  for (size_t i = 0; i < profile.keys.size(); ++i) {
    const schema::KeyProfileT &key = *profile.keys[i];
    if (!key.kernel_hash)
      return corrupt(i, "no kernel hash");
    if (!isAmount(key.first_use_s) || !isAmount(key.uses) ||
        !isAmount(key.rate) || !isAmount(key.runs_used) ||
        !isAmount(key.compile_ms) || !isAmount(key.load_ms) ||
        !isAmount(key.generic_ns) || !isAmount(key.variant_ns))
      return corrupt(i, "a negative or infinite amount");
    if (key.facts.size() > kMaxVector || key.sample_extents.size() > kMaxVector)
      return corrupt(i, "too many facts or extents");
    for (const schema::Fact &fact : key.facts)
      if (fact.kind() > schema::FactKind::MAX)
        return corrupt(i, "an unknown kind of fact");
  }
  for (size_t i = 0; i < profile.roots.size(); ++i)
    if (!isAmount(profile.roots[i]->count) ||
        profile.roots[i]->roots.size() > kMaxVector)
      return corrupt(i, "an impossible root vector");
  return {};
}

Expected<schema::ProfileT> parseProfile(std::vector<uint8_t> payload,
                                        const std::string &what) {
  flatbuffers::Verifier verifier(payload.data(), payload.size());
  if (payload.size() < 8 || !schema::VerifyProfileBuffer(verifier))
    return makeError(Code::corrupt, "'{}': profile does not verify", what);
  const schema::Profile *table = schema::GetProfile(payload.data());
  if (table->format_version() != kFormatVersion)
    return makeError(Code::unsupported,
                     "'{}': profile has format version {}, this build reads {}",
                     what, table->format_version(), kFormatVersion);
  schema::ProfileT profile;
  table->UnPackTo(&profile);
  PGKP_TRY(checkProfile(profile, what));
  return profile;
}

Expected<schema::ProfileT> loadProfile(const std::string &path) {
  PGKP_ASSIGN(std::vector<uint8_t> payload,
              readSealed(FileKind::profile, path));
  return parseProfile(std::move(payload), path);
}

std::vector<uint8_t> serializeProfile(const schema::ProfileT &profile) {
  flatbuffers::FlatBufferBuilder builder;
  schema::FinishProfileBuffer(builder,
                              schema::Profile::Pack(builder, &profile));
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

Status saveProfile(const std::string &path, const schema::ProfileT &profile) {
  return writeSealed(FileKind::profile, path, serializeProfile(profile));
}

static Digest keyOf(const schema::KeyProfileT &key) {
  return keyDigest(key.kernel_hash ? toDigest(*key.kernel_hash) : Digest(),
                   key.facts);
}

static bool sameModule(const schema::ProfileT &l, const schema::ProfileT &r) {
  return l.module_hash && r.module_hash &&
         toDigest(*l.module_hash) == toDigest(*r.module_hash);
}

static void mergeKey(schema::KeyProfileT &into, const schema::KeyProfileT &run,
                     double olderRuns, double runs) {
  const double used = into.runs_used + run.runs_used;
  if (used > 0)
    into.first_use_s =
        (into.first_use_s * into.runs_used + run.first_use_s * run.runs_used) /
        used;
  into.runs_used = used;
  into.uses = (into.uses * olderRuns + run.uses * runs) / (olderRuns + runs);
  into.rate = (into.rate * olderRuns + run.rate * runs) / (olderRuns + runs);
  into.kernel = run.kernel;
  auto newest = [](auto &value, auto measured) {
    if (measured > 0)
      value = measured;
  };
  newest(into.compile_ms, run.compile_ms);
  newest(into.load_ms, run.load_ms);
  newest(into.generic_ns, run.generic_ns);
  newest(into.variant_ns, run.variant_ns);
  if (!run.sample_extents.empty())
    into.sample_extents = run.sample_extents;
}

static void mergeKeys(schema::ProfileT &result, const schema::ProfileT &older,
                      const schema::ProfileT &run, double olderRuns,
                      double runs) {
  std::unordered_map<Digest, size_t, DigestHash> index;
  auto &keys = result.keys;
  for (const auto &key : older.keys) {
    if (!index.emplace(keyOf(*key), keys.size()).second)
      continue;
    keys.push_back(std::make_unique<schema::KeyProfileT>(*key));
    keys.back()->runs_used *= kProfileAging;
  }
  std::vector<bool> seen(keys.size());
  for (const auto &key : run.keys) {
    schema::KeyProfileT one = *key;
    // A key that the run lists without a count was used in it.
    if (one.runs_used <= 0 && one.uses > 0)
      one.runs_used = runs;
    auto [it, isNew] = index.emplace(keyOf(one), keys.size());
    if (isNew) {
      one.uses = one.uses * runs / (olderRuns + runs);
      one.rate = one.rate * runs / (olderRuns + runs);
      keys.push_back(std::make_unique<schema::KeyProfileT>(std::move(one)));
      seen.push_back(true);
    } else if (!seen[it->second]) {
      seen[it->second] = true;
      mergeKey(*keys[it->second], one, olderRuns, runs);
    }
  }
  for (size_t i = 0; i < keys.size(); ++i)
    if (!seen[i]) { // not used in this run
      keys[i]->uses *= olderRuns / (olderRuns + runs);
      keys[i]->rate *= olderRuns / (olderRuns + runs);
    }
  std::erase_if(keys, [](const auto &k) { return k->runs_used < kForgotten; });
  if (keys.size() > kMaxProfileKeys) {
    std::stable_sort(keys.begin(), keys.end(),
                     [](const auto &l, const auto &r) {
                       return std::pair(l->runs_used, l->uses) >
                              std::pair(r->runs_used, r->uses);
                     });
    keys.resize(kMaxProfileKeys);
  }
  std::stable_sort(keys.begin(), keys.end(), [](const auto &l, const auto &r) {
    return std::pair(l->first_use_s, l->first_use_rank) <
           std::pair(r->first_use_s, r->first_use_rank);
  });
  for (size_t i = 0; i < keys.size(); ++i)
    keys[i]->first_use_rank = static_cast<uint32_t>(i);
}

static void mergeRoots(schema::ProfileT &result, const schema::ProfileT &older,
                       const schema::ProfileT &run) {
  std::map<std::pair<std::string, std::vector<int64_t>>, double> counts;
  if (sameModule(older, run))
    for (const auto &roots : older.roots)
      counts[{roots->entry, roots->roots}] += kProfileAging * roots->count;
  for (const auto &roots : run.roots)
    counts[{roots->entry, roots->roots}] += roots->count;
  for (const auto &[roots, count] : counts) {
    if (count < kForgotten)
      continue;
    result.roots.push_back(std::make_unique<schema::RootCountT>());
    result.roots.back()->entry = roots.first;
    result.roots.back()->roots = roots.second;
    result.roots.back()->count = count;
  }
  std::stable_sort(
      result.roots.begin(), result.roots.end(),
      [](const auto &l, const auto &r) { return l->count > r->count; });
  if (result.roots.size() > kMaxProfileRoots)
    result.roots.resize(kMaxProfileRoots);
}

/// Times of another device say nothing about this one.
static void dropForeignTimes(schema::ProfileT &result,
                             const schema::ProfileT &run) {
  const auto digest = [](const schema::KeyProfileT &key) {
    return keyDigest(key.kernel_hash ? toDigest(*key.kernel_hash) : Digest{},
                     key.facts);
  };
  std::set<Digest> measured;
  for (const auto &key : run.keys)
    if (key->generic_ns > 0)
      measured.insert(digest(*key));
  for (const auto &key : result.keys)
    if (!measured.count(digest(*key)))
      key->generic_ns = key->variant_ns = 0;
}

schema::ProfileT mergeProfiles(const schema::ProfileT &older,
                               const schema::ProfileT &run) {
  const double runs = run.runs > 0 ? run.runs : 1;
  const double olderRuns = kProfileAging * older.runs;
  schema::ProfileT result;
  result.format_version = kFormatVersion;
  if (run.module_hash)
    result.module_hash = std::make_unique<schema::Digest>(*run.module_hash);
  result.runs = olderRuns + runs;
  result.device = run.device;
  mergeKeys(result, older, run, olderRuns, runs);
  if (older.device != run.device)
    dropForeignTimes(result, run);
  mergeRoots(result, older, run);
  return result;
}

Status saveProfileMerged(const std::string &path, const schema::ProfileT &run) {
  schema::ProfileT older;
  if (Expected<schema::ProfileT> found = loadProfile(path))
    older = std::move(*found);
  else if (found.error().code == Code::corrupt ||
           found.error().code == Code::unsupported)
    log(LogLevel::warning, "{}; it is replaced", found.error().message);
  else if (found.error().code != Code::notFound)
    return tl::unexpected<Error>(found.error());
  return saveProfile(path, mergeProfiles(older, run));
}

} // namespace pgkp::rt
