// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/Location.h"

#include "base/Digest.h"
#include "base/File.h"
#include "base/Log.h"
#include "base/SystemCall.h"
#include "store/FileLock.h"
#include "store/Layout.h"

#include <cerrno>
#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

namespace pgkp::rt {

static Status checkOwned(const std::string &path) {
  struct stat info;
  if (guarded("store", "lstat", [&] { return lstat(path.c_str(), &info); }) !=
      0)
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
  if (guarded("store", "access",
              [&] { return access(path.c_str(), R_OK | X_OK); }) != 0)
    return makeErrnoError(errno, "cannot read '" + path + "'");
  return {};
}

Status makePrivateDirectory(const std::string &path) {
  if (guarded("store", "mkdir", [&] { return mkdir(path.c_str(), 0700); }) ==
          0 ||
      errno == EEXIST)
    return {};
  return makeErrnoError(errno, "cannot make directory '" + path + "'");
}

Status Location::makeFolders() const {
  PGKP_TRY(makePrivateDirectory(root));
  if (directoryOf(version) != root) {
    PGKP_TRY(makePrivateDirectory(directoryOf(version)));
  }
  PGKP_TRY(makePrivateDirectory(version));
  for (const RecordKind &kind : kRecordKinds)
    PGKP_TRY(makePrivateDirectory(version + "/" + kind.folder));
  for (const char *folder : {"/quarantine", "/tmp", "/locks", "/pins"})
    PGKP_TRY(makePrivateDirectory(version + folder));
  return makePrivateDirectory(locks);
}

/// The same for every process of this host and of no other.
static std::string hostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  Hasher hasher;
  hasher.add(std::string_view(name));
  if (auto machine = readFile("/etc/machine-id", 256))
    hasher.add(*machine);
  return "host-" + hasher.finish().hex().substr(0, 16);
}

/// A directory of ours on a local disk for the lock files of `store`.
static Expected<std::string> localLocks(const std::string &store) {
  const char *runtime = std::getenv("XDG_RUNTIME_DIR");
  for (const std::string &base :
       {std::string(runtime && *runtime == '/' ? runtime : "/dev/shm"),
        std::string("/dev/shm"), std::string("/tmp")}) {
    const std::string ours = fmt::format("{}/pgkp-locks-{}", base, geteuid());
    const std::string path =
        ours + "/" +
        Hasher().add(std::string_view(store)).finish().hex().substr(0, 16);
    if (!makePrivateDirectory(ours) || !checkOwned(ours) ||
        !makePrivateDirectory(path) || !checkOwned(path))
      continue;
    if (FileLock::tryTake(path + "/probe"))
      return path;
  }
  return makeError(Code::unsupported, "no local directory for lock files");
}

/// Nothing if locks work; else moves into a directory of this host's own.
static Status ensureLocks(Location &location) {
  const std::string probe = location.locks + "/probe";
  Expected<FileLock> lock = FileLock::tryTake(probe);
  if (lock || lock.error().code != Code::unsupported)
    return {};
  const std::string reason = lock.error().message;
  location.version = location.root + "/" + hostName() + "/" + kLayoutFolder;
  PGKP_ASSIGN(location.locks, localLocks(location.version));
  PGKP_TRY(location.makeFolders());
  PGKP_TRY(checkOwned(location.version));
  log(LogLevel::warning,
      "file locks do not work in the store '{}': {}; this host uses '{}' alone",
      location.root, reason, location.version);
  return {};
}

Expected<Location> Location::open(const std::string &directory) {
  Location location;
  location.root = directory;
  while (location.root.size() > 1 && location.root.back() == '/')
    location.root.pop_back();
  struct stat info;
  if (lstat(location.root.c_str(), &info) != 0) {
    PGKP_TRY(makeDirectories(directoryOf(location.root), 0700));
    PGKP_TRY(makePrivateDirectory(location.root));
  }
  PGKP_TRY(checkOwned(location.root));
  location.version = location.root + "/" + kLayoutFolder;
  location.locks = location.version + "/locks";
  // A directory that cannot be written is still good to read from.
  if (Status made = location.makeFolders(); !made) {
    if (lstat(location.version.c_str(), &info) != 0)
      return tl::unexpected<Error>(made.error());
    location.readOnly = made.error();
  }
  PGKP_TRY(checkOwned(location.version));
  if (!location.readOnly) {
    PGKP_TRY(ensureLocks(location));
  }
  return location;
}

} // namespace pgkp::rt
