// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelTable.h"

#include <algorithm>
#include <tuple>

namespace pgkp::rt {

uint32_t KernelTable::name(std::string_view text) {
  if (auto it = nameIndex.find(text); it != nameIndex.end())
    return it->second;
  const auto number = static_cast<uint32_t>(trace.names.size());
  trace.names.emplace_back(text);
  nameIndex.emplace(trace.names.back(), number);
  return number;
}

uint32_t KernelTable::key(uint32_t name, std::span<const int64_t> extents) {
  probe.name = name;
  probe.extents.assign(extents.begin(), extents.end());
  const auto number = static_cast<uint32_t>(trace.keys.size());
  const auto [it, added] = keyIndex.try_emplace(probe, number);
  if (added)
    trace.keys.push_back(probe);
  return it->second;
}

KernelTrace KernelTable::finish() {
  auto &launches = trace.launches;
  std::stable_sort(launches.begin(), launches.end(),
                   [](const auto &a, const auto &b) {
                     return std::tie(a.start, a.stream, a.correlation) <
                            std::tie(b.start, b.stream, b.correlation);
                   });
  boost::unordered_flat_map<uint32_t, uint32_t> streams;
  const double first = launches.empty() ? 0 : launches.front().start;
  for (KernelTrace::Launch &launch : launches) {
    launch.start -= first;
    launch.stream =
        streams
            .try_emplace(launch.stream, static_cast<uint32_t>(streams.size()))
            .first->second;
  }
  return std::move(trace);
}

} // namespace pgkp::rt
