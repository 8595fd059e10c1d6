// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "schema/ContentKey.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace pgkp::rt {

// Grows when the meaning of a hashed field changes.
static constexpr int64_t kKeyVersion = 1;

static auto order(const schema::Fact &f) {
  return std::tuple(f.dim(), static_cast<int>(f.kind()), f.a(), f.b());
}

std::vector<schema::Fact> canonicalFacts(std::span<const schema::Fact> facts) {
  std::vector<schema::Fact> result;
  result.reserve(facts.size());
  for (const schema::Fact &f : facts) {
    if (f.kind() == schema::FactKind::divisible && f.a() == 1)
      continue; // holds always
    result.emplace_back(f.kind(), f.dim(), f.a(),
                        f.kind() == schema::FactKind::range ? f.b() : 0);
  }
  std::sort(result.begin(), result.end(),
            [](const auto &l, const auto &r) { return order(l) < order(r); });
  result.erase(std::unique(result.begin(), result.end(),
                           [](const auto &l, const auto &r) {
                             return order(l) == order(r);
                           }),
               result.end());
  return result;
}

static void addFacts(Hasher &hasher, std::span<const schema::Fact> facts) {
  const std::vector<schema::Fact> canonical = canonicalFacts(facts);
  hasher.add(static_cast<int64_t>(canonical.size()));
  for (const schema::Fact &f : canonical)
    hasher.add(int64_t{f.dim()})
        .add(static_cast<int64_t>(f.kind()))
        .add(f.a())
        .add(f.b());
}

static std::string_view view(const flatbuffers::String *text) {
  return text ? std::string_view(text->c_str(), text->size())
              : std::string_view();
}

static void addConfig(Hasher &hasher, const schema::Config *config) {
  std::vector<const schema::ConfigItem *> items;
  if (config && config->items())
    items.assign(config->items()->begin(), config->items()->end());
  std::stable_sort(items.begin(), items.end(), [](auto *l, auto *r) {
    return view(l->name()) < view(r->name());
  });
  hasher.add(static_cast<int64_t>(items.size()));
  for (const schema::ConfigItem *item : items) {
    hasher.add(view(item->name())).add(static_cast<int64_t>(item->kind()));
    if (item->kind() == schema::ConfigValueKind::integer)
      hasher.add(item->integer());
    else
      hasher.add(view(item->text()));
  }
}

static void addTerms(Hasher &hasher, const Digest &kernelHash,
                     std::span<const schema::Fact> facts,
                     const schema::Config *config, const schema::Target &target,
                     schema::CodeFormat format, schema::Pipeline pipeline) {
  hasher.add(kKeyVersion).add(kernelHash.bytes);
  addFacts(hasher, facts);
  addConfig(hasher, config);
  hasher.add(static_cast<int64_t>(target.device()))
      .add(view(target.chip()))
      .add(view(target.features()))
      .add(static_cast<int64_t>(format))
      .add(static_cast<int64_t>(pipeline));
}

Digest contentKey(const Digest &kernelHash, std::span<const schema::Fact> facts,
                  const schema::Config *config, const schema::Target &target,
                  schema::CodeFormat format, schema::Pipeline pipeline,
                  std::string_view producer) {
  Hasher hasher;
  hasher.add(std::string_view("pgkp content key"));
  addTerms(hasher, kernelHash, facts, config, target, format, pipeline);
  return hasher.add(producer).finish();
}

Digest recipeKey(const Digest &kernelHash, std::span<const schema::Fact> facts,
                 const schema::Config *config, const schema::Target &target,
                 schema::CodeFormat format, schema::Pipeline pipeline) {
  Hasher hasher;
  hasher.add(std::string_view("pgkp recipe"));
  addTerms(hasher, kernelHash, facts, config, target, format, pipeline);
  return hasher.finish();
}

Digest contentKeyOf(const schema::Artifact &artifact) {
  std::vector<schema::Fact> facts;
  if (artifact.facts())
    for (const schema::Fact *fact : *artifact.facts())
      facts.push_back(*fact);
  Digest hash;
  if (artifact.kernel_hash())
    std::copy(artifact.kernel_hash()->bytes()->begin(),
              artifact.kernel_hash()->bytes()->end(), hash.bytes.begin());
  return contentKey(hash, facts, artifact.config(), *artifact.target(),
                    artifact.format(), artifact.pipeline(),
                    view(artifact.producer()));
}

Digest keyDigest(const Digest &kernelHash,
                 std::span<const schema::Fact> facts) {
  Hasher hasher;
  hasher.add(std::string_view("pgkp key"))
      .add(kKeyVersion)
      .add(kernelHash.bytes);
  addFacts(hasher, facts);
  return hasher.finish();
}

} // namespace pgkp::rt
