// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/DiskTier.h"

#include "base/File.h"
#include "base/Log.h"
#include "base/SystemCall.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pgkp::rt {

// Old enough to have been left by a process that died, even on a slow disk.
static constexpr int64_t kStaleTemporaryS = 3600;
static constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 30;

Expected<std::unique_ptr<DiskTier>>
DiskTier::open(const std::string &directory, const Clock &clock,
               const StoreOptions &options) {
  PGKP_ASSIGN(Location location, Location::open(directory));
  const std::optional<Error> readOnly = location.readOnly;
  std::unique_ptr<DiskTier> tier(
      new DiskTier(std::move(location), clock, options));
  if (readOnly)
    tier->noteWriteFailure(*readOnly);
  else
    tier->removeStaleTemporaries();
  return tier;
}

std::string DiskTier::pathOf(RecordKind kind, const Digest &key) const {
  const std::string hex = key.hex();
  return fmt::format("{}/{}/{}/{}{}", location.version, kind.folder,
                     std::string_view(hex).substr(0, 2), hex, kRecordSuffix);
}

std::string DiskTier::quarantinePath(RecordKind kind, const Digest &key) const {
  return fmt::format("{}/quarantine/{}-{}{}", location.version, kind.folder,
                     key.hex(), kRecordSuffix);
}

Expected<std::vector<uint8_t>> DiskTier::read(RecordKind kind,
                                              const Digest &key) {
  const std::string path = pathOf(kind, key);
  PGKP_ASSIGN(std::vector<uint8_t> file,
              readFile(path, kEnvelopeBytes + kMaxRecordBytes, "store"));
  if (auto payload = unseal(kind.file, file, path); !payload) {
    if (sealedFormat(file).value_or(kEnvelopeFormat) != kEnvelopeFormat)
      return tl::unexpected<Error>(payload.error());
    quarantine(kind, key, payload.error().message);
    return makeError(Code::corrupt, "{}", payload.error().message);
  }
  file.erase(file.begin(), file.begin() + kEnvelopeBytes);
  if (noteUses)
    budget.note(key, 0);
  return file;
}

void DiskTier::quarantine(RecordKind kind, const Digest &key,
                          const std::string &reason) {
  const std::string path = pathOf(kind, key);
  log(LogLevel::warning, "{}; the record is put aside and made again", reason);
  if (guarded("store", "quarantine", [&] {
        return rename(path.c_str(), quarantinePath(kind, key).c_str());
      }) != 0)
    // Next to nothing: the next write replaces it, the next read reports it
    // again.
    log(LogLevel::debug, "cannot move '{}' to quarantine", path);
}

/// True if a file of another format version is there: it is somebody else's.
static bool isForeign(const std::string &path) {
  UniqueFd fd(guarded("store", "headopen", [&] {
    return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  }));
  uint8_t head[kEnvelopeBytes];
  if (!fd || guarded("store", "headread", [&] {
               return read(fd.get(), head, sizeof head);
             }) != static_cast<ssize_t>(sizeof head))
    return false;
  return sealedFormat(head).value_or(kEnvelopeFormat) != kEnvelopeFormat;
}

Status DiskTier::tryWrite(const std::string &path,
                          std::span<const uint8_t> file, bool sync) {
  PGKP_ASSIGN(PendingFile pending, budget.reserve(path, file.size(), sync));
  Status status = pending.write(file);
  if (status)
    status = pending.publish();
  if (!status)
    budget.giveBack(file.size());
  return status;
}

Status DiskTier::write(RecordKind kind, const Digest &key,
                       std::span<const uint8_t> payload, double costMs) {
  if (clock.now() < restUntil.load(std::memory_order_relaxed))
    return makeError(Code::unavailable, "'{}' is not written to for a while",
                     location.root);
  const std::string path = pathOf(kind, key);
  if (isForeign(path))
    return makeError(Code::unsupported,
                     "'{}' is of another format version and is left alone",
                     path);
  const std::vector<uint8_t> file = seal(kind.file, payload);
  // The rest is small, and soon known again.
  const bool sync =
      kind.file == FileKind::artifact || kind.file == FileKind::bundle;
  Status status = tryWrite(path, file, sync);
  if (!status && status.error().code == Code::notFound) {
    // Somebody removed the folders: `rm -rf` of a cache is always allowed.
    (void)location.makeFolders();
    status = tryWrite(path, file, sync);
  }
  if (!status)
    noteWriteFailure(status.error());
  else if (costMs > 0)
    budget.note(key, static_cast<float>(costMs));
  return status;
}

void DiskTier::noteWriteFailure(const Error &error) {
  restUntil.store(clock.now() + writeRetry, std::memory_order_relaxed);
  if (!warned.exchange(true))
    log(LogLevel::warning,
        "the store '{}' cannot be written; new records are kept in memory "
        "only: "
        "{}",
        location.root, error.message);
}

bool DiskTier::contains(RecordKind kind, const Digest &key) const {
  return guarded("store", "access",
                 [&] { return access(pathOf(kind, key).c_str(), R_OK); }) == 0;
}

bool DiskTier::serves(RecordKind kind, const Digest &key) const {
  return contains(kind, key) && !isForeign(pathOf(kind, key));
}

Status DiskTier::erase(RecordKind kind, const Digest &key) {
  const std::string path = pathOf(kind, key);
  struct stat info;
  const uint64_t bytes =
      guarded("store", "lstat", [&] { return lstat(path.c_str(), &info); }) == 0
          ? static_cast<uint64_t>(info.st_size)
          : 0;
  if (guarded("store", "unlink", [&] { return unlink(path.c_str()); }) != 0)
    return makeErrnoError(errno, "cannot remove '" + path + "'");
  budget.giveBack(bytes);
  return {};
}

Expected<std::vector<RecordInfo>> DiskTier::list(RecordKind kind) const {
  std::vector<RecordInfo> result;
  const std::string top = location.version + "/" + kind.folder;
  if (!forEachRecord(top, [&](const Digest &key, const FileEntry &entry) {
        result.push_back({key, entry.bytes, entry.modifiedS, true});
      }))
    return makeErrnoError(errno, "cannot list '" + top + "'");
  std::sort(result.begin(), result.end(),
            [](const auto &l, const auto &r) { return l.key < r.key; });
  return result;
}

Expected<std::vector<uint8_t>> DiskTier::quarantined(RecordKind kind,
                                                     const Digest &key) const {
  return readFile(quarantinePath(kind, key), kEnvelopeBytes + kMaxRecordBytes);
}

Expected<Lease> DiskTier::lease(const Digest &key) {
  if (clock.now() < restUntil.load(std::memory_order_relaxed))
    return makeError(Code::unsupported, "'{}' is not written to for a while",
                     location.root);
  Expected<Lease> lease = Lease::take(location.locks, key);
  if (!lease && lease.error().code == Code::notFound) {
    (void)location.makeFolders();
    lease = Lease::take(location.locks, key);
  }
  if (!lease && lease.error().code != Code::unavailable)
    lease.error().code = Code::unsupported;
  return lease;
}

Status DiskTier::pin(const Digest &key, bool on) {
  const std::string path = location.version + "/pins/" + key.hex();
  if (on)
    return writeFileAtomically(path, {}, {location.version + "/tmp", "store"});
  if (guarded("store", "unlink", [&] { return unlink(path.c_str()); }) != 0 &&
      errno != ENOENT)
    return makeErrnoError(errno, "cannot remove '" + path + "'");
  return {};
}

bool DiskTier::pinned(const Digest &key) const {
  const std::string path = location.version + "/pins/" + key.hex();
  return guarded("store", "access",
                 [&] { return access(path.c_str(), F_OK); }) == 0;
}

void DiskTier::removeStaleTemporaries() const {
  const int64_t now = time(nullptr);
  forEachFile(location.version + "/tmp", [&](const FileEntry &entry) {
    if (now - entry.modifiedS > kStaleTemporaryS)
      (void)guarded("store", "unlink",
                    [&] { return unlink(entry.path.c_str()); });
  });
}

} // namespace pgkp::rt
