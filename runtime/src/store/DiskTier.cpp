// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/DiskTier.h"

#include "base/Failpoint.h"
#include "base/File.h"
#include "base/Log.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pgkp::rt {

// Old enough to have been left by a process that died, even on a slow disk.
static constexpr int64_t kStaleTemporaryS = 3600;

static bool injected(std::string_view name) {
  if (const int value = failpoint(name)) {
    errno = value;
    return true;
  }
  return false;
}

static Status checkOwned(const std::string &path) {
  struct stat info;
  if (injected("store.lstat") || lstat(path.c_str(), &info) != 0)
    return makeErrnoError(errno, "cannot examine '" + path + "'");
  if (S_ISLNK(info.st_mode))
    return makeError(Code::permission,
                     "'{}' is a symbolic link; a directory is expected", path);
  if (!S_ISDIR(info.st_mode))
    return makeError(Code::permission, "'{}' is not a directory", path);
  // What root put there may be trusted, and cannot be written by us.
  if (info.st_uid != geteuid() && info.st_uid != 0)
    return makeError(Code::permission,
                     "'{}' belongs to user {}; user {} is expected", path,
                     info.st_uid, geteuid());
  if (info.st_mode & (S_IWGRP | S_IWOTH))
    return makeError(
        Code::permission,
        "'{}' can be written by others (mode {:04o}); mode 0700 is "
        "expected",
        path, info.st_mode & 07777);
  if (access(path.c_str(), R_OK | X_OK) != 0)
    return makeErrnoError(errno, "cannot read '" + path + "'");
  return {};
}

// Made with mode 0700 whatever the umask; that it exists is fine.
static Status makeOne(const std::string &path) {
  if (!injected("store.mkdir") && mkdir(path.c_str(), 0700) == 0)
    return {};
  if (errno == EEXIST)
    return {};
  return makeErrnoError(errno, "cannot make directory '" + path + "'");
}

Expected<std::unique_ptr<DiskTier>> DiskTier::open(const std::string &directory,
                                                   const Clock &clock,
                                                   TimeNs writeRetry) {
  std::string root = directory;
  while (root.size() > 1 && root.back() == '/')
    root.pop_back();
  struct stat info;
  if (lstat(root.c_str(), &info) != 0) {
    PGKP_TRY(makeDirectories(directoryOf(root), 0700));
    PGKP_TRY(makeOne(root));
  }
  PGKP_TRY(checkOwned(root));
  std::unique_ptr<DiskTier> tier(new DiskTier(root, clock, writeRetry));
  // A directory that cannot be written is still good to read from.
  Status made = makeOne(tier->version);
  for (const char *folder :
       {"artifacts", "bundles", "tuning", "quarantine", "tmp"})
    if (made)
      made = makeOne(tier->version + "/" + folder);
  if (!made) {
    if (lstat(tier->version.c_str(), &info) != 0)
      return tl::unexpected<Error>(made.error());
    tier->noteWriteFailure(made.error());
  }
  PGKP_TRY(checkOwned(tier->version));
  if (made)
    tier->removeStaleTemporaries();
  return tier;
}

std::string DiskTier::pathOf(RecordKind kind, const Digest &key) const {
  const std::string hex = key.hex();
  return fmt::format("{}/{}/{}/{}.pgkp", version, kind.folder,
                     std::string_view(hex).substr(0, 2), hex);
}

Expected<std::vector<uint8_t>> DiskTier::read(RecordKind kind,
                                              const Digest &key) {
  const std::string path = pathOf(kind, key);
  PGKP_ASSIGN(std::vector<uint8_t> file,
              readFile(path, kEnvelopeBytes + (uint64_t{1} << 30), "store"));
  if (auto payload = unseal(kind.file, file, path); !payload) {
    // Whatever is wrong with it: a record of ours under v1/ has this version
    // and kind.
    quarantine(kind, key, payload.error().message);
    return makeError(Code::corrupt, "{}", payload.error().message);
  }
  file.erase(file.begin(), file.begin() + kEnvelopeBytes);
  return file;
}

void DiskTier::quarantine(RecordKind kind, const Digest &key,
                          const std::string &reason) {
  const std::string path = pathOf(kind, key);
  const std::string target =
      fmt::format("{}/quarantine/{}-{}.pgkp", version, kind.folder, key.hex());
  log(LogLevel::warning, "{}; the record is put aside and made again", reason);
  if (injected("store.quarantine") || rename(path.c_str(), target.c_str()) != 0)
    // Next to nothing: the next write replaces it, the next read reports it
    // again.
    log(LogLevel::debug, "cannot move '{}' to quarantine", path);
}

Status DiskTier::write(RecordKind kind, const Digest &key,
                       std::span<const uint8_t> payload) {
  if (clock.now() < restUntil.load(std::memory_order_relaxed))
    return makeError(Code::unavailable, "'{}' is not written to for a while",
                     root);
  const std::string path = pathOf(kind, key);
  AtomicWriteOptions options;
  options.temporaryDirectory = version + "/tmp";
  options.failpoints = "store";
  options.mode = 0600;
  const std::vector<uint8_t> file = seal(kind.file, payload);
  Status status = makeOne(directoryOf(path));
  if (status)
    status = writeFileAtomically(path, file, options);
  if (!status && status.error().code == Code::notFound) {
    // Somebody removed the folders: `rm -rf` of a cache is always allowed.
    for (const std::string &folder :
         {root, version, version + "/" + kind.folder,
          options.temporaryDirectory, directoryOf(path)})
      (void)makeOne(folder);
    status = writeFileAtomically(path, file, options);
  }
  if (!status)
    noteWriteFailure(status.error());
  return status;
}

void DiskTier::noteWriteFailure(const Error &error) {
  restUntil.store(clock.now() + writeRetry, std::memory_order_relaxed);
  if (!warned.exchange(true))
    log(LogLevel::warning,
        "the store '{}' cannot be written; new records are kept in memory "
        "only: "
        "{}",
        root, error.message);
}

bool DiskTier::contains(RecordKind kind, const Digest &key) const {
  return access(pathOf(kind, key).c_str(), R_OK) == 0;
}

Status DiskTier::erase(RecordKind kind, const Digest &key) {
  const std::string path = pathOf(kind, key);
  if (injected("store.unlink") || unlink(path.c_str()) != 0)
    return makeErrnoError(errno, "cannot remove '" + path + "'");
  return {};
}

namespace {
/// The names in a directory; empty if there is none.
class Directory {
public:
  explicit Directory(const std::string &path) : stream(opendir(path.c_str())) {}
  ~Directory() {
    if (stream)
      closedir(stream);
  }
  Directory(const Directory &) = delete;

  explicit operator bool() const { return stream; }
  int fd() const { return dirfd(stream); }
  const char *next() {
    while (const dirent *entry = readdir(stream))
      if (entry->d_name[0] != '.' ||
          std::string_view(entry->d_name).starts_with(kTemporaryPrefix))
        return entry->d_name;
    return nullptr;
  }

private:
  DIR *stream;
};
} // namespace

Expected<std::vector<RecordInfo>> DiskTier::list(RecordKind kind) const {
  std::vector<RecordInfo> result;
  const std::string top = version + "/" + kind.folder;
  Directory shards(top);
  if (!shards) {
    if (errno == ENOENT)
      return result;
    return makeErrnoError(errno, "cannot list '" + top + "'");
  }
  while (const char *shard = shards.next()) {
    Directory records(top + "/" + shard);
    if (!records)
      continue;
    while (const char *name = records.next()) {
      const std::string_view text(name);
      struct stat info;
      if (!text.ends_with(".pgkp"))
        continue;
      const std::optional<Digest> key =
          Digest::fromHex(text.substr(0, text.size() - 5));
      if (key && fstatat(records.fd(), name, &info, AT_SYMLINK_NOFOLLOW) == 0)
        result.push_back({*key, static_cast<uint64_t>(info.st_size),
                          info.st_mtim.tv_sec, true});
    }
  }
  std::sort(result.begin(), result.end(),
            [](const auto &l, const auto &r) { return l.key < r.key; });
  return result;
}

void DiskTier::removeStaleTemporaries() const {
  Directory files(version + "/tmp");
  if (!files)
    return;
  const int64_t now = time(nullptr);
  while (const char *name = files.next()) {
    struct stat info;
    if (fstatat(files.fd(), name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        now - info.st_mtim.tv_sec > kStaleTemporaryS)
      unlinkat(files.fd(), name, 0);
  }
}

} // namespace pgkp::rt
