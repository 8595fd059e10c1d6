// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A directory that lives as long as a test.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
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

/// Without the syncs that writeFileAtomically pays for: tests write thousands
/// of files.
inline void overwrite(const std::string &path, std::span<const uint8_t> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

} // namespace pgkp::rt
