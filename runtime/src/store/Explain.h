// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Why an artifact is or is not in a store.
#pragma once

#include "store/Store.h"

#include <optional>
#include <string>
#include <vector>

namespace pgkp::rt {

/// One term of a content key (schema/ContentKey.h), as text for people.
struct KeyTerm {
  std::string name, value;
  bool operator==(const KeyTerm &) const = default;
};
/// All terms: kernel, kernel_hash, class, config, device, chip, features,
/// format, pipeline, producer. The kernel's name is not hashed, but helps.
std::vector<KeyTerm> termsOf(const schema::RecipeT &recipe);
std::vector<KeyTerm> termsOf(const schema::Artifact &artifact);

enum class RecordState {
  present,
  mismatched, ///< another format version, or not what its key says: left alone
  corrupt,    ///< did not verify, is in quarantine
  unreadable, ///< a system call failed
  refused,    ///< the compiler refused it
  evicted,    ///< built, and no longer there
  superseded, ///< built by an earlier compiler, since asked for under another
              ///< key
  unbuilt,    ///< asked for, never built
  unknown     ///< never asked for here
};
const char *stateName(RecordState state);

struct Explanation {
  RecordState state = RecordState::unknown;
  std::string reason; ///< one sentence
  /// Known for what is there or was asked for.
  std::optional<std::vector<KeyTerm>> terms;

  struct Difference {
    std::string term, wanted, found;
  };
  /// The record with the fewest other terms; the kernel's count most.
  struct Nearest {
    Digest key;
    std::vector<Difference> differences;
  };
  std::optional<Nearest> nearest;
};

/// Reads the artifacts and recipes of the store.
Expected<Explanation> explain(Store &store, const Digest &contentKey);

} // namespace pgkp::rt
