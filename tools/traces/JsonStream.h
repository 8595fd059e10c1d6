// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file RapidJSON's SAX reader over an InputFile.
#pragma once

#include "InputFile.h"

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

namespace pgkp::rt {

/// RapidJSON's input stream concept.
class JsonStream {
public:
  using Ch = char;
  explicit JsonStream(InputFile &file) : file(file) {}
  Ch Peek() const { return file.peek(); }
  Ch Take() { return file.take(); }
  size_t Tell() const { return file.offset(); }
  // Only in-situ parsing writes.
  Ch *PutBegin() { return nullptr; }
  void Put(Ch) {}
  void Flush() {}
  size_t PutEnd(Ch *) { return 0; }

private:
  InputFile &file;
};

/// Parses the file's one JSON value. A handler that returns false has set
/// `handler.problem`. Errors have file and line.
template <typename Handler>
Status parseJson(InputFile &file, Handler &handler) {
  JsonStream stream(file);
  rapidjson::Reader reader;
  // Iterative: the depth of hostile input costs heap, not stack.
  const rapidjson::ParseResult result =
      reader.Parse<rapidjson::kParseIterativeFlag |
                   rapidjson::kParseNanAndInfFlag>(stream, handler);
  PGKP_TRY(file.status());
  if (!result)
    return file.fail(result.Code() == rapidjson::kParseErrorTermination
                         ? handler.problem
                         : fmt::format("JSON: {}", rapidjson::GetParseError_En(
                                                       result.Code())));
  return {};
}

} // namespace pgkp::rt
