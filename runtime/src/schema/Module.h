// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A loaded bundle: what the runtime knows of kernels, classes, entries
/// and roots.
#pragma once

#include "base/Digest.h"
#include "base/Status.h"
#include "schema/FirstUse.h"
#include "schema/manifest_generated.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pgkp::rt {

/// An expression over a vector of symbols, flattened for evaluation.
/// Thread-safe: immutable.
class Expr {
public:
  Expr() = default;
  /// Checks node order and symbol bounds.
  static Expected<Expr> parse(const schema::Expr *expr, size_t numSymbols);
  /// Division by zero or overflow: nothing.
  std::optional<int64_t> evaluate(std::span<const int64_t> symbols) const;
  bool empty() const { return nodes.empty(); }

private:
  std::vector<schema::ExprNode> nodes;
};

bool holds(const schema::Fact &fact, std::span<const int64_t> extents);
bool holds(std::span<const schema::Fact> facts,
           std::span<const int64_t> extents);
/// "d0 == 1, d1 % 16 == 0"; "generic" for no facts.
std::string toString(std::span<const schema::Fact> facts);

struct KernelInfo {
  struct Arg {
    schema::ElementType element;
    std::vector<Expr> shape; ///< over the kernel's extents; empty: a scalar
    bool output;
  };
  struct ClassInfo {
    std::vector<schema::Fact> facts;
    float probability;
    schema::Provenance provenance;
  };
  std::string name, family;
  Digest hash;
  std::vector<std::string> dims;
  std::vector<Arg> args;
  std::vector<ClassInfo> classes; ///< most specific first, without generic
  std::vector<schema::ConfigT> configs;
  Expr flops, bytes;
  std::span<const uint8_t> bytecode;
  KeyId firstKey = 0; ///< key of class i is firstKey + i; generic is firstKey +
                      ///< classes.size()
};

struct SiteInfo {
  uint32_t kernel;
  std::vector<Expr> extents; ///< over the entry's roots
  bool derivable;            ///< every extent has an expression
  float probability;
};

struct EntryInfo {
  struct Arg {
    std::string name;
    schema::ElementType element;
    std::vector<Expr> shape; ///< over the entry's roots
    bool persistent;
    std::optional<std::pair<int64_t, int64_t>> range;
  };
  struct Result {
    schema::ElementType element;
    std::vector<Expr> shape;
    int carries; ///< argument index or -1
  };
  std::string name, symbol;
  std::vector<std::string> roots;
  std::vector<Arg> args;
  std::vector<Result> results;
  /// value <= bound, or a slice reaches out of its source.
  struct Limit {
    Expr value, bound; ///< over the entry's roots
    std::string text;  ///< of `value`, with the roots' names
  };
  std::vector<SiteInfo> sites;
  std::vector<Limit> limits;

  /// The first limit that these roots break, as one line; nothing: all hold.
  std::optional<std::string>
  brokenLimit(std::span<const int64_t> rootValues) const;
};

struct KeyInfo {
  uint32_t kernel;
  uint32_t classIndex; ///< == classes.size(): generic
  Digest
      digest; ///< kernel hash + canonical facts: the key's identity across runs
};

/// Thread-safe: immutable after loading.
class Module {
public:
  /// Takes the bytes of a verified Bundle FlatBuffer (without envelope) and
  /// checks what the FlatBuffers verifier cannot: indices, expressions, fact
  /// bounds, symbol names.
  static Expected<std::shared_ptr<const Module>>
  load(std::vector<uint8_t> bundle);

  const std::string &name() const { return moduleName; }
  const Digest &hash() const { return moduleHash; }
  /// Build identities of who made the bundle; variants must come from the same
  /// build.
  std::string_view producer() const {
    return bundle->producer()->string_view();
  }
  std::span<const KernelInfo> kernels() const { return kernelInfos; }
  std::span<const EntryInfo> entries() const { return entryInfos; }
  std::span<const KeyInfo> keys() const { return keyInfos; }
  std::optional<uint32_t> findEntry(std::string_view entry) const;
  /// ELF of the host program; empty if the bundle has none.
  std::span<const uint8_t> program() const;
  /// The AOT generic artifact for a device, or null.
  const schema::Artifact *generic(uint32_t kernel, schema::DeviceKind device,
                                  std::string_view chip = {}) const;

  /// The key of a call: the first class whose facts hold, else generic. No
  /// allocation.
  KeyId classify(uint32_t kernel, std::span<const int64_t> extents) const;
  bool isGeneric(KeyId key) const {
    return keyInfos[key].classIndex ==
           kernelInfos[keyInfos[key].kernel].classes.size();
  }
  std::span<const schema::Fact> facts(KeyId key) const;
  /// "kernel[d0 == 1]", for messages and logs.
  std::string describe(KeyId key) const;
  /// The keys that a call of the entry with these roots will use, in program
  /// order, each once. Extents that roots do not determine contribute nothing.
  void expand(uint32_t entry, std::span<const int64_t> roots,
              std::vector<KeyId> &out) const;
  /// True if any kernel has extents: a static module gets no thread and no
  /// worker.
  bool dynamic() const;

private:
  std::vector<uint8_t> storage;
  const schema::Bundle *bundle = nullptr;
  std::string moduleName;
  Digest moduleHash;
  std::vector<KernelInfo> kernelInfos;
  std::vector<EntryInfo> entryInfos;
  std::vector<KeyInfo> keyInfos;
};

/// Checks what the FlatBuffers verifier cannot, for a kernel with that many
/// extents and arguments: bundles, store and worker answers pass through here.
/// corrupt.
Status checkArtifact(const schema::Artifact &artifact, size_t numDims,
                     size_t numArgs);

inline schema::Digest toSchema(const Digest &d) {
  return schema::Digest(
      flatbuffers::span<const uint8_t, 32>(d.bytes.data(), 32));
}
inline Digest toDigest(const schema::Digest &d) {
  Digest out;
  std::copy(d.bytes()->begin(), d.bytes()->end(), out.bytes.begin());
  return out;
}

} // namespace pgkp::rt
