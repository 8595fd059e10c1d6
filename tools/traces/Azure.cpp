// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The Azure LLM inference traces (AzurePublicDataset, 2023 and 2024):
// TIMESTAMP,ContextTokens,GeneratedTokens.
#include "Csv.h"
#include "Trace.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace pgkp::rt {

/// Longer than any context; guards sums.
static constexpr int64_t kMaxTokens = int64_t{1} << 30;

/// "YYYY-MM-DD hh:mm:ss[.fraction]" with or without a zone, which is ignored:
/// all lines have the same. Nanoseconds since 1970.
static std::optional<int64_t> parseTimestamp(std::string_view text) {
  const auto number = [&](size_t at, size_t digits) -> std::optional<int> {
    int value = 0;
    if (text.size() < at + digits ||
        !parseNumber(text.substr(at, digits), value) || value < 0)
      return std::nullopt;
    return value;
  };
  const auto year = number(0, 4), month = number(5, 2), day = number(8, 2),
             hour = number(11, 2), minute = number(14, 2),
             second = number(17, 2);
  if (!year || !month || !day || !hour || !minute || !second)
    return std::nullopt;
  if (text[4] != '-' || text[7] != '-' ||
      (text[10] != ' ' && text[10] != 'T') || text[13] != ':' ||
      text[16] != ':' || *hour > 23 || *minute > 59 || *second > 60)
    return std::nullopt;
  const std::chrono::year_month_day date{
      std::chrono::year(*year),
      std::chrono::month(static_cast<unsigned>(*month)),
      std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok())
    return std::nullopt;
  int64_t nanos = 0;
  if (text.size() > 19 && text[19] == '.') {
    int64_t unit = 100'000'000;
    for (size_t i = 20; i < text.size() && text[i] >= '0' && text[i] <= '9';
         ++i, unit /= 10)
      nanos += (text[i] - '0') * unit;
  }
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + *hour) * 60 + *minute) * 60'000'000'000 +
         *second * 1'000'000'000ll + nanos;
}

Expected<ServingTrace> readAzure(InputFile &file) {
  PGKP_ASSIGN(CsvReader csv, CsvReader::open(file));
  PGKP_ASSIGN(const size_t time, csv.column("TIMESTAMP"));
  PGKP_ASSIGN(const size_t context, csv.column("ContextTokens"));
  PGKP_ASSIGN(const size_t generated, csv.column("GeneratedTokens"));
  std::vector<std::pair<int64_t, ServingTrace::Request>> rows;
  while (true) {
    PGKP_ASSIGN(const bool more, csv.next());
    if (!more)
      break;
    const auto at = parseTimestamp(csv.field(time));
    if (!at)
      return csv.fail(fmt::format(
          "TIMESTAMP is '{}'; expected YYYY-MM-DD hh:mm:ss.fraction",
          csv.field(time)));
    PGKP_ASSIGN(const int64_t prompt, csv.integer(context, 0, kMaxTokens));
    PGKP_ASSIGN(const int64_t output, csv.integer(generated, 0, kMaxTokens));
    rows.push_back(
        {*at, {0, std::max<int64_t>(prompt, 1), std::max<int64_t>(output, 1)}});
  }
  if (rows.empty())
    return csv.fail("expected at least one request");
  std::stable_sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) {
    return a.first < b.first;
  });
  ServingTrace trace;
  for (auto &[at, request] : rows) {
    request.arrival = static_cast<double>(at - rows.front().first) * 1e-9;
    trace.requests.push_back(request);
  }
  return trace;
}

} // namespace pgkp::rt
