// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The Mooncake traces (Qin et al., FAST 2025): a JSON object a line with
// timestamp (ms), input_length, output_length. The prefix blocks (hash_ids) are
// not used: no prefix is taken to be cached.
#include "Trace.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace pgkp::rt {

namespace {
constexpr double kMaxTokens = 1 << 30;

/// A number of the object within [0, high], or what is wrong with it.
Expected<double> number(const nlohmann::json &object, const char *name,
                        double high) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number())
    return makeError(Code::invalidArgument, "expected a number '{}'", name);
  const double value = it->get<double>();
  if (!(value >= 0 && value <= high))
    return makeError(Code::invalidArgument, "{} is {}; expected 0 to {}", name,
                     value, high);
  return value;
}

Expected<ServingTrace::Request> parseLine(const std::string &line) {
  const auto object =
      nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    return makeError(Code::invalidArgument, "expected a JSON object");
  PGKP_ASSIGN(const double ms, number(object, "timestamp", 1e15));
  PGKP_ASSIGN(const double in, number(object, "input_length", kMaxTokens));
  PGKP_ASSIGN(const double out, number(object, "output_length", kMaxTokens));
  return ServingTrace::Request{ms * 1e-3,
                               std::max<int64_t>(std::llround(in), 1),
                               std::max<int64_t>(std::llround(out), 1)};
}
} // namespace

Expected<ServingTrace> readMooncake(InputFile &file) {
  ServingTrace trace;
  std::string line;
  size_t number = 0;
  while (file.getLine(line)) {
    ++number;
    if (line.find_first_not_of(" \t") == std::string::npos)
      continue;
    auto request = parseLine(line);
    if (!request)
      return makeError(request.error().code, "{}:{}: {}", file.path(), number,
                       request.error().message);
    trace.requests.push_back(*request);
  }
  PGKP_TRY(file.status());
  if (trace.requests.empty())
    return makeError(Code::invalidArgument,
                     "{}:1: expected at least one request", file.path());
  std::stable_sort(
      trace.requests.begin(), trace.requests.end(),
      [](const auto &a, const auto &b) { return a.arrival < b.arrival; });
  const double first = trace.requests.front().arrival;
  for (ServingTrace::Request &request : trace.requests)
    request.arrival -= first;
  return trace;
}

} // namespace pgkp::rt
