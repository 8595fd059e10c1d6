// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/Store.h"

#include "base/Failpoint.h"
#include "base/File.h"
#include "base/LogCapture.h"
#include "base/TempDir.h"
#include "schema/Envelope.h"
#include "schema/SkewedFile.h"
#include "schema/TestBundle.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace pgkp;
using namespace pgkp::rt;
namespace fs = std::filesystem;

namespace {
Digest key(int64_t n) { return toDigest(*fixtures::variant(n)->content_key); }

std::vector<uint8_t> bytesOf(int64_t n, size_t codeBytes = 64) {
  return fixtures::pack(*fixtures::variant(n, codeBytes));
}

struct StoreTest : ::testing::Test {
  ~StoreTest() override { clearFailpoints(); }

  std::unique_ptr<Store> open(uint64_t memoryLimit = 1 << 20) {
    StoreOptions options;
    options.directory = path;
    options.memoryLimitBytes = memoryLimit;
    options.clock = &clock;
    return Store::open(options);
  }
  std::string recordPath(const char *folder, const Digest &k) const {
    return path + "/v2/" + folder + "/" + k.hex().substr(0, 2) + "/" + k.hex() +
           ".pgkp";
  }
  size_t filesUnder(const std::string &folder) const {
    size_t count = 0;
    for (auto &entry : fs::recursive_directory_iterator(path + "/v2/" + folder))
      count += entry.is_regular_file();
    return count;
  }

  TempDir dir;
  std::string path = dir / "cache";
  ManualClock clock{kNsPerSecond};
  LogCapture log;
};
} // namespace

TEST_F(StoreTest, MissPutHitAndHitAgainInAnotherProcess) {
  {
    auto store = open();
    EXPECT_EQ(store->get(key(1)).error().code, Code::notFound);
    EXPECT_FALSE(store->contains(key(1)));
    ASSERT_TRUE(store->put(key(1), bytesOf(1)));
    EXPECT_TRUE(store->contains(key(1)));
    auto artifact = store->get(key(1));
    ASSERT_TRUE(artifact);
    EXPECT_EQ((*artifact)->artifact().kernel()->str(), "matmul");
    EXPECT_EQ(store->stats().memoryHits, 1u);
    EXPECT_EQ(store->stats().misses, 1u);
  }
  auto store = open();
  EXPECT_TRUE(store->contains(key(1)));
  auto artifact = store->get(key(1));
  ASSERT_TRUE(artifact);
  const std::vector<uint8_t> expected = bytesOf(1);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                         (*artifact)->payload().begin(),
                         (*artifact)->payload().end()));
  EXPECT_EQ(store->stats().diskHits, 1u);
  EXPECT_TRUE(log.lines().empty());
}

TEST_F(StoreTest, DirectoryIsPrivateWhateverTheUmask) {
  const mode_t before = umask(0);
  auto store = open();
  ASSERT_TRUE(store->put(key(1), bytesOf(1)));
  umask(before);
  for (const std::string &name : {path, path + "/v2", path + "/v2/artifacts"}) {
    struct stat info;
    ASSERT_EQ(stat(name.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u) << name;
  }
  struct stat info;
  ASSERT_EQ(stat(recordPath("artifacts", key(1)).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(StoreTest, EveryDamagedByteIsFoundAndPutAside) {
  ASSERT_TRUE(open()->put(key(1), bytesOf(1)));
  const std::string record = recordPath("artifacts", key(1));
  const std::vector<uint8_t> good = readFile(record).value();
  for (size_t i = 0; i < good.size(); ++i) {
    std::vector<uint8_t> bad = good;
    bad[i] ^= static_cast<uint8_t>(1 + i % 255);
    overwrite(record, bad);
    auto store = open();
    auto artifact = store->get(key(1));
    ASSERT_FALSE(artifact) << i;
    EXPECT_EQ(artifact.error().code, Code::corrupt) << i;
    EXPECT_EQ(store->stats().corrupt, 1u);
    EXPECT_EQ(store->stats().misses, 0u);
    EXPECT_FALSE(fs::exists(record));
    EXPECT_EQ(store->get(key(1)).error().code, Code::notFound);
  }
  EXPECT_EQ(filesUnder("quarantine"), 1u); // the last one
  auto store = open();
  ASSERT_TRUE(store->put(key(1), bytesOf(1))); // rebuilt
  EXPECT_TRUE(open()->get(key(1)));
}

// What is not an artifact: as every reader of its kind sees it.
TEST_F(StoreTest, EveryDamagedByteOfTheOtherKindsIsFound) {
  {
    auto store = open();
    ASSERT_TRUE(
        store->putBundle(key(1), fixtures::pack(fixtures::testBundle())));
    TuningResult tuning;
    tuning.contentKey = key(1);
    tuning.device = "host";
    ASSERT_TRUE(store->putTuning(tuning));
    ASSERT_TRUE(store->put(key(1), bytesOf(1))); // and its recipe
  }
  for (const char *folder : {"bundles", "tuning", "recipes"}) {
    std::string record;
    for (auto &entry : fs::recursive_directory_iterator(path + "/v2/" + folder))
      if (entry.is_regular_file())
        record = entry.path();
    const std::vector<uint8_t> good = readFile(record).value();
    auto store = open();
    for (size_t i = 0; i < good.size(); ++i) {
      std::vector<uint8_t> bad = good;
      bad[i] ^= static_cast<uint8_t>(1 + i % 255);
      overwrite(record, bad);
      ASSERT_EQ(store->verify()->problems.size(), 1u) << folder << i;
      ASSERT_FALSE(fs::exists(record)) << folder << i;
    }
    for (const size_t size : {good.size() - 1, size_t{63}, size_t{0}}) {
      overwrite(record, {good.data(), size});
      EXPECT_EQ(store->verify()->problems.size(), 1u) << folder << size;
    }
    overwrite(record, good);
    EXPECT_TRUE(store->verify()->problems.empty()) << folder;
  }
}

TEST_F(StoreTest, FullStoreStaysInItsLimit) {
  constexpr uint64_t limit = 2 << 20;
  // What `du` tells, but for lock files, which come and go with their holders.
  auto usage = [&] {
    uint64_t total = 0;
    for (auto &entry : fs::recursive_directory_iterator(path))
      if (entry.path().string().find("/locks/") == std::string::npos) {
        struct stat info;
        EXPECT_EQ(lstat(entry.path().c_str(), &info), 0);
        total += (static_cast<uint64_t>(info.st_size) + 4095) / 4096 * 4096;
      }
    return total;
  };
  StoreOptions options;
  options.directory = path;
  options.diskLimitBytes = limit;
  auto first = Store::open(options), second = Store::open(options);
  size_t full = 0;
  for (int64_t n = 0; n < 400; ++n) {
    Store &store = n % 2 ? *first : *second;
    const size_t codeBytes = static_cast<size_t>(n * 7919 % 20'000);
    ASSERT_TRUE(store.put(key(n), bytesOf(n, codeBytes)));
    if (n % 10 == 0) {
      ASSERT_LE(usage(), limit) << n;
      full += usage() > limit * 3 / 4;
    }
  }
  EXPECT_GT(full, 10u); // it is used, too
  EXPECT_TRUE(first->verify()->problems.empty());
  EXPECT_GT(first->stats().diskEvictions + second->stats().diskEvictions, 50u);
  EXPECT_EQ(first->stats().writeErrors + second->stats().writeErrors, 0u);
}

TEST_F(StoreTest, SealedRecordUnderAnotherNameIsCorrupt) {
  auto store = open();
  ASSERT_TRUE(store->put(key(1), bytesOf(1)));
  fs::create_directories(
      fs::path(recordPath("artifacts", key(2))).parent_path());
  fs::copy_file(recordPath("artifacts", key(1)),
                recordPath("artifacts", key(2)));
  EXPECT_EQ(store->get(key(2)).error().code, Code::corrupt);
  EXPECT_FALSE(fs::exists(recordPath("artifacts", key(2))));
  EXPECT_EQ(store->stats().corrupt, 1u);
}

TEST_F(StoreTest, RecordOfAnotherFormatIsMadeAgainInMemoryAndLeftAlone) {
  ASSERT_TRUE(open()->put(key(1), bytesOf(1)));
  const std::string record = recordPath("artifacts", key(1));
  const std::vector<uint8_t> foreign =
      fixtures::withFormat(readFile(record).value(), 9);
  overwrite(record, foreign);
  auto store = open();
  EXPECT_FALSE(store->contains(key(1))); // so that somebody compiles it
  EXPECT_EQ(store->get(key(1)).error().code, Code::unsupported);
  ASSERT_TRUE(store->put(key(1), bytesOf(1)));
  EXPECT_TRUE(store->contains(key(1)));
  EXPECT_TRUE(store->get(key(1)));
  EXPECT_EQ(store->stats().writeErrors, 0u);
  EXPECT_EQ(readFile(record).value(), foreign);
  EXPECT_EQ(filesUnder("quarantine"), 0u);
}

TEST_F(StoreTest, PutRefusesWhatDoesNotVerify) {
  auto store = open();
  EXPECT_EQ(store->put(key(2), bytesOf(1)).error().code, Code::corrupt);
  EXPECT_EQ(store->put(key(1), {1, 2, 3}).error().code, Code::corrupt);
  auto table = fixtures::variant(1);
  table->code[3] ^= 1; // not what was hashed
  EXPECT_EQ(store->put(key(1), fixtures::pack(*table)).error().code,
            Code::corrupt);
  EXPECT_FALSE(store->contains(key(1)));
}

TEST_F(StoreTest, ReadErrorIsNotAMiss) {
  ASSERT_TRUE(open()->put(key(1), bytesOf(1)));
  auto store = open();
  for (const char *call : {"store.open", "store.stat", "store.read"}) {
    setFailpoint(call, FailpointAction::error, EIO);
    EXPECT_EQ(store->get(key(1)).error().code, Code::io) << call;
  }
  EXPECT_EQ(store->stats().readErrors, 3u);
  EXPECT_EQ(store->stats().misses, 0u);
  EXPECT_EQ(store->stats().corrupt, 0u);
  EXPECT_TRUE(store->get(key(1))); // and the record was left alone
}

TEST_F(StoreTest, FullDiskFallsBackToMemorySaysSoOnceAndTriesAgainLater) {
  auto store = open();
  setFailpoint("store.write", FailpointAction::error, ENOSPC, 0);
  for (int n = 1; n <= 3; ++n) {
    ASSERT_TRUE(store->put(key(n), bytesOf(n)));
    EXPECT_TRUE(store->get(key(n)));
  }
  EXPECT_EQ(log.count("cannot be written"), 1u);
  EXPECT_EQ(log.count(path), 1u);
  EXPECT_EQ(filesUnder("artifacts"), 0u);
  EXPECT_EQ(filesUnder("tmp"), 0u);
  EXPECT_EQ(store->stats().writeErrors, 3u);
  clearFailpoints();
  ASSERT_TRUE(store->put(key(4), bytesOf(4))); // the disk rests
  EXPECT_EQ(filesUnder("artifacts"), 0u);
  clock.advance(61 * kNsPerSecond);
  ASSERT_TRUE(store->put(key(5), bytesOf(5)));
  EXPECT_EQ(filesUnder("artifacts"), 1u);
  EXPECT_EQ(log.lines().size(), 1u);
}

TEST_F(StoreTest, EveryFailedWriteCallLeavesNoTrace) {
  for (const char *call :
       {"store.create", "store.write", "store.fsync", "store.rename"}) {
    auto store = open();
    setFailpoint(call, FailpointAction::error, EACCES);
    ASSERT_TRUE(store->put(key(1), bytesOf(1))) << call;
    EXPECT_EQ(store->stats().writeErrors, 1u) << call;
    EXPECT_EQ(filesUnder("artifacts") + filesUnder("tmp"), 0u) << call;
  }
}

TEST_F(StoreTest, KilledAtAnyCallTheRecordIsWholeOrAbsent) {
  // Which calls are there? Ask a run that is not disturbed.
  std::vector<std::string> calls;
  {
    recordFailpoints(true);
    auto store = open();
    ASSERT_TRUE(store->put(key(99), bytesOf(99)));
    recordFailpoints(false);
    calls = failpointsSeen();
    clearFailpoints();
  }
  ASSERT_GE(calls.size(), 5u);
  size_t killed = 0;
  for (const std::string &call : calls)
    for (unsigned nth = 1; nth <= 3; ++nth) {
      fs::remove_all(path);
      const pid_t child = fork();
      if (child == 0) {
        setFailpoint(call, FailpointAction::kill, 0, nth);
        auto store = open();
        (void)store->put(key(1), bytesOf(1));
        (void)store->put(key(2), bytesOf(2));
        _exit(0);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
      auto store = open();
      for (int n : {1, 2}) {
        auto artifact = store->get(key(n));
        if (!artifact) {
          EXPECT_EQ(artifact.error().code, Code::notFound) << call << nth;
        }
        ASSERT_TRUE(store->put(key(n), bytesOf(n)));
      }
      EXPECT_EQ(filesUnder("artifacts"), 2u) << call << nth;
      EXPECT_EQ(filesUnder("quarantine"), 0u) << call << nth;
    }
  EXPECT_GE(killed, calls.size());
}

TEST_F(StoreTest, StaleTemporariesAreRemovedFreshOnesAreNot) {
  open();
  const std::string old = path + "/v2/tmp/.tmp-1-1-1",
                    fresh = path + "/v2/tmp/.tmp-2-2-2";
  ASSERT_TRUE(writeFileAtomically(old, {}));
  ASSERT_TRUE(writeFileAtomically(fresh, {}));
  fs::last_write_time(old,
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  open();
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh));
}

TEST_F(StoreTest, RefusesSymlinksForeignModesAndFiles) {
  fs::create_directory(dir / "real");
  fs::permissions(dir / "real", fs::perms::owner_all);
  fs::create_symlink(dir / "real", path);
  auto store = open();
  ASSERT_TRUE(store->problem());
  EXPECT_EQ(store->problem()->code, Code::permission);
  EXPECT_NE(store->problem()->message.find("symbolic link"), std::string::npos);
  EXPECT_TRUE(store->directory().empty());
  EXPECT_TRUE(fs::is_empty(dir / "real"));
  EXPECT_EQ(log.lines().size(), 1u);
  ASSERT_TRUE(store->put(key(1), bytesOf(1))); // in memory
  EXPECT_TRUE(store->get(key(1)));

  fs::remove(path);
  fs::create_directory(path);
  for (fs::perms open_ : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(path, fs::perms::owner_all | open_);
    auto refused = open();
    ASSERT_TRUE(refused->problem());
    EXPECT_NE(refused->problem()->message.find("can be written by others"),
              std::string::npos);
  }
  fs::remove(path);
  ASSERT_TRUE(writeFileAtomically(path, {}));
  EXPECT_TRUE(open()->problem());
}

// Root is above permissions, so the real thing needs another user.
TEST_F(StoreTest, UnprivilegedUserGetsMemoryOnlyOrReadOnly) {
  if (geteuid() != 0)
    GTEST_SKIP() << "needs root to become somebody else";
  fs::permissions(dir.path, fs::perms::all);
  ASSERT_TRUE(open()->put(key(1), bytesOf(1)));
  fs::permissions(path, fs::perms::owner_all | fs::perms::group_read |
                            fs::perms::group_exec | fs::perms::others_read |
                            fs::perms::others_exec);
  for (auto &entry : fs::recursive_directory_iterator(path))
    fs::permissions(entry, fs::perms::owner_all | fs::perms::others_read |
                               fs::perms::others_exec);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0)
      _exit(9);
    auto store = open(); // root's directory: read, not written
    if (store->problem() || !store->get(key(1)))
      _exit(1);
    if (!store->put(key(2), bytesOf(2)) || !store->get(key(2)) ||
        log.count("cannot be written") != 1)
      _exit(2);
    path = dir / "cache/v2/mine"; // cannot be made
    auto memory = open();
    if (!memory->problem() || log.count("cannot be used") != 1 ||
        log.count("v2/mine") < 1)
      _exit(3);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(StoreTest, ReadOnlyDiskServesReads) {
  ASSERT_TRUE(open()->put(key(1), bytesOf(1)));
  setFailpoint("store.mkdir", FailpointAction::error, EROFS, 0);
  setFailpoint("store.create", FailpointAction::error, EROFS, 0);
  auto store = open();
  EXPECT_FALSE(store->problem());
  EXPECT_TRUE(store->get(key(1)));
  ASSERT_TRUE(store->put(key(2), bytesOf(2)));
  EXPECT_TRUE(store->get(key(2)));
  EXPECT_EQ(log.lines().size(), 1u);
}

TEST_F(StoreTest, MemoryTierStaysInItsLimitAndHoldersPin) {
  const size_t one = bytesOf(1, 4096).size();
  auto store = open(3 * one);
  std::shared_ptr<const StoredArtifact> first =
      store->put(key(1), bytesOf(1, 4096)).value();
  for (int n = 2; n <= 3; ++n)
    ASSERT_TRUE(store->put(key(n), bytesOf(n, 4096)));
  ASSERT_TRUE(store->get(key(1))); // now the most recent
  ASSERT_TRUE(store->put(key(4), bytesOf(4, 4096)));
  StoreStats stats = store->stats();
  EXPECT_EQ(stats.evictions, 1u);
  EXPECT_EQ(stats.memoryRecords, 3u);
  EXPECT_LE(stats.memoryBytes, 3 * one);
  const uint64_t diskHits = stats.diskHits;
  ASSERT_TRUE(store->get(key(1)));
  EXPECT_EQ(store->stats().diskHits, diskHits);
  ASSERT_TRUE(store->get(key(2))); // the evicted one comes back from disk
  EXPECT_EQ(store->stats().diskHits, diskHits + 1);
  for (int n = 5; n <= 9; ++n)
    ASSERT_TRUE(store->put(key(n), bytesOf(n, 4096)));
  EXPECT_EQ(first->artifact().kernel()->str(), "matmul");
}

TEST_F(StoreTest, ListAndErase) {
  auto store = open();
  for (int n = 1; n <= 20; ++n)
    ASSERT_TRUE(store->put(key(n), bytesOf(n)));
  ASSERT_TRUE(writeFileAtomically(path + "/v2/artifacts/note.txt", {}));
  auto list = store->list();
  ASSERT_TRUE(list);
  EXPECT_EQ(list->size(), 20u);
  EXPECT_TRUE((*list)[0].onDisk);
  EXPECT_GT((*list)[0].bytes, kEnvelopeBytes);
  ASSERT_TRUE(store->erase(key(7)));
  EXPECT_EQ(store->erase(key(7)).error().code, Code::notFound);
  EXPECT_EQ(store->get(key(7)).error().code, Code::notFound);
  EXPECT_EQ(store->list()->size(), 19u);
}

TEST_F(StoreTest, MemoryOnlyTouchesNoDisk) {
  path = "none";
  auto store = open();
  EXPECT_FALSE(store->problem());
  ASSERT_TRUE(store->put(key(1), bytesOf(1)));
  EXPECT_TRUE(store->get(key(1)));
  EXPECT_EQ(store->list()->size(), 1u);
  EXPECT_FALSE((*store->list())[0].onDisk);
  ASSERT_TRUE(store->putBundle(key(5), fixtures::pack(fixtures::testBundle())));
  EXPECT_TRUE(store->getBundle(key(5)));
  EXPECT_FALSE(fs::exists("none"));
}

TEST_F(StoreTest, RemovedWhileInUse) {
  auto store = open();
  ASSERT_TRUE(store->put(key(1), bytesOf(1)));
  fs::remove_all(path);
  ASSERT_TRUE(store->put(key(2), bytesOf(2)));
  EXPECT_TRUE(open()->get(key(2)));
  EXPECT_TRUE(log.lines().empty());
}

TEST_F(StoreTest, Bundles) {
  const std::vector<uint8_t> bundle = fixtures::pack(fixtures::testBundle());
  EXPECT_EQ(open()->getBundle(key(1)).error().code, Code::notFound);
  ASSERT_TRUE(open()->putBundle(key(1), bundle));
  auto found = open()->getBundle(key(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, bundle);
  EXPECT_TRUE(Module::load(std::move(*found)));
  EXPECT_EQ(open()->putBundle(key(2), bytesOf(2)).error().code, Code::corrupt);
}

TEST_F(StoreTest, TuningResultsOutliveTheProcess) {
  TuningResult result;
  result.contentKey = key(1);
  result.key = key(2);
  result.device = "host x86-64";
  result.genericNs = 1000;
  result.variantNs = 400;
  result.launches = 24;
  result.extents = {16, 64};
  ASSERT_TRUE(open()->putTuning(result));
  auto store = open();
  auto found = store->getTuning(key(1), "host x86-64");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->key, key(2));
  EXPECT_EQ(found->variantNs, 400);
  EXPECT_EQ(found->extents, result.extents);
  EXPECT_EQ(found->launches, 24u);
  EXPECT_EQ(store->getTuning(key(1), "another").error().code, Code::notFound);
  EXPECT_EQ(store->getTuning(key(3), "host x86-64").error().code,
            Code::notFound);
  result.genericNs = -1;
  EXPECT_FALSE(store->putTuning(result));
}

TEST_F(StoreTest, ManyThreadsAndProcesses) {
  std::vector<pid_t> children;
  for (int process = 0; process < 3; ++process) {
    const pid_t child = fork();
    if (child == 0) {
      auto store = open(8192);
      bool good = true;
      for (int round = 0; round < 3; ++round)
        for (int n = 0; n < 16; ++n) {
          auto artifact = store->get(key(n));
          if (!artifact)
            good &= artifact.error().code == Code::notFound &&
                    store->put(key(n), bytesOf(n)).has_value();
        }
      _exit(good && store->stats().corrupt == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  {
    auto store = open(8192);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int n = 0; n < 16; ++n)
          if (!store->get(key(n))) {
            EXPECT_TRUE(store->put(key(n), bytesOf(n)));
          }
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(store->stats().corrupt, 0u);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  auto store = open();
  for (int n = 0; n < 16; ++n)
    EXPECT_TRUE(store->get(key(n)));
}

TEST(StoreDirectory, FollowsTheEnvironment) {
  unsetenv("PGKP_CACHE_DIR");
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  setenv("HOME", "/home/u", 1);
  EXPECT_EQ(defaultStoreDirectory(), "/xdg/pgkp");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(defaultStoreDirectory(), "/home/u/.cache/pgkp");
  setenv("PGKP_CACHE_DIR", "none", 1);
  EXPECT_EQ(defaultStoreDirectory(), "none");
  unsetenv("PGKP_CACHE_DIR");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(defaultStoreDirectory(), "");
}
