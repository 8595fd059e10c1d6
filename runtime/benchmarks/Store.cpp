// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A store of 100,000 artifacts: reading one from disk (verified, without the
// memory tier) beside a pread of the same bytes from an open file; opening it
// beside opening an empty one. What is read is in the page cache. The argument
// is the size of an artifact's code.
#include "store/Store.h"
#include "base/File.h"
#include "base/Random.h"
#include "schema/ContentKey.h"
#include "schema/Envelope.h"
#include "schema/Module.h"

#include <benchmark/benchmark.h>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <sys/stat.h>
#include <vector>

using namespace pgkp::rt;
namespace schema = pgkp::schema;
namespace fs = std::filesystem;

namespace {

constexpr size_t kRecords = 100'000;
constexpr size_t kSample = 256; ///< records of a size that are read, in turn

/// A row kernel, a small product, a large cubin.
size_t codeBytes(size_t number) {
  const size_t kind = number % 16;
  return kind == 0 ? 65536 : kind < 6 ? 2048 : 8192;
}

std::vector<uint8_t> makeArtifact(size_t number, Digest &key) {
  SeededRandom random(number);
  schema::ArtifactT table;
  table.kernel = "matmul";
  table.kernel_hash = std::make_unique<schema::Digest>(
      toSchema(Hasher().add(static_cast<int64_t>(number)).finish()));
  for (uint16_t dim = 0; dim < 3; ++dim)
    table.facts.push_back({schema::FactKind::divisible, dim, 16, 0});
  table.target = std::make_unique<schema::TargetT>();
  table.target->chip = "x86-64";
  table.code.resize(codeBytes(number));
  for (uint8_t &byte : table.code)
    byte = static_cast<uint8_t>(random.below(256));
  table.code_hash =
      std::make_unique<schema::Digest>(toSchema(hashBytes(table.code)));
  table.symbol = "kernel";
  table.producer = "benchmark";
  table.content_key = std::make_unique<schema::Digest>();
  auto pack = [&] {
    flatbuffers::FlatBufferBuilder builder;
    schema::FinishArtifactBuffer(builder,
                                 schema::Artifact::Pack(builder, &table));
    return std::vector<uint8_t>(builder.GetBufferPointer(),
                                builder.GetBufferPointer() + builder.GetSize());
  };
  key = contentKeyOf(*schema::GetArtifact(pack().data()));
  *table.content_key = toSchema(key);
  return pack();
}

std::unique_ptr<Store> openStore(const std::string &directory) {
  StoreOptions options;
  options.directory = directory;
  options.memoryLimitBytes = 0;
  options.diskLimitBytes = uint64_t{1} << 40;
  return Store::open(std::move(options));
}

/// A full and an empty store in memory-backed files where there are any;
/// removed at exit.
class Stores {
public:
  Stores() {
    std::string name = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    name += "/pgkp-bench-XXXXXX";
    if (!mkdtemp(name.data()))
      return;
    root = name;
    full = root + "/full";
    empty = root + "/empty";
    openStore(empty);
    good = fill();
  }
  ~Stores() {
    std::error_code ignored;
    if (!root.empty())
      fs::remove_all(root, ignored);
  }
  static Stores &instance() {
    static Stores stores;
    return stores;
  }

  bool good = false;
  std::string root, full, empty;
  struct Sampled {
    Digest key;
    UniqueFd file;
    size_t bytes;
  };
  std::map<size_t, std::vector<Sampled>> samples; ///< by size of the code

private:
  /// Without the store's syncs and recipes, which would take an hour on a disk.
  bool fill() {
    auto store = openStore(full);
    if (store->problem())
      return false;
    for (size_t n = 0; n < kRecords; ++n) {
      Digest key;
      const std::vector<uint8_t> file =
          seal(FileKind::artifact, makeArtifact(n, key));
      const std::string hex = key.hex(),
                        folder = full + "/v2/artifacts/" + hex.substr(0, 2),
                        path = folder + "/" + hex + ".pgkp";
      mkdir(folder.c_str(), 0700);
      UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
      if (!fd || write(fd.get(), file.data(), file.size()) !=
                     static_cast<ssize_t>(file.size()))
        return false;
      // Spread over all of them: 17 is prime to the 16 kinds.
      auto &sample = samples[codeBytes(n)];
      if (n % 17 == 0 && sample.size() < kSample)
        sample.push_back({key, std::move(fd), file.size()});
    }
    const auto records = store->list();
    return records && records->size() == kRecords;
  }
};

void BM_StorePread(benchmark::State &state) {
  Stores &stores = Stores::instance();
  if (!stores.good)
    return state.SkipWithError("the store cannot be made");
  const auto &sample = stores.samples.at(static_cast<size_t>(state.range(0)));
  std::vector<uint8_t> buffer(sample[0].bytes + 4096);
  size_t at = 0;
  for (auto _ : state) {
    const Stores::Sampled &one = sample[at++ % sample.size()];
    if (pread(one.file.get(), buffer.data(), one.bytes, 0) !=
        static_cast<ssize_t>(one.bytes))
      return state.SkipWithError("pread");
    benchmark::ClobberMemory();
  }
}

void BM_StoreGet(benchmark::State &state) {
  Stores &stores = Stores::instance();
  if (!stores.good)
    return state.SkipWithError("the store cannot be made");
  const auto &sample = stores.samples.at(static_cast<size_t>(state.range(0)));
  auto store = openStore(stores.full);
  size_t at = 0;
  for (auto _ : state) {
    auto artifact = store->get(sample[at++ % sample.size()].key);
    if (!artifact)
      return state.SkipWithError(artifact.error().message.c_str());
    benchmark::DoNotOptimize(artifact);
  }
  if (store->stats().diskHits != at)
    state.SkipWithError("not read from disk");
}

void openOne(benchmark::State &state, std::string Stores::*directory) {
  Stores &stores = Stores::instance();
  if (!stores.good)
    return state.SkipWithError("the store cannot be made");
  for (auto _ : state) {
    auto store = openStore(stores.*directory);
    if (store->problem())
      return state.SkipWithError("the store cannot be opened");
  }
}
void BM_StoreOpenEmpty(benchmark::State &state) {
  openOne(state, &Stores::empty);
}
void BM_StoreOpen(benchmark::State &state) { openOne(state, &Stores::full); }

BENCHMARK(BM_StorePread)->Arg(2048)->Arg(8192)->Arg(65536);
BENCHMARK(BM_StoreGet)->Arg(2048)->Arg(8192)->Arg(65536);
BENCHMARK(BM_StoreOpenEmpty);
BENCHMARK(BM_StoreOpen);

} // namespace
