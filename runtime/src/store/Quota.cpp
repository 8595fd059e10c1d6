// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/Quota.h"

#include "base/Log.h"
#include "base/SystemCall.h"
#include "store/Layout.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace pgkp::rt {

// Old enough to have been left by a process that died, even on a slow disk.
static constexpr int64_t kStaleTemporaryS = 3600;
// A writer waits no longer for others: the record stays in memory then.
static constexpr TimeNs kLockLimit = 2 * kNsPerSecond;

namespace {
struct LedgerBytes {
  char magic[8];
  uint8_t boot[16]; ///< after a crash of the machine the total may be old
  uint64_t total;
  uint64_t check;
};

// In the order in which files leave. Knowledge (tuning results, recipes) is
// small and outlives binaries, but must not crowd them out.
enum class Rank : uint8_t {
  leftover,
  quarantine,
  excessKnowledge,
  record,
  knowledge
};

struct Candidate {
  Rank rank;
  double priority; ///< within its rank
  Digest key;
  std::string path;
  uint64_t charge;
};
} // namespace

struct Quota::Scan {
  std::vector<Candidate> files;
  std::unordered_map<Digest, uint64_t, DigestHash> sizes; ///< of records
  uint64_t total = 0;
};

/// Where the knowledge takes more than a quarter of `limit`, its oldest part is
/// excess. Needs them in order of age.
static void markExcess(std::vector<Candidate> &files, uint64_t limit) {
  uint64_t knowledge = 0;
  for (const Candidate &file : files)
    knowledge += file.rank == Rank::knowledge ? file.charge : 0;
  for (Candidate &file : files) {
    if (knowledge <= limit / 4)
      return;
    if (file.rank != Rank::knowledge)
      continue;
    file.rank = Rank::excessKnowledge;
    knowledge -= file.charge;
  }
}

static std::array<uint8_t, 16> bootIdentity() {
  std::array<uint8_t, 16> id{};
  UniqueFd fd(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[64] = "";
  if (fd && read(fd.get(), text, sizeof text - 1) > 0)
    std::memcpy(
        id.data(),
        hashBytes({reinterpret_cast<uint8_t *>(text), std::strlen(text)})
            .bytes.data(),
        id.size());
  return id;
}

static uint64_t checkOf(LedgerBytes ledger) {
  ledger.check = 0;
  uint8_t bytes[sizeof ledger];
  std::memcpy(bytes, &ledger, sizeof ledger);
  const Digest digest = hashBytes(bytes);
  uint64_t check;
  std::memcpy(&check, digest.bytes.data(), sizeof check);
  return check;
}

// Nobody sums the log up while the store is not full; then it may as well end.
static uint64_t maxLogBytes(uint64_t limit) {
  return std::clamp<uint64_t>(limit / 128, 4096, uint64_t{4} << 20);
}

Quota::Quota(const Location &location, uint64_t limitBytes)
    : location(location), limitBytes(limitBytes),
      ledgerPath(location.version + "/ledger"),
      usagePath(location.version + "/usage"),
      logPath(location.version + "/usage.log"),
      usageLog(logPath, maxLogBytes(limitBytes)) {}

uint64_t Quota::usable() const {
  // Of the limit at most: the usage table and its successor 2/64 (64 bytes for
  // a record, which takes a block at least), the usage log 1/128, the growth of
  // directories 1/50 (80 bytes for a record). Then the ledger, the folders, and
  // what is rounded up.
  const uint64_t overhead = limitBytes / 16 + 16 * 4096;
  return limitBytes - std::min(limitBytes, overhead);
}

uint64_t Quota::used() const {
  Scan found;
  scan(found);
  return found.total;
}

Expected<FileLock> Quota::lock() const {
  return FileLock::take(location.locks + "/ledger", kLockLimit);
}

std::optional<uint64_t> Quota::readLedger() const {
  static const std::array<uint8_t, 16> boot = bootIdentity();
  UniqueFd fd(guarded("store", "ledgerpeek", [&] {
    return open(ledgerPath.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  }));
  LedgerBytes ledger;
  if (!fd || guarded("store", "ledgerread", [&] {
               return pread(fd.get(), &ledger, sizeof ledger, 0);
             }) != static_cast<ssize_t>(sizeof ledger))
    return std::nullopt;
  if (std::memcmp(ledger.magic, "PGKPLEDG", 8) != 0 ||
      ledger.check != checkOf(ledger) ||
      !std::equal(boot.begin(), boot.end(), ledger.boot))
    return std::nullopt;
  return ledger.total;
}

Status Quota::writeLedger(uint64_t total) const {
  static const std::array<uint8_t, 16> boot = bootIdentity();
  LedgerBytes ledger{};
  std::memcpy(ledger.magic, "PGKPLEDG", 8);
  std::copy(boot.begin(), boot.end(), ledger.boot);
  ledger.total = total;
  ledger.check = checkOf(ledger);
  UniqueFd fd(guarded("store", "ledgeropen", [&] {
    return open(ledgerPath.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                0600);
  }));
  // Not synced: after a power failure the boot is another one.
  if (!fd || guarded("store", "ledgerwrite", [&] {
               return pwrite(fd.get(), &ledger, sizeof ledger, 0);
             }) != static_cast<ssize_t>(sizeof ledger))
    return makeErrnoError(errno, "cannot write '" + ledgerPath + "'");
  return {};
}

/// What the shards of `folder` take themselves.
static uint64_t shardBytes(const std::string &folder) {
  uint64_t total = 0;
  DirectoryReader shards(folder);
  if (!shards)
    return 0;
  while (const char *name = shards.next()) {
    struct stat info;
    if (guarded("store", "fstatat",
                [&] {
                  return fstatat(shards.fd(), name, &info, AT_SYMLINK_NOFOLLOW);
                }) == 0 &&
        S_ISDIR(info.st_mode))
      total += std::max<uint64_t>(
          4096, Quota::charge(static_cast<uint64_t>(info.st_size)));
  }
  return total;
}

void Quota::scan(Scan &out) const {
  for (const RecordKind &kind : kRecordKinds)
    out.total += shardBytes(location.version + "/" + kind.folder);
  auto add = [&](Rank rank, const FileEntry &entry, double priority,
                 const Digest &key = {}) {
    const uint64_t bytes = charge(entry.bytes);
    out.total += bytes;
    out.files.push_back({rank, priority, key, entry.path, bytes});
  };
  for (const RecordKind &kind : kRecordKinds)
    forEachRecord(location.version + "/" + kind.folder,
                  [&](const Digest &key, const FileEntry &entry) {
                    const bool binary = kind.file == FileKind::artifact ||
                                        kind.file == FileKind::bundle;
                    add(binary ? Rank::record : Rank::knowledge, entry,
                        static_cast<double>(entry.modifiedS), key);
                    if (binary)
                      out.sizes[key] = charge(entry.bytes);
                  });
  forEachFile(location.version + "/quarantine", [&](const FileEntry &entry) {
    add(Rank::quarantine, entry, static_cast<double>(entry.modifiedS));
  });
  const int64_t now = time(nullptr);
  forEachFile(location.version + "/tmp", [&](const FileEntry &entry) {
    if (now - entry.modifiedS > kStaleTemporaryS)
      add(Rank::leftover, entry, 0);
    else // somebody writes it
      out.total += charge(entry.bytes);
  });
  forEachFile(location.version, [&](const FileEntry &entry) {
    out.total += charge(entry.bytes);
  });
}

/// The usage table with the log in it; the log is empty then.
UsageTable Quota::sumUp(const Scan &found) {
  usageLog.flush();
  UsageTable table = UsageTable::load(usagePath);
  UniqueFd fd(guarded("store", "usesum", [&] {
    return open(logPath.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  }));
  if (fd)
    if (auto bytes = readFile(logPath)) {
      table.apply(parseUseNotes(*bytes), [&](const Digest &key) {
        const auto it = found.sizes.find(key);
        return it == found.sizes.end() ? 0 : it->second;
      });
      table.retain(
          [&](const Digest &key) { return found.sizes.contains(key); });
      // A note that arrives between reading and this is lost, which costs a
      // little order. Saved first: a process that dies here counts twice.
      if (table.save(usagePath, writeOptions()))
        (void)guarded("store", "usetruncate",
                      [&] { return ftruncate(fd.get(), 0); });
    }
  return table;
}

bool Quota::removeFile(const std::string &path) const {
  return guarded("store", "unlink", [&] { return unlink(path.c_str()); }) ==
             0 ||
         errno == ENOENT;
}

static void sortForEviction(std::vector<Candidate> &files) {
  std::sort(files.begin(), files.end(),
            [](const Candidate &l, const Candidate &r) {
              return std::tie(l.rank, l.priority, l.key) <
                     std::tie(r.rank, r.priority, r.key);
            });
}

std::unordered_set<Digest, DigestHash> Quota::pinned() const {
  std::unordered_set<Digest, DigestHash> pins;
  forEachFile(location.version + "/pins", [&](const FileEntry &entry) {
    if (const auto key = Digest::fromHex(entry.name))
      pins.insert(*key);
  });
  return pins;
}

Collected Quota::evict(uint64_t most, uint64_t aim, bool thorough) {
  Scan found;
  scan(found);
  Collected result;
  result.bytes = found.total;
  if (result.bytes <= most && !thorough)
    return result;

  UsageTable table = sumUp(found);
  const auto pins = pinned();
  sortForEviction(found.files);
  markExcess(found.files, limitBytes);
  for (Candidate &file : found.files)
    if (file.rank == Rank::record)
      file.priority = table.priority(file.key, file.charge);
  sortForEviction(found.files);

  const uint64_t start = result.bytes;
  bool changed = false;
  std::set<std::string> shards;
  for (const Candidate &file : found.files) {
    const bool garbage = file.rank <= Rank::quarantine && thorough;
    const uint64_t enough =
        start <= most || file.rank == Rank::knowledge ? most : aim;
    if ((result.bytes <= enough && !garbage) ||
        (file.rank == Rank::record && pins.contains(file.key)) ||
        !removeFile(file.path))
      continue;
    result.bytes -= std::min(result.bytes, file.charge);
    result.freedBytes += file.charge;
    ++result.removedFiles;
    if (file.rank >= Rank::excessKnowledge)
      shards.insert(directoryOf(file.path));
    if (file.rank == Rank::record) {
      table.policy().evicted(file.priority);
      table.forget(file.key);
      evicted.fetch_add(1, std::memory_order_relaxed);
      changed = true;
    }
  }
  // Whoever is about to rename a record into one makes it again.
  for (const std::string &shard : shards)
    if (guarded("store", "rmdir", [&] { return rmdir(shard.c_str()); }) == 0) {
      result.bytes -= std::min<uint64_t>(result.bytes, 4096);
      result.freedBytes += 4096;
    }
  if (changed) {
    if (Status saved = table.save(usagePath, writeOptions()); !saved)
      log(LogLevel::debug, "store: {}", saved.error().message);
  }
  return result;
}

AtomicWriteOptions Quota::writeOptions() const {
  AtomicWriteOptions options;
  options.temporaryDirectory = location.version + "/tmp";
  options.failpoints = "store";
  options.mode = 0600;
  return options;
}

Expected<PendingFile> Quota::reserve(const std::string &path, uint64_t bytes,
                                     bool sync) {
  const std::string shard = directoryOf(path);
  const uint64_t room = usable();
  uint64_t needed = charge(bytes) + 4096; // the shard may leave with eviction
  if (needed > room)
    return makeError(Code::exhausted,
                     "a record of {} bytes is over the limit of {} bytes",
                     bytes, limitBytes);
  PGKP_ASSIGN(FileLock held, lock());
  std::optional<uint64_t> total = readLedger();
  if (!total || *total + needed > room) {
    const uint64_t most = room - needed;
    // Some more than is needed, so that not every write counts everything.
    total = evict(most, most - std::min(most, limitBytes / 10), false).bytes;
    if (*total > most)
      return makeError(
          Code::exhausted,
          "{} bytes of at most {} are in use and cannot be evicted", *total,
          limitBytes);
  }
  struct stat info;
  if (guarded("store", "lstat", [&] { return lstat(shard.c_str(), &info); }) ==
      0)
    needed -= 4096;
  PGKP_TRY(writeLedger(*total + needed));
  PGKP_TRY(makePrivateDirectory(shard));
  AtomicWriteOptions options = writeOptions();
  options.sync = sync;
  return PendingFile::create(path, bytes, options);
}

void Quota::giveBack(uint64_t bytes) {
  const Expected<FileLock> held = lock();
  if (!held)
    return; // counted anew at the limit
  if (const std::optional<uint64_t> known = readLedger())
    (void)writeLedger(*known - std::min(*known, charge(bytes)));
}

Expected<Collected> Quota::collect(std::optional<uint64_t> limit) {
  PGKP_ASSIGN(FileLock held, lock());
  const uint64_t most = limit.value_or(usable());
  const Collected result = evict(most, most, true);
  PGKP_TRY(writeLedger(result.bytes));
  forEachFile(location.locks, [&](const FileEntry &entry) {
    if (!entry.name.ends_with(".lease"))
      return;
    // Removed while held, as whoever takes it looks whether it is still there.
    if (auto idle = FileLock::tryTake(entry.path))
      removeFile(entry.path);
  });
  return result;
}

UsageTable Quota::usage() {
  Scan found;
  scan(found);
  usageLog.flush();
  UsageTable table = UsageTable::load(usagePath);
  if (auto bytes = readFile(logPath))
    table.apply(parseUseNotes(*bytes), [&](const Digest &key) {
      const auto it = found.sizes.find(key);
      return it == found.sizes.end() ? 0 : it->second;
    });
  return table;
}

} // namespace pgkp::rt
