// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Trace.h"

#include <fmt/ranges.h>

namespace pgkp::rt {

/// What detection looks at: enough for Kineto's device properties.
static constexpr size_t kHead = 64 << 10;

std::vector<std::string> traceFormatNames() {
  return {"auto",      "azure",  "mooncake", "forwards",
          "operators", "kineto", "execution"};
}

TraceFormat detectFormat(std::string_view head) {
  const size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos)
    return TraceFormat::automatic;
  head.remove_prefix(start);
  const auto has = [](std::string_view text, std::string_view word) {
    return text.find(word) != std::string_view::npos;
  };
  if (head[0] == '{' || head[0] == '[') {
    if (has(head.substr(0, head.find('\n')), "\"input_length\""))
      return TraceFormat::mooncake;
    if (has(head, "\"nodes\"") && !has(head, "\"traceEvents\""))
      return TraceFormat::execution;
    return TraceFormat::kineto;
  }
  // CSV: the first line that is no comment.
  while (!head.empty() && head[0] == '#')
    head.remove_prefix(std::min(head.size(), head.find('\n') + 1));
  const std::string_view header = head.substr(0, head.find('\n'));
  if (has(header, "ContextTokens"))
    return TraceFormat::azure;
  if (header.starts_with("t_us,fwd,op"))
    return TraceFormat::operators;
  if (header.starts_with("arrival_s,") || header.starts_with("fwd,t_us"))
    return TraceFormat::forwards;
  return TraceFormat::automatic;
}

template <typename T> static Expected<Trace> widen(Expected<T> trace) {
  if (!trace)
    return tl::unexpected<Error>(std::move(trace.error()));
  return Trace(std::move(*trace));
}

Expected<Trace> readTrace(const std::string &path, TraceFormat format) {
  PGKP_ASSIGN(InputFile file, InputFile::open(path));
  if (format == TraceFormat::automatic)
    format = detectFormat(file.ahead(kHead));
  PGKP_TRY(file.status());
  switch (format) {
  case TraceFormat::azure:
    return widen(readAzure(file));
  case TraceFormat::mooncake:
    return widen(readMooncake(file));
  case TraceFormat::forwards:
    return widen(readForwards(file));
  case TraceFormat::operators:
    return widen(readOperators(file));
  case TraceFormat::kineto:
    return widen(readKineto(file));
  case TraceFormat::execution:
    return widen(readExecution(file));
  case TraceFormat::automatic:
    break;
  }
  auto names = traceFormatNames();
  names.erase(names.begin());
  return makeError(Code::invalidArgument,
                   "{}:1: the format is none of {}; name it with --format",
                   path, fmt::join(names, ", "));
}

} // namespace pgkp::rt
