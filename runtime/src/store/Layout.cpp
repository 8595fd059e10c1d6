// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/Layout.h"

#include "base/File.h"
#include "base/SystemCall.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace pgkp::rt {

DirectoryReader::DirectoryReader(const std::string &path) {
  UniqueFd fd(guarded("store", "opendir", [&] {
    return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }));
  stream = fd ? fdopendir(fd.get()) : nullptr;
  if (stream)
    fd.release();
}

const char *DirectoryReader::next() {
  while (const dirent *entry = readdir(stream))
    if (entry->d_name[0] != '.' ||
        std::string_view(entry->d_name).starts_with(kTemporaryPrefix))
      return entry->d_name;
  return nullptr;
}

void forEachFile(const std::string &folder,
                 const std::function<void(const FileEntry &)> &visit) {
  DirectoryReader files(folder);
  if (!files)
    return;
  FileEntry entry;
  while (const char *name = files.next()) {
    struct stat info;
    if (guarded("store", "fstatat",
                [&] {
                  return fstatat(files.fd(), name, &info, AT_SYMLINK_NOFOLLOW);
                }) != 0 ||
        !S_ISREG(info.st_mode))
      continue;
    entry.path.assign(folder).append("/").append(name);
    entry.name = std::string_view(entry.path).substr(folder.size() + 1);
    entry.bytes = static_cast<uint64_t>(info.st_size);
    entry.modifiedS = info.st_mtim.tv_sec;
    visit(entry);
  }
}

bool forEachRecord(
    const std::string &folder,
    const std::function<void(const Digest &, const FileEntry &)> &visit) {
  DirectoryReader shards(folder);
  if (!shards)
    return errno == ENOENT;
  while (const char *shard = shards.next())
    forEachFile(folder + "/" + shard, [&](const FileEntry &entry) {
      if (!entry.name.ends_with(kRecordSuffix))
        return;
      if (const auto key = Digest::fromHex(
              entry.name.substr(0, entry.name.size() - kRecordSuffix.size())))
        visit(*key, entry);
    });
  return true;
}

} // namespace pgkp::rt
