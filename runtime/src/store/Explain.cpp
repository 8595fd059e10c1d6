// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/Explain.h"

#include "schema/ContentKey.h"
#include "schema/Module.h"

#include <algorithm>
#include <tuple>

namespace pgkp::rt {

const char *stateName(RecordState state) {
  switch (state) {
  case RecordState::present:
    return "present";
  case RecordState::mismatched:
    return "mismatched";
  case RecordState::corrupt:
    return "corrupt";
  case RecordState::unreadable:
    return "unreadable";
  case RecordState::refused:
    return "refused";
  case RecordState::evicted:
    return "evicted";
  case RecordState::superseded:
    return "superseded";
  case RecordState::unbuilt:
    return "unbuilt";
  case RecordState::unknown:
    return "unknown";
  }
  return "unknown";
}

static std::string describe(const schema::ConfigT *config) {
  std::vector<std::string> items;
  if (config)
    for (const auto &item : config->items)
      items.push_back(item->kind == schema::ConfigValueKind::integer
                          ? fmt::format("{}={}", item->name, item->integer)
                          : fmt::format("{}={}", item->name, item->text));
  std::sort(items.begin(), items.end());
  return fmt::format("{}", fmt::join(items, " "));
}

/// Recipes and artifacts have the same fields.
template <typename Table>
static std::vector<KeyTerm> makeTerms(const Table &table) {
  return {{"kernel", table.kernel},
          {"kernel_hash",
           table.kernel_hash ? toDigest(*table.kernel_hash).hex() : ""},
          {"class", toString(canonicalFacts(table.facts))},
          {"config", describe(table.config.get())},
          {"device", table.target
                         ? schema::EnumNameDeviceKind(table.target->device)
                         : ""},
          {"chip", table.target ? table.target->chip : ""},
          {"features", table.target ? table.target->features : ""},
          {"format", schema::EnumNameCodeFormat(table.format)},
          {"pipeline", schema::EnumNamePipeline(table.pipeline)},
          {"producer", table.producer}};
}

std::vector<KeyTerm> termsOf(const schema::RecipeT &recipe) {
  return makeTerms(recipe);
}

std::vector<KeyTerm> termsOf(const schema::Artifact &artifact) {
  schema::ArtifactT table;
  table.kernel = artifact.kernel()->str();
  if (artifact.kernel_hash())
    table.kernel_hash =
        std::make_unique<schema::Digest>(*artifact.kernel_hash());
  if (artifact.facts())
    for (const schema::Fact *fact : *artifact.facts())
      table.facts.push_back(*fact);
  if (artifact.config())
    table.config.reset(artifact.config()->UnPack());
  table.target.reset(artifact.target()->UnPack());
  table.format = artifact.format();
  table.pipeline = artifact.pipeline();
  table.producer = artifact.producer()->str();
  return makeTerms(table);
}

static std::vector<Explanation::Difference>
compare(const std::vector<KeyTerm> &wanted, const std::vector<KeyTerm> &found) {
  std::vector<Explanation::Difference> result;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] != found[i])
      result.push_back({wanted[i].name, wanted[i].value, found[i].value});
  return result;
}

/// Less is nearer: the same kernel, else one of the same name, then the number
/// of terms.
static auto distance(const std::vector<Explanation::Difference> &differences) {
  auto differs = [&](const char *term) {
    return std::any_of(differences.begin(), differences.end(),
                       [&](const auto &d) { return d.term == term; });
  };
  return std::tuple(differs("kernel"), differs("kernel_hash"),
                    differences.size());
}

static Expected<std::optional<Explanation::Nearest>>
findNearest(Store &store, const Digest &key,
            const std::vector<KeyTerm> &wanted) {
  std::optional<Explanation::Nearest> best;
  PGKP_ASSIGN(const auto records, store.list());
  for (const RecordInfo &record : records) {
    if (record.key == key)
      continue;
    auto artifact = store.get(record.key);
    if (!artifact)
      continue;
    auto differences = compare(wanted, termsOf((*artifact)->artifact()));
    if (!best || distance(differences) < distance(best->differences))
      best = {record.key, std::move(differences)};
  }
  return best;
}

static bool is(const std::unique_ptr<schema::Digest> &digest,
               const Digest &key) {
  return digest && toDigest(*digest) == key;
}

/// What a missing record's recipe tells of it.
static void judge(Explanation &result, const schema::RecipeT &recipe,
                  const Digest &key) {
  if (!is(recipe.content_key, key)) {
    result.state = RecordState::superseded;
    result.reason =
        fmt::format("another compiler built it; '{}' asks for {} instead",
                    recipe.producer, toDigest(*recipe.content_key).hex());
  } else if (!recipe.failure.empty()) {
    result.state = RecordState::refused;
    result.reason = fmt::format("the compiler refused it: {}", recipe.failure);
  } else if (is(recipe.built_key, key)) {
    result.state = RecordState::evicted;
    result.reason =
        fmt::format("it was built in {:.0f} ms, and evicted or removed since",
                    recipe.compile_ms);
  } else {
    result.state = RecordState::unbuilt;
    result.reason = recipe.built_key
                        ? fmt::format("it was asked for and not built yet; "
                                      "another compiler built it as {}",
                                      toDigest(*recipe.built_key).hex())
                        : "it was asked for and never built";
  }
}

Expected<Explanation> explain(Store &store, const Digest &contentKey) {
  Explanation result;
  auto artifact = store.get(contentKey);
  if (artifact) {
    result.state = RecordState::present;
    result.reason = "it is there and verifies";
    result.terms = termsOf((*artifact)->artifact());
  } else {
    const Error &error = artifact.error();
    result.reason = "it was never asked for in this store";
    for (const schema::RecipeT &recipe : store.recipes()) {
      const bool asked = is(recipe.content_key, contentKey);
      if (!asked && !is(recipe.built_key, contentKey))
        continue;
      judge(result, recipe, contentKey);
      result.terms = termsOf(recipe);
      // Whose producer the recipe names is the one that asked last.
      if (!asked)
        std::erase_if(*result.terms,
                      [](const KeyTerm &t) { return t.name == "producer"; });
      if (asked)
        break;
    }
    if (error.code == Code::corrupt ||
        (error.code == Code::notFound && store.quarantined(contentKey))) {
      result.state = RecordState::corrupt;
      result.reason =
          error.code == Code::corrupt
              ? error.message
              : "it did not verify and is in quarantine until it is made again";
    } else if (error.code == Code::unsupported) {
      result.state = RecordState::mismatched;
      result.reason = error.message;
    } else if (error.code != Code::notFound) {
      result.state = RecordState::unreadable;
      result.reason = error.message;
    }
  }
  if (result.terms && result.state != RecordState::superseded) {
    PGKP_ASSIGN(result.nearest, findNearest(store, contentKey, *result.terms));
  }
  return result;
}

} // namespace pgkp::rt
