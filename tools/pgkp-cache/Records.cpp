// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Verbs.h"

#include "schema/Module.h"
#include "store/Explain.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

namespace pgkp::rt {

using Json = nlohmann::ordered_json;

static void print(const Json &json) {
  // Text that is not UTF-8 is shown with replacement characters.
  std::printf("%s\n",
              json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

template <typename... Args>
static void printLine(fmt::format_string<Args...> format, Args &&...args) {
  std::printf("%s\n", fmt::format(format, std::forward<Args>(args)...).c_str());
}

/// Names come from files; a terminal is not to be controlled by them.
static std::string plain(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char c) { return c < 32 || c == 127; }, '?');
  return text;
}

static std::string shortName(const Digest &key) {
  return key.hex().substr(0, 16);
}

Expected<Digest> findKey(Store &store, const std::string &prefix) {
  if (prefix.empty() || prefix.size() > 64 ||
      prefix.find_first_not_of("0123456789abcdef") != std::string::npos)
    return makeError(Code::invalidArgument,
                     "'{}' is no key; up to 64 lower-case hexadecimal digits "
                     "are expected",
                     prefix);
  if (const auto whole = Digest::fromHex(prefix))
    return *whole;
  std::set<Digest> found;
  auto add = [&](const Digest &key) {
    if (key.hex().starts_with(prefix))
      found.insert(key);
  };
  PGKP_ASSIGN(const auto records, store.list());
  for (const RecordInfo &record : records)
    add(record.key);
  if (found.empty())
    for (const pgkp::schema::RecipeT &recipe : store.recipes())
      for (const auto *digest : {&recipe.content_key, &recipe.built_key})
        if (*digest)
          add(toDigest(**digest));
  if (found.empty())
    return makeError(Code::notFound, "no key in '{}' starts with '{}'",
                     store.directory(), prefix);
  if (found.size() > 1)
    return makeError(Code::invalidArgument,
                     "'{}' is ambiguous: {} keys in '{}' start with it", prefix,
                     found.size(), store.directory());
  return *found.begin();
}

static Json describe(const StoredArtifact &stored) {
  const pgkp::schema::Artifact &a = stored.artifact();
  Json out;
  out["content_key"] = stored.contentKey().hex();
  for (const KeyTerm &term : termsOf(a))
    out[term.name] = term.value;
  Json config = Json::object();
  if (a.config() && a.config()->items())
    for (const auto *item : *a.config()->items()) {
      if (item->kind() == pgkp::schema::ConfigValueKind::integer)
        config[item->name()->str()] = item->integer();
      else
        config[item->name()->str()] = item->text() ? item->text()->str() : "";
    }
  out["config"] = config;
  out["symbol"] = a.symbol()->str();
  out["code_bytes"] = a.code()->size();
  out["code_hash"] = toDigest(*a.code_hash()).hex();
  if (a.resources())
    out["resources"] = {
        {"registers", a.resources()->registers()},
        {"spill_bytes", a.resources()->spill_bytes()},
        {"static_shared_bytes", a.resources()->static_shared_bytes()}};
  if (a.stages())
    out["stages"] = {{"generate_ms", a.stages()->generate_ms()},
                     {"compile_ms", a.stages()->compile_ms()},
                     {"link_ms", a.stages()->link_ms()},
                     {"cpu_ms", a.stages()->cpu_ms()}};
  return out;
}

static void addUse(Json &out, const RecordInfo &record, const RecordUse &use) {
  out["bytes"] = record.bytes;
  out["modified_s"] = record.modifiedS;
  out["uses"] = use.uses;
  out["cost_ms"] = use.costMs;
  out["last_used_s"] = use.lastS ? Json(use.lastS) : Json();
  out["priority"] = use.priority;
  out["pinned"] = use.pinned;
}

Status list(Store &store, bool json) {
  Json all = Json::array();
  for (const auto &[record, use] : store.listUses()) {
    const auto stored = store.get(record.key);
    if (!stored && stored.error().code == Code::notFound)
      continue; // evicted meanwhile
    if (json) {
      Json row = stored ? describe(**stored)
                        : Json{{"content_key", record.key.hex()},
                               {"error", stored.error().message}};
      addUse(row, record, use);
      all.push_back(std::move(row));
    } else if (stored) {
      const auto terms = termsOf((*stored)->artifact());
      auto term = [&](const char *name) {
        const auto it =
            std::find_if(terms.begin(), terms.end(),
                         [&](const KeyTerm &t) { return t.name == name; });
        return plain(it->value);
      };
      printLine("{} {:>9} {:>6.1f}  {:<8} {:<24} {}", shortName(record.key),
                record.bytes, use.uses, term("chip"), term("kernel"),
                term("class"));
    } else {
      printLine("{} {:>9} {:>6.1f}  {}", shortName(record.key), record.bytes,
                use.uses, plain(stored.error().message));
    }
  }
  if (json)
    print(all);
  return {};
}

Status show(Store &store, const Digest &key, bool json) {
  PGKP_ASSIGN(const auto stored, store.get(key));
  Json out = describe(*stored);
  for (const auto &[record, use] : store.listUses())
    if (record.key == key)
      addUse(out, record, use);
  if (json) {
    print(out);
    return {};
  }
  for (const auto &[name, value] : out.items())
    printLine("{:<14} {}", name,
              plain(value.is_string()
                        ? value.get<std::string>()
                        : value.dump(-1, ' ', false,
                                     Json::error_handler_t::replace)));
  return {};
}

Status printContents(Store &store, bool json) {
  PGKP_ASSIGN(const StoreContents contents, store.contents());
  if (json) {
    Json kinds = Json::object();
    for (const auto &kind : contents.kinds)
      kinds[kind.name] = {{"files", kind.files}, {"bytes", kind.bytes}};
    print({{"directory", store.directory()},
           {"records", contents.kinds.front().files},
           {"bytes", contents.kinds.front().bytes},
           {"kinds", kinds},
           {"pinned", contents.pinned},
           {"charged_bytes", contents.chargedBytes},
           {"limit_bytes", contents.limitBytes}});
    return {};
  }
  printLine("{}", store.directory());
  for (const auto &kind : contents.kinds)
    printLine("{:<11} {:>9} files {:>14} bytes", kind.name, kind.files,
              kind.bytes);
  printLine("{} bytes in whole blocks of at most {}; {} pinned",
            contents.chargedBytes, contents.limitBytes, contents.pinned);
  return {};
}

Status verify(Store &store, bool json) {
  PGKP_ASSIGN(const VerifyReport report, store.verify());
  Json bad = Json::array();
  for (const VerifyReport::Problem &problem : report.problems) {
    if (json)
      bad.push_back({{"kind", problem.kind},
                     {"key", problem.key.hex()},
                     {"error", problem.error.message}});
    else
      printLine("{}/{}: {}", problem.kind, problem.key.hex(),
                plain(problem.error.message));
  }
  if (json)
    print({{"verified", report.verified}, {"bad", bad}});
  else
    printLine("{} records verify, {} do not", report.verified,
              report.problems.size());
  if (!report.problems.empty())
    return makeError(Code::corrupt, "'{}': {} of {} records do not verify",
                     store.directory(), report.problems.size(),
                     report.verified + report.problems.size());
  return {};
}

Status collect(Store &store, std::optional<uint64_t> limitBytes, bool json) {
  PGKP_ASSIGN(const CollectReport report, store.collect(limitBytes));
  if (json)
    print({{"removed_files", report.removedFiles},
           {"freed_bytes", report.freedBytes},
           {"charged_bytes", report.bytes}});
  else
    printLine("{} files removed, {} bytes freed, {} bytes left",
              report.removedFiles, report.freedBytes, report.bytes);
  if (limitBytes && report.bytes > *limitBytes)
    return makeError(Code::exhausted,
                     "'{}': {} bytes are left, more than the {} asked for: the "
                     "rest is pinned, being written, or the store's own",
                     store.directory(), report.bytes, *limitBytes);
  return {};
}

Status printExplanation(Store &store, const Digest &key, bool json) {
  PGKP_ASSIGN(const Explanation why, explain(store, key));
  if (json) {
    Json out = {{"key", key.hex()},
                {"state", stateName(why.state)},
                {"reason", why.reason},
                {"terms", nullptr},
                {"nearest", nullptr}};
    if (why.terms) {
      out["terms"] = Json::object();
      for (const KeyTerm &term : *why.terms)
        out["terms"][term.name] = term.value;
    }
    if (why.nearest) {
      Json differences = Json::array();
      for (const auto &d : why.nearest->differences)
        differences.push_back(
            {{"term", d.term}, {"wanted", d.wanted}, {"found", d.found}});
      out["nearest"] = {{"key", why.nearest->key.hex()},
                        {"differences", differences}};
    }
    print(out);
    return {};
  }
  printLine("{}: {}: {}", key.hex(), stateName(why.state), plain(why.reason));
  if (why.terms)
    for (const KeyTerm &term : *why.terms)
      printLine("  {:<12} {}", term.name, plain(term.value));
  if (why.nearest) {
    printLine("nearest record {}:", why.nearest->key.hex());
    for (const auto &d : why.nearest->differences)
      printLine("  {:<12} '{}' here, '{}' there", d.term, plain(d.wanted),
                plain(d.found));
  } else {
    printLine("{}", why.terms
                        ? "there is no other record"
                        : "its terms are not known, so no record is near");
  }
  return {};
}

} // namespace pgkp::rt
