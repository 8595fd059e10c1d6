// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/Env.h"
#include "base/LogCapture.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

using namespace pgkp::rt;

TEST(Env, NamesAreUniqueAndPrefixed) {
  std::set<std::string_view> names;
  for (const EnvEntry &entry : envTable()) {
    EXPECT_TRUE(entry.name.starts_with("PGKP_")) << entry.name;
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
  }
  EXPECT_FALSE(names.empty());
}

TEST(Env, EmptyIsUnset) {
  setenv("PGKP_WORKER", "", 1);
  EXPECT_FALSE(getEnv("PGKP_WORKER"));
  setenv("PGKP_WORKER", "/x", 1);
  EXPECT_EQ(getEnv("PGKP_WORKER"), "/x");
  unsetenv("PGKP_WORKER");
  EXPECT_FALSE(getEnv("PGKP_WORKER"));
}

TEST(Env, NumbersAreCheckedAndReportedOnce) {
  LogCapture capture;
  setenv("PGKP_WORKERS", "3", 1);
  EXPECT_EQ(getEnvNumber("PGKP_WORKERS", 0, 64), 3.0);
  for (const char *bad : {"3x", "", "-1", "65", "nan"}) {
    setenv("PGKP_WORKERS", bad, 1);
    EXPECT_FALSE(getEnvNumber("PGKP_WORKERS", 0, 64)) << bad;
  }
  unsetenv("PGKP_WORKERS");
  ASSERT_EQ(capture.lines().size(), 1u);
  EXPECT_NE(capture.lines()[0].find("PGKP_WORKERS: '3x'"), std::string::npos);
}

TEST(Env, Flags) {
  setenv("PGKP_DISABLE", "1", 1);
  EXPECT_TRUE(getEnvFlag("PGKP_DISABLE"));
  setenv("PGKP_DISABLE", "0", 1);
  EXPECT_FALSE(getEnvFlag("PGKP_DISABLE"));
  unsetenv("PGKP_DISABLE");
}

TEST(Log, FormatsAndFilters) {
  LogCapture capture;
  log(LogLevel::warning, "key {} of {}", 3, 7);
  log(LogLevel::debug, "never {}", 1); // the default level is warning
  ASSERT_EQ(capture.lines().size(), 1u);
  EXPECT_EQ(capture.lines()[0], "key 3 of 7");
}
