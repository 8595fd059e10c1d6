// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What outlives binaries: tuning results, recipes.
#include "store/StoreImpl.h"

#include "base/Log.h"
#include "schema/ContentKey.h"
#include "schema/Module.h"
#include "schema/tuning_generated.h"

#include <cmath>
#include <ctime>

namespace pgkp::rt {

static std::unique_ptr<schema::Digest> pack(const Digest &digest) {
  return std::make_unique<schema::Digest>(
      flatbuffers::span<const uint8_t, 32>(digest.bytes));
}

static Digest tuningKey(const Digest &contentKey, const std::string &device) {
  return Hasher()
      .add(std::string_view("pgkp tuning"))
      .add(contentKey.bytes)
      .add(device)
      .finish();
}

Expected<TuningResult> parseTuning(std::span<const uint8_t> bytes,
                                   const Digest *contentKey,
                                   const std::string *device) {
  const std::string name =
      contentKey ? "of " + contentKey->hex() : std::string("at hand");
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  if (bytes.size() < 8 || !schema::VerifyTuningBuffer(verifier))
    return makeError(Code::corrupt, "tuning record {} does not verify", name);
  schema::TuningT table;
  schema::GetTuning(bytes.data())->UnPackTo(&table);
  if (!table.content_key ||
      (contentKey && toDigest(*table.content_key) != *contentKey) ||
      (device && table.device != *device) ||
      table.format_version != kFormatVersion ||
      !std::isfinite(table.generic_ns) || table.generic_ns < 0 ||
      !std::isfinite(table.variant_ns) || table.variant_ns < 0)
    return makeError(Code::corrupt, "tuning record {} is of another variant",
                     name);
  return TuningResult{toDigest(*table.content_key),
                      table.key ? toDigest(*table.key) : Digest(),
                      table.device,
                      table.generic_ns,
                      table.variant_ns,
                      table.launches,
                      std::move(table.extents)};
}

Expected<TuningResult> Store::getTuning(const Digest &contentKey,
                                        const std::string &device) {
  const Digest key = tuningKey(contentKey, device);
  PGKP_ASSIGN(std::vector<uint8_t> bytes,
              impl->readSmall(kTuning, key, impl->tuning));
  Expected<TuningResult> result = parseTuning(bytes, &contentKey, &device);
  if (!result) {
    impl->reject(kTuning, key, result.error());
  }
  return result;
}

Status Store::putTuning(const TuningResult &result) {
  schema::TuningT table;
  table.format_version = kFormatVersion;
  table.content_key = pack(result.contentKey);
  table.key = pack(result.key);
  table.device = result.device;
  table.generic_ns = result.genericNs;
  table.variant_ns = result.variantNs;
  table.launches = result.launches;
  table.extents = result.extents;
  flatbuffers::FlatBufferBuilder builder;
  schema::FinishTuningBuffer(builder, schema::Tuning::Pack(builder, &table));
  const std::span<const uint8_t> bytes(builder.GetBufferPointer(),
                                       builder.GetSize());
  PGKP_TRY(parseTuning(bytes, &result.contentKey, &result.device));
  const Digest key = tuningKey(result.contentKey, result.device);
  {
    std::lock_guard lock(impl->mutex);
    impl->tuning[key].assign(bytes.begin(), bytes.end());
  }
  impl->write(kTuning, key, bytes);
  return {};
}

//===-- Recipes -----------------------------------------------------------===//

/// What the recipe's own terms give.
static Digest keyOf(const schema::RecipeT &recipe) {
  flatbuffers::FlatBufferBuilder config, target;
  target.Finish(schema::Target::Pack(target, recipe.target.get()));
  if (recipe.config)
    config.Finish(schema::Config::Pack(config, recipe.config.get()));
  return recipeKey(
      recipe.kernel_hash ? toDigest(*recipe.kernel_hash) : Digest(),
      recipe.facts,
      recipe.config
          ? flatbuffers::GetRoot<schema::Config>(config.GetBufferPointer())
          : nullptr,
      *flatbuffers::GetRoot<schema::Target>(target.GetBufferPointer()),
      recipe.format, recipe.pipeline);
}

Expected<schema::RecipeT> parseRecipe(std::span<const uint8_t> bytes,
                                      const Digest *key) {
  const std::string name = key ? key->hex() : std::string("at hand");
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  if (bytes.size() < 8 || !schema::VerifyRecipeBuffer(verifier))
    return makeError(Code::corrupt, "recipe {} does not verify", name);
  schema::RecipeT recipe;
  schema::GetRecipe(bytes.data())->UnPackTo(&recipe);
  if (recipe.format_version != kFormatVersion || (key && keyOf(recipe) != *key))
    return makeError(Code::corrupt, "recipe {} is of another variant", name);
  return recipe;
}

Expected<schema::RecipeT> Store::Impl::readRecipe(const Digest &key) {
  if (!disk)
    return makeError(Code::notFound, "a store in memory keeps no recipes");
  PGKP_ASSIGN(std::vector<uint8_t> bytes, disk->read(kRecipes, key));
  Expected<schema::RecipeT> recipe = parseRecipe(bytes, &key);
  if (!recipe)
    reject(kRecipes, key, recipe.error());
  return recipe;
}

void Store::Impl::writeRecipe(const Digest &key,
                              const schema::RecipeT &recipe) {
  flatbuffers::FlatBufferBuilder builder;
  schema::FinishRecipeBuffer(builder, schema::Recipe::Pack(builder, &recipe));
  // The disk tier says if it cannot; nothing depends on it.
  (void)disk->write(kRecipes, key,
                    {builder.GetBufferPointer(), builder.GetSize()});
}

Expected<schema::RecipeT> Store::getRecipe(const Digest &recipeKey) {
  return impl->readRecipe(recipeKey);
}

/// The terms of `recipe`, with what `older` knows beside them.
static void inherit(schema::RecipeT &recipe, const schema::RecipeT &older) {
  if (older.built_key)
    recipe.built_key = std::make_unique<schema::Digest>(*older.built_key);
  recipe.built_s = older.built_s;
  recipe.compile_ms = older.compile_ms;
}

void Store::noteAsked(const schema::RecipeT &terms) { noteRefused(terms, {}); }

void Store::noteRefused(const schema::RecipeT &terms,
                        const std::string &reason) {
  if (!impl->disk || !terms.target)
    return;
  const Digest key = keyOf(terms);
  schema::RecipeT recipe = terms;
  if (auto older = impl->readRecipe(key))
    inherit(recipe, *older);
  recipe.format_version = kFormatVersion;
  recipe.asked_s = time(nullptr);
  recipe.failure = reason;
  impl->writeRecipe(key, recipe);
}

void Store::Impl::noteBuilt(const StoredArtifact &stored) {
  if (!disk)
    return;
  const schema::Artifact &from = stored.artifact();
  schema::RecipeT recipe;
  recipe.format_version = kFormatVersion;
  recipe.content_key = pack(stored.contentKey());
  if (from.kernel_hash())
    recipe.kernel_hash = std::make_unique<schema::Digest>(*from.kernel_hash());
  recipe.kernel = from.kernel()->str();
  if (from.facts())
    for (const schema::Fact *fact : *from.facts())
      recipe.facts.push_back(*fact);
  if (from.config())
    recipe.config.reset(from.config()->UnPack());
  recipe.target.reset(from.target()->UnPack());
  recipe.format = from.format();
  recipe.pipeline = from.pipeline();
  recipe.producer = from.producer()->str();
  recipe.built_key = pack(stored.contentKey());
  recipe.asked_s = recipe.built_s = time(nullptr);
  recipe.compile_ms = stored.costMs();
  writeRecipe(keyOf(recipe), recipe);
}

std::vector<schema::RecipeT> Store::recipes() {
  std::vector<schema::RecipeT> result;
  if (!impl->disk)
    return result;
  if (auto records = impl->disk->list(kRecipes))
    for (const RecordInfo &record : *records)
      if (auto recipe = impl->readRecipe(record.key))
        result.push_back(std::move(*recipe));
  return result;
}

} // namespace pgkp::rt
