// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What lies where in a store's directory.
///
/// - v2/artifacts/ab/(64 hex digits).pgkp; also bundles, tuning, recipes
/// - v2/quarantine/: records that did not verify
/// - v2/tmp/: writes that are not finished
/// - v2/locks/: lock files; empty while nobody writes
/// - v2/pins/(64 hex digits): never evicted
/// - v2/ledger: bytes in all, so that nobody counts
/// - v2/usage, v2/usage.log: what was used when, for eviction only
#pragma once

#include "base/Digest.h"
#include "schema/Envelope.h"

#include <cstdint>
#include <dirent.h>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace pgkp::rt {

/// Another number for another layout or envelope, so that builds of both can
/// share a directory.
constexpr char kLayoutFolder[] = "v2";

/// A kind of record: its folder under v2/ and its envelope.
struct RecordKind {
  const char *folder;
  FileKind file;
};
constexpr RecordKind kArtifacts{"artifacts", FileKind::artifact};
constexpr RecordKind kBundles{"bundles", FileKind::bundle};
constexpr RecordKind kTuning{"tuning", FileKind::tuning};
constexpr RecordKind kRecipes{"recipes", FileKind::recipe};
constexpr RecordKind kRecordKinds[] = {kArtifacts, kBundles, kTuning, kRecipes};

constexpr std::string_view kRecordSuffix = ".pgkp";

/// The names in a directory but ".", ".." and other hidden ones; temporary
/// files are not hidden.
class DirectoryReader {
public:
  explicit DirectoryReader(const std::string &path);
  ~DirectoryReader() {
    if (stream)
      closedir(stream);
  }
  DirectoryReader(const DirectoryReader &) = delete;

  /// False: it could not be opened, errno says why.
  explicit operator bool() const { return stream; }
  int fd() const { return dirfd(stream); }
  /// Null at the end.
  const char *next();

private:
  DIR *stream;
};

struct FileEntry {
  std::string path;
  std::string_view name; ///< the end of `path`
  uint64_t bytes = 0;
  int64_t modifiedS = 0; ///< Unix time
};

/// Every regular file in `folder`. A folder that is not there has none.
void forEachFile(const std::string &folder,
                 const std::function<void(const FileEntry &)> &visit);
/// Every record in the shards of `folder`, which may be missing.
/// \returns false if the folder could not be opened for another reason; errno.
bool forEachRecord(
    const std::string &folder,
    const std::function<void(const Digest &, const FileEntry &)> &visit);

} // namespace pgkp::rt
