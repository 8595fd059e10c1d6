// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// Looks into the store of prepared kernels.

#include "ToolMain.h"

#include "schema/Module.h"
#include "store/Store.h"

#include <cstdio>
#include <nlohmann/json.hpp>

using namespace pgkp::rt;

namespace {

nlohmann::json describe(const StoredArtifact &stored) {
  const pgkp::schema::Artifact &a = stored.artifact();
  nlohmann::json out;
  out["content_key"] = stored.contentKey().hex();
  out["kernel"] = a.kernel()->str();
  out["kernel_hash"] = a.kernel_hash() ? toDigest(*a.kernel_hash()).hex() : "";
  std::vector<pgkp::schema::Fact> facts;
  if (a.facts())
    for (const pgkp::schema::Fact *fact : *a.facts())
      facts.push_back(*fact);
  out["class"] = toString(facts);
  nlohmann::json config = nlohmann::json::object();
  if (a.config() && a.config()->items())
    for (const auto *item : *a.config()->items()) {
      if (item->kind() == pgkp::schema::ConfigValueKind::integer)
        config[item->name()->str()] = item->integer();
      else
        config[item->name()->str()] = item->text() ? item->text()->str() : "";
    }
  out["config"] = config;
  out["target"] = a.target()->chip()->str();
  out["format"] = pgkp::schema::EnumNameCodeFormat(a.format());
  out["code_bytes"] = a.code()->size();
  if (a.code_hash())
    out["code_hash"] = toDigest(*a.code_hash()).hex();
  if (a.stages()) {
    out["generate_ms"] = a.stages()->generate_ms();
    out["compile_ms"] = a.stages()->compile_ms();
    out["link_ms"] = a.stages()->link_ms();
  }
  out["producer"] = a.producer()->str();
  return out;
}

Status list(Store &store, bool json) {
  PGKP_ASSIGN(auto records, store.list());
  nlohmann::json all = nlohmann::json::array();
  for (const RecordInfo &record : records) {
    auto stored = store.get(record.key);
    if (json) {
      nlohmann::json row =
          stored ? describe(**stored)
                 : nlohmann::json{{"content_key", record.key.hex()},
                                  {"error", stored.error().message}};
      row["bytes"] = record.bytes;
      row["modified_s"] = record.modifiedS;
      all.push_back(row);
    } else if (stored) {
      const nlohmann::json row = describe(**stored);
      std::printf("%s %9llu  %-28s %s\n",
                  record.key.hex().substr(0, 16).c_str(),
                  static_cast<unsigned long long>(record.bytes),
                  row["kernel"].get<std::string>().c_str(),
                  row["class"].get<std::string>().c_str());
    } else {
      std::printf("%s %9llu  %s\n", record.key.hex().substr(0, 16).c_str(),
                  static_cast<unsigned long long>(record.bytes),
                  stored.error().message.c_str());
    }
  }
  if (json)
    std::printf("%s\n", all.dump(2).c_str());
  return {};
}

/// The one record whose key starts with `prefix`.
Expected<Digest> findKey(Store &store, const std::string &prefix) {
  PGKP_ASSIGN(auto records, store.list());
  std::vector<Digest> found;
  for (const RecordInfo &record : records)
    if (record.key.hex().starts_with(prefix))
      found.push_back(record.key);
  if (found.empty())
    return makeError(Code::notFound, "no record's key starts with '{}'",
                     prefix);
  if (found.size() > 1)
    return makeError(Code::invalidArgument, "'{}' is ambiguous: {} records",
                     prefix, found.size());
  return found.front();
}

Status show(Store &store, const std::string &prefix) {
  PGKP_ASSIGN(Digest key, findKey(store, prefix));
  PGKP_ASSIGN(auto stored, store.get(key));
  std::printf("%s\n", describe(*stored).dump(2).c_str());
  return {};
}

Status verify(Store &store, bool json) {
  PGKP_ASSIGN(auto records, store.list());
  size_t good = 0;
  nlohmann::json bad = nlohmann::json::array();
  for (const RecordInfo &record : records) {
    auto stored = store.get(record.key);
    if (stored) {
      ++good;
      continue;
    }
    bad.push_back(
        {{"content_key", record.key.hex()}, {"error", stored.error().message}});
    if (!json)
      std::printf("%s: %s\n", record.key.hex().c_str(),
                  stored.error().message.c_str());
  }
  if (json)
    std::printf(
        "%s\n",
        nlohmann::json{{"verified", good}, {"bad", bad}}.dump(2).c_str());
  else
    std::printf("%zu records verify, %zu do not\n", good, bad.size());
  if (!bad.empty())
    return makeError(Code::corrupt, "{} of {} records do not verify",
                     bad.size(), records.size());
  return {};
}

Status statistics(Store &store, bool json) {
  PGKP_ASSIGN(auto records, store.list());
  uint64_t bytes = 0;
  for (const RecordInfo &record : records)
    bytes += record.bytes;
  if (json)
    std::printf("%s\n", nlohmann::json{{"directory", store.directory()},
                                       {"records", records.size()},
                                       {"bytes", bytes}}
                            .dump(2)
                            .c_str());
  else
    std::printf("%s: %zu records, %llu bytes\n", store.directory().c_str(),
                records.size(), static_cast<unsigned long long>(bytes));
  return {};
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Looks into the store of prepared kernels.\n"
               "Exit status: 0 done, 1 the work failed, 2 bad usage.",
               "pgkp-cache");
  std::string directory, key;
  bool json = false;
  app.add_option("--cache-dir", directory,
                 "Store directory; default: PGKP_CACHE_DIR and so on");
  app.add_flag("--json", json, "JSON instead of text");
  app.require_subcommand(1);
  CLI::App *ls = app.add_subcommand("ls", "One line for each artifact");
  CLI::App *showCommand =
      app.add_subcommand("show", "Everything that an artifact's record says");
  showCommand->add_option("key", key, "Content key, or the first digits of it")
      ->required();
  CLI::App *stat = app.add_subcommand("stat", "Number and size of records");
  CLI::App *check =
      app.add_subcommand("verify", "Read and verify every record");
  if (int code = parseCommandLine(app, argc, argv); code >= 0)
    return code;

  StoreOptions options;
  options.directory = directory.empty() ? defaultStoreDirectory() : directory;
  if (options.directory.empty() || options.directory == "none")
    return reportError("no store directory: give --cache-dir", exitUsage);
  auto store = Store::open(options);
  if (store->problem())
    return reportError(*store->problem());
  Status status;
  if (ls->parsed())
    status = list(*store, json);
  else if (showCommand->parsed())
    status = show(*store, key);
  else if (stat->parsed())
    status = statistics(*store, json);
  else if (check->parsed())
    status = verify(*store, json);
  return status ? exitOk : reportError(status.error());
}
