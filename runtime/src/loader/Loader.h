// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file From verified bytes to dispatchable variants, at moments that do not
/// hurt.
#pragma once

#include "base/Clock.h"
#include "base/Digest.h"
#include "base/Status.h"
#include "devices/device/Device.h"
#include "dispatch/DispatchTable.h"
#include "loader/Activity.h"

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace pgkp::rt {

struct LoadRequest {
  uint32_t kernel = 0;
  KeyId key = kNoKey;
  /// What the artifact must be for: a record filed under a wrong key is
  /// refused.
  Digest kernelHash;
  std::vector<schema::Fact> facts;
  size_t numExtents = 0;
  /// A serialized Artifact. The loader owns the bytes that it verifies and
  /// loads.
  std::vector<uint8_t> artifact;
  /// A caller waits for it: no postponement.
  bool demanded = false;
  /// Publish at once. False: the caller measures first and publishes itself.
  bool publish = true;
  /// For `publish`.
  double nsPerUse = 0, gain = 0;
};

struct LoadResult {
  uint32_t kernel = 0;
  KeyId key = kNoKey;
  uint64_t window = 0;
  TimeNs begin = 0, end = 0;
  /// Ready to publish, or published. Errors: corrupt (bytes that do not verify
  /// or belong to another key), and what Device::load says.
  Expected<Variant> variant;
};

struct PumpResult {
  std::vector<LoadResult> loads;
  std::vector<KeyId> deferred; ///< postponed by this call for the first time
};

struct LoaderCounts {
  uint64_t loaded = 0; ///< images
  uint64_t shared = 0; ///< loads that found the image already there
  uint64_t failed = 0;
  uint64_t windows = 0;  ///< calls that loaded something
  uint64_t deferred = 0; ///< loads that were postponed at least once
  uint64_t unloaded = 0;
  TimeNs windowTime = 0;
};

struct LoaderOptions {
  /// On devices where loading drains: after this long a load no longer waits
  /// for an idle moment. A busy server would never load otherwise.
  TimeNs maxDefer = 2 * kNsPerSecond;
};

/// Owns no thread. Where loading does not drain the device, everything loads at
/// the next pump. Where it does, loads gather until `activity` is idle, a
/// caller demands one or one has waited for maxDefer; then all of them share
/// the window, and unloading uses it too. Thread-safe, except that one thread
/// at a time pumps.
class Loader {
public:
  /// All four must outlive the loader, and the device the images.
  Loader(Device &device, DispatchTable &table, const Clock &clock,
         const Activity &activity, LoaderOptions options = {});
  ~Loader();
  Loader(const Loader &) = delete;
  Loader &operator=(const Loader &) = delete;

  void submit(LoadRequest request);
  /// A caller waits for the key now. \returns false if it is not in the queue.
  bool demand(KeyId key);
  /// Takes the key's loads out of the queue. \returns how many.
  size_t cancel(KeyId key);
  /// Loads that wait.
  size_t waiting() const;

  /// Reclaims what no session holds any more, unloads and loads as the rules
  /// allow. Call it after submit, when requests end, and regularly.
  PumpResult pump();

  LoaderCounts counts() const;

private:
  struct Waiting {
    LoadRequest request;
    TimeNs since;
    bool deferred = false;
  };
  /// Images without users; shared with the deleters of all images.
  struct Graveyard {
    std::mutex mutex;
    bool open = true; ///< false: the loader is gone, images unload at once
    std::vector<std::unique_ptr<const Image>> images;
  };

  bool mayDrain(TimeNs now, const std::deque<Waiting> &waiting) const;
  Expected<Variant> load(LoadRequest &request);
  Expected<std::shared_ptr<const Image>>
  imageFor(const schema::Artifact &artifact);

  Device &device;
  DispatchTable &table;
  const Clock &clock;
  const Activity &activity;
  const LoaderOptions options;
  std::shared_ptr<Graveyard> graveyard;
  std::map<Digest, std::weak_ptr<const Image>> images; ///< pumping thread only
  mutable std::mutex mutex;                            ///< queue, count
  std::deque<Waiting> queue;
  LoaderCounts count;
};

} // namespace pgkp::rt
