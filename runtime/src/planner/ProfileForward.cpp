// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plays the keys of earlier runs in the order in which they were first used.
#include "planner/Ranked.h"

#include "schema/ContentKey.h"

#include <unordered_map>

namespace pgkp::rt::planner {

std::vector<KeyId> profileOrder(const Module &module,
                                const schema::ProfileT *profile) {
  std::vector<KeyId> order;
  if (!profile || !profile->module_hash ||
      toDigest(*profile->module_hash) != module.hash())
    return order;
  std::unordered_map<Digest, KeyId, DigestHash> byDigest;
  for (KeyId key = 0; key < module.keys().size(); ++key)
    byDigest.emplace(module.keys()[key].digest, key);
  for (const auto &seen : profile->keys) {
    if (!seen || !seen->kernel_hash)
      continue;
    const auto it =
        byDigest.find(keyDigest(toDigest(*seen->kernel_hash), seen->facts));
    if (it != byDigest.end() && !module.isGeneric(it->second))
      order.push_back(it->second);
  }
  return order;
}

namespace {
class ProfileForward final : public Playback {
public:
  std::string_view name() const override { return "profile"; }
  void begin(const Module &module, const schema::ProfileT *profile) override {
    play(profileOrder(module, profile), module.keys().size());
  }
};
} // namespace

std::unique_ptr<Policy> makeProfileForward() {
  return std::make_unique<ProfileForward>();
}

} // namespace pgkp::rt::planner
