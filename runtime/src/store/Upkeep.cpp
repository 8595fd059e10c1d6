// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What people and scripts do with a store: look, verify, clean up, pin.
#include "store/StoreImpl.h"

#include <cerrno>

namespace pgkp::rt {

static Error noDisk() { return {Code::unsupported, "the store has no disk"}; }

Status Store::pin(const Digest &contentKey, bool on) {
  if (!impl->disk)
    return tl::unexpected<Error>(noDisk());
  return impl->disk->pin(contentKey, on);
}

std::vector<std::pair<RecordInfo, RecordUse>> Store::listUses() {
  std::vector<std::pair<RecordInfo, RecordUse>> result;
  if (!impl->disk)
    return result;
  const UsageTable table = impl->disk->quota().usage();
  auto records = impl->disk->list(kArtifacts);
  if (!records)
    return result;
  for (const RecordInfo &record : *records) {
    RecordUse use;
    if (const Usage *usage = table.find(record.key)) {
      use.uses = usage->uses;
      use.costMs = usage->costMs;
      use.lastS = usage->lastS;
    }
    use.priority = table.priority(record.key, Quota::charge(record.bytes));
    use.pinned = impl->disk->pinned(record.key);
    result.emplace_back(record, use);
  }
  return result;
}

/// A record as a reader of it would judge it.
static Status check(Store &store, RecordKind kind, const Digest &key,
                    std::vector<uint8_t> bytes) {
  switch (kind.file) {
  case FileKind::artifact: {
    PGKP_ASSIGN(auto artifact, StoredArtifact::create(key, std::move(bytes)));
    if (!artifact->keyHolds())
      return makeError(Code::unsupported,
                       "artifact {} is not what its key says", key.hex());
    return {};
  }
  case FileKind::recipe: {
    PGKP_ASSIGN(auto recipe, store.getRecipe(key));
    return {};
  }
  default:
    return {};
  }
}

Expected<VerifyReport> Store::verify() {
  VerifyReport report;
  if (!impl->disk)
    return report;
  for (const RecordKind &kind : kRecordKinds) {
    PGKP_ASSIGN(auto records, impl->disk->list(kind));
    for (const RecordInfo &record : records) {
      auto bytes = impl->disk->read(kind, record.key);
      Status status;
      if (bytes)
        status = check(*this, kind, record.key, std::move(*bytes));
      else
        status = tl::unexpected<Error>(bytes.error());
      if (status) {
        ++report.verified;
        continue;
      }
      if (status.error().code == Code::notFound)
        continue; // evicted meanwhile
      if (bytes && status.error().code == Code::corrupt)
        impl->reject(kind, record.key, status.error());
      report.problems.push_back({kind.folder, record.key, status.error()});
    }
  }
  return report;
}

Expected<StoreContents> Store::contents() {
  if (!impl->disk)
    return tl::unexpected<Error>(noDisk());
  StoreContents result;
  const std::string &top = impl->disk->recordsDirectory();
  auto add = [&](StoreContents::Kind &kind, const FileEntry &entry) {
    ++kind.files;
    kind.bytes += entry.bytes;
  };
  for (const RecordKind &kind : kRecordKinds) {
    StoreContents::Kind &row = result.kinds.emplace_back();
    row.name = kind.folder;
    if (!forEachRecord(
            top + "/" + kind.folder,
            [&](const Digest &, const FileEntry &entry) { add(row, entry); }))
      return makeErrnoError(
          errno, fmt::format("cannot list '{}/{}'", top, kind.folder));
  }
  for (const char *folder : {"quarantine", "tmp"}) {
    StoreContents::Kind &row = result.kinds.emplace_back();
    row.name = folder;
    forEachFile(top + "/" + folder,
                [&](const FileEntry &entry) { add(row, entry); });
  }
  result.chargedBytes = impl->disk->quota().used();
  forEachFile(top + "/pins", [&](const FileEntry &) { ++result.pinned; });
  result.limitBytes = impl->disk->quota().limit();
  return result;
}

Expected<CollectReport> Store::collect(std::optional<uint64_t> limitBytes) {
  if (!impl->disk)
    return tl::unexpected<Error>(noDisk());
  PGKP_ASSIGN(const Collected done, impl->disk->quota().collect(limitBytes));
  return CollectReport{done.removedFiles, done.freedBytes, done.bytes};
}

Expected<std::vector<uint8_t>> Store::quarantined(const Digest &contentKey) {
  if (!impl->disk)
    return tl::unexpected<Error>(noDisk());
  return impl->disk->quarantined(kArtifacts, contentKey);
}

} // namespace pgkp::rt
