// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Profiles as files: what earlier runs saw, merged over runs.
#pragma once

#include "base/Status.h"
#include "schema/profile_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pgkp::rt {

/// Weight of everything older, per run (algorithms.md section 1d).
constexpr double kProfileAging = 0.8;
constexpr size_t kMaxProfileKeys = 16384;
constexpr size_t kMaxProfileRoots = 4096;

/// Reads a profile and checks its numbers. notFound, corrupt, unsupported, io.
Expected<schema::ProfileT> loadProfile(const std::string &path);

/// A Profile FlatBuffer without envelope; `what` names it in messages. corrupt,
/// unsupported.
Expected<schema::ProfileT> parseProfile(std::vector<uint8_t> payload,
                                        const std::string &what);

/// Writes it whole or not at all.
Status saveProfile(const std::string &path, const schema::ProfileT &profile);

/// The profile as bytes for a BundleRequest, without envelope.
std::vector<uint8_t> serializeProfile(const schema::ProfileT &profile);

/// One more run: what `older` says is aged by kProfileAging and merged with
/// `run` (runs 0 counts as 1). Keys are told apart by kernel hash and canonical
/// facts, and averages weigh runs; measurements are the newest. The keys used
/// in most runs are kept, in order of first use. Roots of another module are
/// dropped.
schema::ProfileT mergeProfiles(const schema::ProfileT &older,
                               const schema::ProfileT &run);

/// Merges the run into the profile at `path`; a missing one is an empty one, a
/// damaged one is replaced with a warning. Of two processes that do it at once
/// one may lose its run.
Status saveProfileMerged(const std::string &path, const schema::ProfileT &run);

} // namespace pgkp::rt
