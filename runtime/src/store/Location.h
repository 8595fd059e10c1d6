// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Where a store may keep its files, and whether it may.
#pragma once

#include "base/Status.h"

#include <optional>
#include <string>

namespace pgkp::rt {

struct Location {
  std::string root;    ///< as it was asked for
  std::string version; ///< records lie under it
  std::string locks;   ///< lock files lie in it
  /// Why nothing can be written; reading may work.
  std::optional<Error> readOnly;

  /// Makes the directory if need be, mode 0700, and checks that nobody else can
  /// write to it. Where locks do not work (some network file systems) it is a
  /// directory of this host's own inside, with the lock files on a local disk,
  /// and a warning says so. permission: a symbolic link, another owner (root's
  /// may be read), or writable by others.
  static Expected<Location> open(const std::string &directory);
  /// Makes the folders again: `rm -rf` of a cache is always allowed.
  Status makeFolders() const;
};

/// Makes one directory, mode 0700 whatever the umask; that it exists is fine.
Status makePrivateDirectory(const std::string &path);

} // namespace pgkp::rt
