// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A directory that lives as long as a test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace pgkp::rt {

class TempDir {
public:
  TempDir() {
    std::string name =
        (std::filesystem::temp_directory_path() / "pgkp-test-XXXXXX").string();
    if (!mkdtemp(name.data()))
      std::abort();
    path = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TempDir(const TempDir &) = delete;

  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }
  std::string path;
};

} // namespace pgkp::rt
