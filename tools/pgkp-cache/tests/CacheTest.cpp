// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the tool itself, over stores that the runtime has filled.
#include "base/File.h"
#include "base/TempDir.h"
#include "schema/Envelope.h"
#include "schema/TestBundle.h"
#include "store/Pack.h"
#include "store/ProfileFile.h"
#include "store/Store.h"

#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

using namespace pgkp;
using namespace pgkp::rt;
using nlohmann::json;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

namespace {
struct Ran {
  int code = -1;
  std::string out, err;
  json value() const { return json::parse(out); }
};

struct CacheTool : ::testing::Test {
  CacheTool() {
    unsetenv("PGKP_FAILPOINTS");
    setenv("PGKP_CACHE_DIR", path.c_str(), 1);
  }

  Ran run(const std::string &arguments) const {
    const std::string out = dir / "out", err = dir / "err";
    const int status = std::system(
        fmt::format("{} {} >{} 2>{}", PGKP_CACHE_TOOL, arguments, out, err)
            .c_str());
    auto text = [](const std::string &file) {
      const auto bytes = readFile(file).value();
      return std::string(bytes.begin(), bytes.end());
    };
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text(out), text(err)};
  }
  /// One line that begins with "error: ", and nothing else.
  void expectError(const std::string &arguments, int code,
                   const std::string &part) const {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, code) << arguments;
    EXPECT_EQ(ran.out, "") << arguments;
    EXPECT_TRUE(ran.err.starts_with("error: ")) << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(part)) << arguments;
  }
  std::unique_ptr<Store> open() const {
    StoreOptions options;
    options.directory = path;
    return Store::open(options);
  }
  static Digest key(int64_t n) {
    return toDigest(*fixtures::variant(n)->content_key);
  }
  void put(int64_t n) const {
    ASSERT_TRUE(open()->put(key(n), fixtures::pack(*fixtures::variant(n))));
  }
  std::string record(int64_t n, const char *folder = "artifacts") const {
    const std::string hex = key(n).hex();
    return fmt::format("{}/v2/{}/{}/{}.pgkp", path, folder, hex.substr(0, 2),
                       hex);
  }
  void damage(int64_t n) const {
    std::vector<uint8_t> bytes = readFile(record(n)).value();
    bytes[bytes.size() / 2] ^= 1;
    overwrite(record(n), bytes);
  }
  /// What the engine files when it asks for a variant.
  static schema::RecipeT recipe(int64_t n,
                                const std::string &producer = "test") {
    auto table = fixtures::variant(n);
    table->producer = producer;
    const Digest asked = fixtures::giveKey(*table);
    schema::RecipeT result;
    result.content_key =
        std::make_unique<schema::Digest>(fixtures::schemaDigest(asked));
    result.kernel_hash = std::make_unique<schema::Digest>(*table->kernel_hash);
    result.kernel = table->kernel;
    result.facts = table->facts;
    result.target = std::make_unique<schema::TargetT>(*table->target);
    result.format = table->format;
    result.pipeline = table->pipeline;
    result.producer = producer;
    return result;
  }
  json explain(const Digest &k) const {
    const Ran ran = run("explain --json " + k.hex());
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.value();
  }

  TempDir dir;
  std::string path = dir / "cache";
};
} // namespace

TEST_F(CacheTool, HelpVersionAndBadUsage) {
  for (const char *verb : {"", "ls ", "show ", "stat ", "verify ", "gc ",
                           "export ", "import ", "explain ", "keygen "}) {
    const Ran ran = run(std::string(verb) + "--help");
    EXPECT_EQ(ran.code, 0) << verb;
    EXPECT_THAT(ran.out, HasSubstr("--help")) << verb;
    EXPECT_EQ(ran.err, "") << verb;
  }
  EXPECT_EQ(run("--version").code, 0);
  put(1);
  expectError("", 2, "--help");
  expectError("lsx", 2, "--help");
  expectError("ls --nonsense", 2, "--help");
  expectError("show", 2, "KEY");
  expectError("show xyz", 2, "is no key");
  expectError("explain 'ABC'", 2, "lower-case");
  expectError("show " + key(1).hex() + "00", 2, "is no key");
  expectError("gc --limit-mib=-3", 2, "limit-mib");
  expectError("gc --limit-mib=many", 2, "limit-mib");
  expectError("export f", 2, "--key");
  expectError("import f", 2, "--key");
  expectError("--cache-dir=none ls", 2, "no store directory");
  EXPECT_FALSE(fs::exists(dir / "none"));
}

TEST_F(CacheTool, NeedsAStoreThatIsThereAndSafe) {
  for (const char *verb : {"ls", "stat", "verify", "gc", "show 12"})
    expectError(verb, 1, path);
  EXPECT_FALSE(fs::exists(path)); // looking makes nothing
  put(1);
  fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  expectError("ls", 1, "can be written by others");
  fs::rename(path, dir / "real");
  fs::permissions(dir / "real", fs::perms::owner_all);
  fs::create_symlink(dir / "real", path);
  expectError("ls", 1, "symbolic link");
  fs::remove(path);
  overwrite(path, {});
  expectError("ls", 1, "not a directory");
}

TEST_F(CacheTool, ListsAndShows) {
  put(1);
  put(2);
  Ran ran = run("ls");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 2);
  EXPECT_THAT(ran.out, HasSubstr("matmul"));
  EXPECT_THAT(ran.out, HasSubstr("d0 == 2"));
  const json rows = run("--json ls").value();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(run("ls --json").value(), rows); // either place
  EXPECT_EQ(rows[0]["chip"], "x86-64");
  EXPECT_EQ(rows[0]["cost_ms"], 150);
  EXPECT_EQ(rows[0]["pinned"], false);

  const json shown = run("show --json " + key(1).hex().substr(0, 12)).value();
  EXPECT_EQ(shown["content_key"], key(1).hex());
  EXPECT_EQ(shown["class"], "d0 == 1");
  EXPECT_EQ(shown["code_bytes"], 64);
  EXPECT_EQ(shown["stages"]["compile_ms"], 150);
  EXPECT_THAT(run("show " + key(1).hex()).out, HasSubstr("d0 == 1"));
  expectError("show " + key(3).hex(), 1, "cannot open");
  expectError("show " + key(3).hex().substr(0, 20), 1, "no key in");
}

TEST_F(CacheTool, AmbiguousPrefixIsBadUsage) {
  for (int64_t n = 0; n < 17; ++n) // two of them share the first digit
    put(n);
  std::set<char> seen;
  char shared = 0;
  for (int64_t n = 0; n < 17; ++n)
    if (!seen.insert(key(n).hex()[0]).second)
      shared = key(n).hex()[0];
  expectError(fmt::format("show {}", shared), 2, "ambiguous");
}

TEST_F(CacheTool, LookingIsNoUse) {
  put(1);
  const auto before = run("ls --json").value()[0]["uses"];
  for (int i = 0; i < 40; ++i)
    ASSERT_EQ(run("show " + key(1).hex()).code, 0);
  EXPECT_EQ(run("ls --json").value()[0]["uses"], before);
}

TEST_F(CacheTool, StatAndGc) {
  put(1);
  put(2);
  json stat = run("stat --json").value();
  EXPECT_EQ(stat["records"], 2);
  EXPECT_EQ(stat["kinds"]["recipes"]["files"], 2);
  EXPECT_EQ(stat["limit_bytes"], uint64_t{2048} << 20);
  EXPECT_THAT(run("stat").out, HasSubstr("artifacts"));
  damage(2);
  EXPECT_EQ(run("verify").code, 1);
  EXPECT_EQ(run("stat --json").value()["kinds"]["quarantine"]["files"], 1);
  const json done = run("gc --json").value();
  EXPECT_EQ(done["removed_files"], 1);
  EXPECT_EQ(run("stat --json").value()["kinds"]["quarantine"]["files"], 0);
  EXPECT_EQ(run("stat --json").value()["charged_bytes"], done["charged_bytes"]);
  // Less than the two blocks of a record and its directory.
  ASSERT_EQ(run("gc --limit-mib=0.019").code, 0);
  EXPECT_LE(run("stat --json").value()["charged_bytes"], 0.019 * (1 << 20));
  EXPECT_EQ(run("stat --json").value()["records"], 0);
  ASSERT_TRUE(open()->put(key(1), fixtures::pack(*fixtures::variant(1))));
  ASSERT_TRUE(open()->pin(key(1), true));
  const Ran kept = run("gc --limit-mib=0");
  EXPECT_EQ(kept.code, 1);
  EXPECT_THAT(kept.err, HasSubstr("pinned"));
  EXPECT_TRUE(fs::exists(record(1)));
}

TEST_F(CacheTool, VerifyFindsDamageOfEveryKind) {
  put(1);
  put(2);
  ASSERT_TRUE(
      open()->putBundle(key(3), fixtures::pack(fixtures::testBundle())));
  Ran ran = run("verify --json");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.value()["verified"], 5); // two recipes
  EXPECT_EQ(ran.value()["bad"], json::array());
  damage(2);
  std::vector<uint8_t> bundle = readFile(record(3, "bundles")).value();
  bundle.back() ^= 1;
  overwrite(record(3, "bundles"), bundle);
  ran = run("verify --json");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.value()["verified"], 3);
  ASSERT_EQ(ran.value()["bad"].size(), 2u);
  EXPECT_EQ(ran.value()["bad"][0]["key"], key(2).hex());
  EXPECT_EQ(ran.value()["bad"][1]["kind"], "bundles");
  EXPECT_THAT(ran.err, HasSubstr("2 of 5 records do not verify"));
  ran = run("verify"); // they are put aside now
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "3 records verify, 0 do not\n");
}

TEST_F(CacheTool, ExplainsHitsAndMisses) {
  put(1);
  json why = explain(key(1));
  EXPECT_EQ(why["state"], "present");
  EXPECT_EQ(why["terms"]["class"], "d0 == 1");
  EXPECT_EQ(why["nearest"], nullptr);

  why = explain(key(9));
  EXPECT_EQ(why["state"], "unknown");
  EXPECT_EQ(why["terms"], nullptr);

  open()->noteAsked(recipe(2));
  why = explain(key(2));
  EXPECT_EQ(why["state"], "unbuilt");
  EXPECT_EQ(why["nearest"]["key"], key(1).hex());
  EXPECT_EQ(why["nearest"]["differences"],
            json::parse(R"([{"term":"class","wanted":"d0 == 2",
                             "found":"d0 == 1"}])"));
  EXPECT_THAT(run("explain " + key(2).hex().substr(0, 20)).out,
              HasSubstr("'d0 == 2' here, 'd0 == 1' there"));

  open()->noteRefused(recipe(2), "out of registers");
  why = explain(key(2));
  EXPECT_EQ(why["state"], "refused");
  EXPECT_THAT(why["reason"].get<std::string>(), HasSubstr("out of registers"));

  put(3);
  ASSERT_TRUE(open()->erase(key(3)));
  EXPECT_EQ(explain(key(3))["state"], "evicted");

  put(4);
  damage(4);
  EXPECT_EQ(explain(key(4))["state"], "corrupt");
  EXPECT_EQ(explain(key(4))["state"], "corrupt"); // now from quarantine
}

TEST_F(CacheTool, ExplainNamesTheCompilerThatChanged) {
  put(1);
  const schema::RecipeT newer = recipe(1, "another build");
  open()->noteAsked(newer);
  const json why = explain(toDigest(*newer.content_key));
  EXPECT_EQ(why["state"], "unbuilt");
  EXPECT_EQ(why["nearest"]["key"], key(1).hex());
  EXPECT_EQ(why["nearest"]["differences"],
            json::parse(R"([{"term":"producer","wanted":"another build",
                             "found":"test"}])"));
  ASSERT_TRUE(open()->erase(key(1)));
  EXPECT_EQ(explain(key(1))["state"], "superseded");
}

TEST_F(CacheTool, PacksTravel) {
  put(1);
  put(2);
  schema::ProfileT profile;
  profile.format_version = 1;
  profile.runs = 1;
  ASSERT_TRUE(saveProfile(dir / "p.profile", profile));
  ASSERT_EQ(run("keygen " + (dir / "k")).code, 0);
  const std::string sign = " --key=" + (dir / "k.pem"),
                    trust = " --key=" + (dir / "k.pub.pem"),
                    pack = dir / "all.pgkpack";
  const json made =
      run("export --json " + pack + sign + " --profile=" + (dir / "p.profile"))
          .value();
  EXPECT_EQ(made["artifacts"], 2);
  EXPECT_EQ(made["profile"], true);
  ASSERT_EQ(run("export " + (dir / "one.pgkpack") + " " +
                key(2).hex().substr(0, 16) + sign)
                .code,
            0);

  path = dir / "other";
  setenv("PGKP_CACHE_DIR", path.c_str(), 1);
  json got = run("import --json " + (dir / "one.pgkpack") + trust).value();
  EXPECT_EQ(got["added"], 1);
  EXPECT_FALSE(open()->get(key(1)));
  EXPECT_TRUE(open()->get(key(2)));
  got = run("import --json " + pack + trust + " --profile=" + (dir / "q"))
            .value();
  EXPECT_EQ(got["added"], 1);
  EXPECT_EQ(got["present"], 1);
  EXPECT_TRUE(open()->get(key(1)));
  EXPECT_TRUE(loadProfile(dir / "q"));
  EXPECT_EQ(run("verify").code, 0);
}

TEST_F(CacheTool, RefusesPacksThatDoNotVerifyBeforeAnythingIsMade) {
  put(1);
  ASSERT_EQ(run("keygen " + (dir / "k")).code, 0);
  ASSERT_EQ(run("keygen " + (dir / "other")).code, 0);
  expectError("keygen " + (dir / "k"), 1, "k.pem");
  const std::string sign = " --key=" + (dir / "k.pem"),
                    trust = " --key=" + (dir / "k.pub.pem"),
                    pack = dir / "p.pgkpack";
  expectError("export " + pack + trust, 1, "holds no Ed25519 key");
  expectError("export " + pack + sign + " --profile=" + (dir / "none"), 1,
              "none");
  expectError("export " + pack + " " + key(2).hex() + sign, 1, key(2).hex());
  EXPECT_FALSE(fs::exists(pack));
  ASSERT_EQ(run("export " + pack + sign).code, 0);

  path = dir / "there";
  setenv("PGKP_CACHE_DIR", path.c_str(), 1);
  expectError("import " + pack + " --key=" + (dir / "other.pub.pem"), 1,
              "is expected");
  expectError("import " + pack + sign, 1, "holds no Ed25519 key");
  expectError("import " + pack + trust + " --profile=" + (dir / "q"), 1,
              "has no profile");
  expectError("import " + (dir / "none") + trust, 1, "none");
  const std::vector<uint8_t> good = readFile(pack).value();
  auto refused = [&](std::vector<uint8_t> bytes, const char *part) {
    overwrite(dir / "bad", bytes);
    expectError("import " + (dir / "bad") + trust, 1, part);
  };
  refused({}, "too few");
  refused({good.begin(), good.end() - 1}, "announces");
  std::vector<uint8_t> payload(good.begin() + kEnvelopeBytes, good.end());
  std::fill_n(payload.begin() + 32, 64, uint8_t{0});
  refused(seal(FileKind::pack, payload), "not signed");
  payload.assign(good.begin() + kEnvelopeBytes, good.end());
  payload[payload.size() - 9] ^= 4;
  refused(seal(FileKind::pack, payload), "does not fit");
  EXPECT_FALSE(fs::exists(path));
}
