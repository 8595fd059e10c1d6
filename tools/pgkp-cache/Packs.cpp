// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Verbs.h"

#include "base/File.h"
#include "base/Log.h"
#include "schema/Envelope.h"
#include "store/Pack.h"
#include "store/ProfileFile.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace pgkp::rt {

using Json = nlohmann::ordered_json;

static void printAnswer(bool json, const Json &value, const std::string &text) {
  std::printf(
      "%s\n",
      json ? value.dump(2, ' ', false, Json::error_handler_t::replace).c_str()
           : text.c_str());
}

/// What was asked for has to be there; of everything, what is good.
static Expected<std::vector<std::shared_ptr<const StoredArtifact>>>
gather(Store &store, const std::vector<Digest> &keys) {
  std::vector<std::shared_ptr<const StoredArtifact>> result;
  if (!keys.empty()) {
    for (const Digest &key : keys) {
      PGKP_ASSIGN(auto artifact, store.get(key));
      result.push_back(std::move(artifact));
    }
    return result;
  }
  PGKP_ASSIGN(const auto records, store.list());
  for (const RecordInfo &record : records) {
    auto artifact = store.get(record.key);
    if (artifact)
      result.push_back(std::move(*artifact));
    else if (artifact.error().code == Code::unsupported)
      log(LogLevel::warning, "{}; it is not packed", artifact.error().message);
    else if (artifact.error().code != Code::notFound &&
             artifact.error().code != Code::corrupt) // said already
      return tl::unexpected<Error>(artifact.error());
  }
  return result;
}

Status exportPack(Store &store, const ExportOptions &options, bool json) {
  PGKP_ASSIGN(const SecretKey key, SecretKey::load(options.secretKey));
  PackContents contents;
  contents.producer = "pgkp-cache " PGKP_VERSION_STRING;
  if (!options.profile.empty()) {
    PGKP_ASSIGN(contents.profile, loadProfile(options.profile));
  }
  PGKP_ASSIGN(contents.artifacts, gather(store, options.keys));
  auto file = makePack(contents, key);
  if (!file)
    return makeError(file.error().code, "'{}': {}", store.directory(),
                     file.error().message);
  PGKP_TRY(writeFileAtomically(options.output, *file));
  printAnswer(json,
              {{"file", options.output},
               {"bytes", file->size()},
               {"artifacts", contents.artifacts.size()},
               {"profile", contents.profile.has_value()},
               {"signed_by", key.publicKey().name()}},
              fmt::format("{}: {} artifacts{}, {} bytes, signed by key {}",
                          options.output, contents.artifacts.size(),
                          contents.profile ? " and a profile" : "",
                          file->size(), key.publicKey().name()));
  return {};
}

Expected<PackContents> readPack(const ImportOptions &options) {
  PGKP_ASSIGN(const PublicKey key, PublicKey::load(options.publicKey));
  PGKP_ASSIGN(std::vector<uint8_t> file,
              readFile(options.input, kEnvelopeBytes + 96 + kMaxPackBytes));
  PGKP_ASSIGN(PackContents contents,
              openPack(std::move(file), key, options.input));
  if (!options.profile.empty() && !contents.profile)
    return makeError(Code::notFound, "'{}' has no profile", options.input);
  return contents;
}

Status importPack(Store &store, const PackContents &contents,
                  const ImportOptions &options, bool json) {
  PGKP_ASSIGN(const ImportReport report, importArtifacts(store, contents));
  std::string profile;
  if (!options.profile.empty()) {
    PGKP_TRY(saveProfileMerged(options.profile, *contents.profile));
    profile = fmt::format(", its profile is in '{}'", options.profile);
  } else if (contents.profile) {
    profile = ", its profile was left out (--profile takes it)";
  }
  printAnswer(json,
              {{"file", options.input},
               {"producer", contents.producer},
               {"added", report.added},
               {"present", report.present},
               {"profile", contents.profile && !options.profile.empty()}},
              fmt::format("{}: {} artifacts added, {} were there{}",
                          options.input, report.added, report.present,
                          profile));
  return {};
}

Status makeKeys(const std::string &name, bool json) {
  PGKP_ASSIGN(const SecretKey key, SecretKey::generate());
  const std::string secretPath = name + ".pem", publicPath = name + ".pub.pem";
  PGKP_TRY(key.save(secretPath));
  PGKP_TRY(key.publicKey().save(publicPath));
  printAnswer(json,
              {{"secret_key", secretPath},
               {"public_key", publicPath},
               {"name", key.publicKey().name()}},
              fmt::format("key {}: sign with '{}', give '{}' to others",
                          key.publicKey().name(), secretPath, publicPath));
  return {};
}

} // namespace pgkp::rt
