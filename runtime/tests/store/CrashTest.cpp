// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The process is killed before and after every system call that a store makes,
// once for each time that the call is made; then the store is opened again.
#include "base/Failpoint.h"
#include "base/File.h"
#include "base/LogCapture.h"
#include "base/TempDir.h"
#include "schema/TestBundle.h"
#include "store/ProfileFile.h"
#include "store/Quota.h"
#include "store/Store.h"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace pgkp;
using namespace pgkp::rt;
namespace fs = std::filesystem;

namespace {
Digest key(int64_t n) { return toDigest(*fixtures::variant(n)->content_key); }
std::vector<uint8_t> bytesOf(int64_t n) {
  return fixtures::pack(*fixtures::variant(n));
}

schema::RecipeT recipe(int64_t n) {
  const auto table = fixtures::variant(n);
  schema::RecipeT result;
  result.content_key = std::make_unique<schema::Digest>(*table->content_key);
  result.kernel_hash = std::make_unique<schema::Digest>(*table->kernel_hash);
  result.kernel = table->kernel;
  result.facts = table->facts;
  result.target = std::make_unique<schema::TargetT>(*table->target);
  result.format = table->format;
  result.producer = table->producer;
  return result;
}

Digest recipeKeyOf(int64_t n) {
  const auto table = fixtures::variant(n);
  flatbuffers::FlatBufferBuilder target;
  target.Finish(schema::Target::Pack(target, table->target.get()));
  return recipeKey(
      toDigest(*table->kernel_hash), table->facts, nullptr,
      *flatbuffers::GetRoot<schema::Target>(target.GetBufferPointer()),
      table->format, schema::Pipeline::full);
}

TuningResult tuning() {
  TuningResult result;
  result.contentKey = key(1);
  result.device = "host";
  result.genericNs = 10;
  result.variantNs = 5;
  return result;
}

/// Syncing costs nothing there; what a power failure leaves is not tested.
std::string fastDirectory() {
  return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "";
}

struct CrashTest : ::testing::Test {
  using Operation = std::function<void(CrashTest &, Store &)>;

  CrashTest() {
    if (!fastDirectory().empty())
      setenv("TMPDIR", fastDirectory().c_str(), 1);
    dir = std::make_unique<TempDir>();
    unsetenv("TMPDIR");
    start = *dir / "start";
    path = *dir / "cache";
    finished =
        new (mmap(nullptr, sizeof(*finished), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<int>(0);
  }
  ~CrashTest() override {
    clearFailpoints();
    munmap(finished, sizeof *finished);
  }

  std::unique_ptr<Store> open(uint64_t limit = 1 << 20) {
    StoreOptions options;
    options.directory = path;
    options.memoryLimitBytes = 0; // so that reads are reads of the disk
    options.diskLimitBytes = limit;
    return Store::open(options);
  }
  void restore() {
    fs::remove_all(path);
    if (fs::exists(start)) {
      fs::copy(start, path, fs::copy_options::recursive);
      fs::permissions(path, fs::perms::owner_all);
      for (auto &entry : fs::recursive_directory_iterator(path))
        fs::permissions(entry, fs::perms::group_all | fs::perms::others_all,
                        fs::perm_options::remove);
    }
    if (fs::exists(path + "/v2/tmp/.tmp-1-1-1"))
      fs::last_write_time(path + "/v2/tmp/.tmp-1-1-1",
                          fs::file_time_type::clock::now() -
                              std::chrono::hours(2));
    *finished = 0;
  }
  /// What `du` tells, but for lock files.
  uint64_t charged() const {
    uint64_t total = 0;
    if (!fs::exists(path))
      return 0;
    for (auto &entry : fs::recursive_directory_iterator(path))
      if (entry.path().string().find("/locks/") == std::string::npos)
        total += entry.is_directory() ? 4096 : Quota::charge(entry.file_size());
    return total;
  }
  void runAll(const std::vector<Operation> &operations, uint64_t limit) {
    auto store = open(limit);
    for (const Operation &operation : operations) {
      operation(*this, *store);
      ++*finished;
    }
  }

  /// Kills at each hit of each failpoint; `check` sees the store opened again.
  /// \returns the number of kills.
  size_t killEverywhere(
      const std::vector<Operation> &operations, uint64_t limit,
      const std::function<void(Store &, const std::string &)> &check) {
    restore();
    recordFailpoints(true);
    runAll(operations, limit);
    recordFailpoints(false);
    const std::vector<std::string> points = failpointsSeen();
    clearFailpoints();
    size_t kills = 0;
    for (const std::string &point : points)
      for (unsigned nth = 1;; ++nth) {
        restore();
        const pid_t child = fork();
        if (child == 0) {
          setFailpoint(point, FailpointAction::kill, 0, nth);
          runAll(operations, limit);
          _exit(0);
        }
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        if (!WIFSIGNALED(status)) {
          EXPECT_EQ(status, 0) << point << "@" << nth;
          break; // there is no n-th hit
        }
        ++kills;
        const std::string where =
            fmt::format("killed at {}, hit {}, in step {}", point, nth,
                        finished->load() + 1);
        EXPECT_LE(charged(), limit) << where;
        auto store = open(limit);
        check(*store, where);
        if (HasFailure())
          return kills;
      }
    return kills;
  }

  std::unique_ptr<TempDir> dir;
  std::string start, path;
  std::atomic<int> *finished; ///< steps, of the process that gets killed
  LogCapture log;
};
} // namespace

TEST_F(CrashTest, EveryRecordVerifiesOrIsGoneAndNothingElseIsLost) {
  {
    path.swap(start);
    auto store = open();
    for (int64_t n : {11, 12, 13})
      ASSERT_TRUE(store->put(key(n), bytesOf(n)));
    ASSERT_TRUE(store->pin(key(12), true));
    path.swap(start);
  }
  const std::string hex = key(13).hex();
  const std::string damaged =
      start + "/v2/artifacts/" + hex.substr(0, 2) + "/" + hex + ".pgkp";
  std::vector<uint8_t> bytes = readFile(damaged).value();
  bytes[100] ^= 1;
  overwrite(damaged, bytes);
  overwrite(start + "/v2/tmp/.tmp-1-1-1", {});

  enum Step {
    put1 = 1,
    put2,
    bundle,
    tune,
    ask,
    refuse,
    lease,
    pin,
    unpin,
    read,
    damagedRead,
    rebuild,
    erase,
    look,
    gc
  };
  const std::vector<Operation> operations = {
      [](CrashTest &, Store &s) { (void)s.put(key(1), bytesOf(1)); },
      [](CrashTest &, Store &s) { (void)s.put(key(2), bytesOf(2)); },
      [](CrashTest &, Store &s) {
        (void)s.putBundle(key(20), fixtures::pack(fixtures::testBundle()));
      },
      [](CrashTest &, Store &s) { (void)s.putTuning(tuning()); },
      [](CrashTest &, Store &s) { s.noteAsked(recipe(5)); },
      [](CrashTest &, Store &s) { s.noteRefused(recipe(5), "no"); },
      [](CrashTest &, Store &s) { (void)s.lease(key(6)); },
      [](CrashTest &, Store &s) { (void)s.pin(key(1), true); },
      [](CrashTest &, Store &s) { (void)s.pin(key(1), false); },
      [](CrashTest &, Store &s) { (void)s.get(key(11)); },
      [](CrashTest &, Store &s) { (void)s.get(key(13)); },
      [](CrashTest &, Store &s) { (void)s.put(key(13), bytesOf(13)); },
      [](CrashTest &, Store &s) { (void)s.erase(key(12)); },
      [](CrashTest &, Store &s) {
        (void)s.verify();
        (void)s.listUses();
        (void)s.contents();
      },
      [](CrashTest &, Store &s) { (void)s.collect(std::nullopt); },
  };
  ASSERT_EQ(operations.size(), size_t{gc});

  auto check = [&](Store &store, const std::string &where) {
    const int done = *finished;
    auto holds = [&](int64_t n) {
      auto found = store.get(key(n));
      return found && std::ranges::equal((*found)->payload(), bytesOf(n));
    };
    // Before anything is read: what was damaged from outside may still be.
    auto report = store.verify();
    ASSERT_TRUE(report) << where;
    for (const auto &problem : report->problems)
      EXPECT_TRUE(problem.key == key(13) && done < rebuild) << where;
    EXPECT_EQ(store.verify()->problems.size(), 0u) << where;

    EXPECT_TRUE(holds(11)) << where;
    EXPECT_TRUE(holds(1) || done < put1) << where;
    EXPECT_TRUE(holds(2) || done < put2) << where;
    EXPECT_TRUE(store.getBundle(key(20)) || done < bundle) << where;
    EXPECT_TRUE(store.getTuning(key(1), "host") || done < tune) << where;
    auto known = store.getRecipe(recipeKeyOf(5));
    EXPECT_TRUE(known || done < ask) << where;
    EXPECT_TRUE((known && known->failure == "no") || done < refuse) << where;
    EXPECT_TRUE(holds(12) || done + 1 >= erase) << where;
    EXPECT_TRUE(!store.contains(key(12)) || done < erase) << where;
    EXPECT_TRUE(holds(13) || done < rebuild) << where;
    for (const auto &[record, use] : store.listUses()) {
      if (record.key == key(12)) {
        EXPECT_TRUE(use.pinned) << where;
      }
      if (record.key == key(1)) {
        EXPECT_TRUE(!use.pinned || done + 1 == pin || done == pin) << where;
      }
    }
    // Nothing that a dead process held is in the way.
    EXPECT_TRUE(store.lease(key(6))) << where;
    ASSERT_TRUE(store.put(key(30), bytesOf(30))) << where;
    EXPECT_TRUE(holds(30)) << where;
    EXPECT_EQ(store.stats().writeErrors, 0u) << where;
    EXPECT_TRUE(store.collect(std::nullopt)) << where;
  };
  const size_t kills = killEverywhere(operations, 1 << 20, check);
  EXPECT_GE(kills, 300u);
  RecordProperty("kills", static_cast<int>(kills));
}

TEST_F(CrashTest, FirstOpenAndEvictionStayWholeAndInTheLimit) {
  constexpr uint64_t limit = 52 * 4096;
  std::vector<Operation> operations;
  for (int64_t n = 1; n <= 11; ++n)
    operations.push_back([n](CrashTest &, Store &s) {
      (void)s.put(key(n), bytesOf(n));
      (void)s.get(key(n));
    });
  operations.push_back(
      [](CrashTest &, Store &s) { (void)s.collect(16 * 4096); });
  auto check = [&](Store &store, const std::string &where) {
    auto report = store.verify();
    ASSERT_TRUE(report) << where;
    EXPECT_TRUE(report->problems.empty()) << where;
    for (int64_t n = 21; n <= 24; ++n)
      ASSERT_TRUE(store.put(key(n), bytesOf(n))) << where;
    EXPECT_TRUE(store.get(key(24))) << where;
    EXPECT_EQ(store.stats().writeErrors, 0u) << where;
    EXPECT_LE(charged(), limit) << where;
  };
  const size_t kills = killEverywhere(operations, limit, check);
  EXPECT_GE(kills, 300u);
  RecordProperty("kills", static_cast<int>(kills));
}

TEST_F(CrashTest, ProfilesAreOldOrNew) {
  schema::ProfileT profile;
  profile.format_version = 1;
  profile.runs = 1;
  fs::create_directory(start);
  ASSERT_TRUE(saveProfile(start + "/p", profile));
  const std::vector<Operation> operations = {[](CrashTest &t, Store &) {
    schema::ProfileT run;
    run.format_version = 1;
    run.runs = 5;
    (void)saveProfileMerged(t.path + "/p", run);
  }};
  const size_t kills =
      killEverywhere(operations, 1 << 20, [&](Store &, const std::string &w) {
        auto found = loadProfile(path + "/p");
        ASSERT_TRUE(found) << w;
        EXPECT_TRUE(found->runs == 1 ||
                    std::abs(found->runs - (5 + kProfileAging)) < 1e-9)
            << w;
        EXPECT_TRUE(found->runs > 1 || *finished == 0) << w;
      });
  EXPECT_GE(kills, 20u);
}
