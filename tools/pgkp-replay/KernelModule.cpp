// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelModule.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace pgkp::rt {

namespace {

/// Extents that a class can have facts on (Module::load's limit).
constexpr size_t kMaxExtents = 64;
/// Longer names are cut, and told apart by a hash.
constexpr size_t kMaxName = 200;

std::unique_ptr<schema::Digest> digestOf(std::string_view text) {
  return std::make_unique<schema::Digest>(
      toSchema(Hasher().add(text).finish()));
}

/// A name that a manifest may have: printable, without blanks or quotes.
std::string kernelName(std::string_view name) {
  std::string out;
  for (char c : name.substr(0, kMaxName))
    out += c > ' ' && c < 0x7f && c != '\'' ? c : '_';
  if (out == name)
    return out;
  const Digest hash = Hasher().add(name).finish();
  return fmt::format("{}~{:02x}{:02x}{:02x}{:02x}", out, hash.bytes[0],
                     hash.bytes[1], hash.bytes[2], hash.bytes[3]);
}

/// At least one and at most kMaxExtents, of which the last stands for the rest.
std::vector<int64_t> classExtents(const std::vector<int64_t> &extents) {
  std::vector<int64_t> out = extents;
  if (out.empty())
    out.push_back(0);
  if (out.size() > kMaxExtents) {
    uint64_t rest = 0;
    for (size_t i = kMaxExtents - 1; i < extents.size(); ++i)
      rest = (rest ^ static_cast<uint64_t>(extents[i])) * 0x9e3779b97f4a7c15;
    out.resize(kMaxExtents - 1);
    out.push_back(static_cast<int64_t>(rest >> 24));
  }
  return out;
}

} // namespace

bool isProduct(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  static constexpr std::array<std::string_view, 9> kWords = {
      "gemm",  "matmul", "addmm",   "bmm",      "conv",
      "wgrad", "dgrad",  "cutlass", "attention"};
  if (lower.starts_with("mm.") || lower.starts_with("aten::mm:"))
    return true;
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    return lower.find(word) != std::string::npos;
  });
}

Expected<ReplayWorkload> workloadOf(const KernelTrace &trace) {
  schema::BundleT bundle;
  bundle.format_version = 1;
  bundle.module_ = "kernel trace";
  bundle.module_hash = digestOf("kernel trace");
  bundle.producer = "pgkp-replay";
  for (const std::string &name : trace.names) {
    auto kernel = std::make_unique<schema::KernelT>();
    kernel->name = kernelName(name);
    kernel->hash = digestOf(name);
    if (isProduct(name))
      kernel->family = "matmul";
    bundle.kernels.push_back(std::move(kernel));
  }
  std::vector<uint32_t> classOf;
  for (const KernelTrace::Key &key : trace.keys) {
    schema::KernelT &kernel = *bundle.kernels[key.name];
    const std::vector<int64_t> extents = classExtents(key.extents);
    for (size_t dim = kernel.dims.size(); dim < extents.size(); ++dim)
      kernel.dims.push_back(fmt::format("d{}", dim));
    auto klass = std::make_unique<schema::ClassT>();
    for (size_t dim = 0; dim < extents.size(); ++dim)
      klass->facts.emplace_back(schema::FactKind::eq,
                                static_cast<uint16_t>(dim), extents[dim], 0);
    classOf.push_back(static_cast<uint32_t>(kernel.classes.size()));
    kernel.classes.push_back(std::move(klass));
  }
  flatbuffers::FlatBufferBuilder builder;
  schema::FinishBundleBuffer(builder, schema::Bundle::Pack(builder, &bundle));

  ReplayWorkload workload;
  PGKP_ASSIGN(workload.module,
              Module::load({builder.GetBufferPointer(),
                            builder.GetBufferPointer() + builder.GetSize()}));
  const auto kernels = workload.module->kernels();
  workload.launches.reserve(trace.launches.size());
  for (const KernelTrace::Launch &launch : trace.launches)
    workload.launches.push_back(
        {launch.start, launch.seconds,
         kernels[trace.keys[launch.key].name].firstKey + classOf[launch.key],
         launch.stream});
  return workload;
}

} // namespace pgkp::rt
