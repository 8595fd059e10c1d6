// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The verbs of pgkp-cache. Each prints its answer, as text or as one
/// JSON value.
#pragma once

#include "store/Pack.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pgkp::rt {

/// The one key that starts with `prefix`: of a record, or of what was asked for
/// or put aside. All 64 digits need no record. notFound; invalidArgument: no
/// hexadecimal digits, or ambiguous.
Expected<Digest> findKey(Store &store, const std::string &prefix);

Status list(Store &store, bool json);
Status show(Store &store, const Digest &key, bool json);
Status printContents(Store &store, bool json);
/// corrupt: some record does not verify.
Status verify(Store &store, bool json);
Status collect(Store &store, std::optional<uint64_t> limitBytes, bool json);
Status printExplanation(Store &store, const Digest &key, bool json);

struct ExportOptions {
  std::string output, secretKey, profile; ///< files; no profile: empty
  std::vector<Digest> keys;               ///< empty: every artifact
};
Status exportPack(Store &store, const ExportOptions &options, bool json);

struct ImportOptions {
  std::string input, publicKey;
  std::string profile; ///< the pack's is merged into it; empty: it is left out
};
/// Reads and checks the whole pack; no store is needed yet.
Expected<PackContents> readPack(const ImportOptions &options);
Status importPack(Store &store, const PackContents &contents,
                  const ImportOptions &options, bool json);

/// Writes `name`.pem and `name`.pub.pem.
Status makeKeys(const std::string &name, bool json);

} // namespace pgkp::rt
