// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Bytes of a trace file: plain, gzip, or the first file of a tar archive
/// in either, as a stream of bounded memory.
#pragma once

#include "base/Status.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pgkp::rt {

/// Thread-compatible. Errors stay: after one, every read gives no bytes.
class InputFile {
public:
  static Expected<InputFile> open(const std::string &path);
  InputFile(InputFile &&) noexcept;
  InputFile &operator=(InputFile &&) noexcept;
  ~InputFile();

  const std::string &path() const { return name; }

  // The next byte without and with consuming it; '\0' at the end and after an
  // error.
  char peek() { return at < filled || fill() ? buffer[at] : '\0'; }
  char take() { return at < filled || fill() ? buffer[at++] : '\0'; }
  bool atEnd() { return at >= filled && !fill(); }

  /// Without its line break; false: there is none any more.
  bool getLine(std::string &line);
  /// The bytes that were not yet taken, at most `count`: for detection.
  std::string_view ahead(size_t count);

  uint64_t offset() const {
    return before + at;
  }                    ///< taken (decompressed) bytes
  size_t line() const; ///< of the next byte, from 1; linear in the buffer
  /// A read or decompression failure, with file and offset.
  const Status &status() const { return failure; }
  /// An error at the next byte: "<path>:<line>: <message>".
  tl::unexpected<Error> fail(std::string message) const;

private:
  struct Source;
  InputFile(std::string path, std::unique_ptr<Source> source);
  bool fill();
  Status skipTarHeader();

  std::string name;
  std::unique_ptr<Source> source;
  std::vector<char> buffer;
  size_t at = 0, filled = 0;
  uint64_t before = 0;    ///< bytes in front of the buffer
  size_t linesBefore = 0; ///< line breaks in front of the buffer
  uint64_t left = ~0ull;  ///< of the tar archive's file
  Status failure;
};

} // namespace pgkp::rt
