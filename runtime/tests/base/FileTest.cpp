// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/File.h"
#include "base/Failpoint.h"
#include "base/TempDir.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace pgkp::rt;

namespace {
std::vector<uint8_t> bytes(std::string_view text) {
  return {text.begin(), text.end()};
}
size_t filesIn(const std::string &path) {
  size_t count = 0;
  for ([[maybe_unused]] auto &entry : std::filesystem::directory_iterator(path))
    ++count;
  return count;
}
struct FileTest : testing::Test {
  ~FileTest() override { clearFailpoints(); }
  TempDir dir;
};
} // namespace

TEST_F(FileTest, RoundTrip) {
  const std::string path = dir / "x";
  ASSERT_TRUE(writeFileAtomically(path, bytes("one")));
  ASSERT_TRUE(writeFileAtomically(path, bytes("two!")));
  EXPECT_EQ(readFile(path).value(), bytes("two!"));
  ASSERT_TRUE(writeFileAtomically(path, {}));
  EXPECT_TRUE(readFile(path).value().empty());
  EXPECT_EQ(filesIn(dir.path), 1u);
}

TEST_F(FileTest, ErrorsHaveCodes) {
  EXPECT_EQ(readFile(dir / "none").error().code, Code::notFound);
  EXPECT_EQ(readFile(dir.path).error().code, Code::invalidArgument);
  ASSERT_TRUE(writeFileAtomically(dir / "x", bytes("12345")));
  EXPECT_EQ(readFile(dir / "x", 4).error().code, Code::exhausted);
  EXPECT_EQ(writeFileAtomically(dir / "no/x", {}).error().code, Code::notFound);
}

TEST_F(FileTest, EveryFailedCallLeavesTheOldContent) {
  const std::string path = dir / "x";
  ASSERT_TRUE(writeFileAtomically(path, bytes("old")));
  for (const char *call : {"create", "write", "fsync", "rename"}) {
    setFailpoint(std::string("file.") + call, FailpointAction::error, ENOSPC);
    Status status = writeFileAtomically(path, bytes("new"));
    ASSERT_FALSE(status) << call;
    EXPECT_EQ(status.error().code, Code::exhausted) << call;
    EXPECT_EQ(readFile(path).value(), bytes("old")) << call;
    EXPECT_EQ(filesIn(dir.path), 1u) << call;
  }
  for (const char *call : {"open", "stat", "read"}) {
    setFailpoint(std::string("file.") + call, FailpointAction::error, EIO);
    EXPECT_EQ(readFile(path).error().code, Code::io) << call;
  }
}

TEST_F(FileTest, KilledWritersLeaveOldOrNewContent) {
  const std::string path = dir / "x";
  for (const char *call : {"create", "write", "fsync", "rename", "fsyncdir"}) {
    ASSERT_TRUE(writeFileAtomically(path, bytes("old")));
    const pid_t child = fork();
    if (child == 0) {
      setFailpoint(std::string("file.") + call, FailpointAction::kill, 0);
      (void)writeFileAtomically(path, bytes("new"));
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << call;
    const auto content = readFile(path).value();
    EXPECT_EQ(content, bytes(std::string(call) == "fsyncdir" ? "new" : "old"))
        << call;
  }
}

TEST_F(FileTest, MakeDirectories) {
  ASSERT_TRUE(makeDirectories(dir / "a/b/c", 0700));
  ASSERT_TRUE(makeDirectories(dir / "a/b/c", 0700));
  struct stat info;
  ASSERT_EQ(stat((dir / "a/b/c").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_TRUE(writeFileAtomically(dir / "f", {}));
  EXPECT_FALSE(makeDirectories(dir / "f/g"));
  EXPECT_FALSE(makeDirectories(dir / "f"));
}

TEST_F(FileTest, UniqueFdMoves) {
  UniqueFd a(dup(0));
  const int raw = a.get();
  UniqueFd b(std::move(a));
  EXPECT_FALSE(a);
  EXPECT_EQ(b.get(), raw);
  b.reset();
  EXPECT_EQ(fcntl(raw, F_GETFD), -1);
}
