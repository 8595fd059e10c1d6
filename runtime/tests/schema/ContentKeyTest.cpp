// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "schema/ContentKey.h"
#include "schema/TestBundle.h"

#include <gtest/gtest.h>
#include <set>

using namespace pgkp;
using namespace pgkp::rt;
using namespace pgkp::rt::fixtures;

namespace {
struct Inputs {
  Digest kernel = matmulHash();
  std::vector<schema::Fact> facts{eq(0, 1), divisible(1, 16)};
  std::vector<std::pair<std::string, int64_t>> config{{"mr", 6}, {"nr", 16}};
  std::string chip = "x86-64", features = "+avx2", producer = "pgkp 1";
  schema::DeviceKind device = schema::DeviceKind::host;
  schema::CodeFormat format = schema::CodeFormat::elf;
  schema::Pipeline pipeline = schema::Pipeline::full;

  Digest key() const {
    flatbuffers::FlatBufferBuilder configBuilder, targetBuilder;
    schema::ConfigT table;
    for (const auto &[name, value] : config) {
      table.items.push_back(std::make_unique<schema::ConfigItemT>());
      table.items.back()->name = name;
      table.items.back()->integer = value;
    }
    configBuilder.Finish(schema::Config::Pack(configBuilder, &table));
    schema::TargetT target;
    target.device = device;
    target.chip = chip;
    target.features = features;
    targetBuilder.Finish(schema::Target::Pack(targetBuilder, &target));
    return contentKey(
        kernel, facts,
        flatbuffers::GetRoot<schema::Config>(configBuilder.GetBufferPointer()),
        *flatbuffers::GetRoot<schema::Target>(targetBuilder.GetBufferPointer()),
        format, pipeline, producer);
  }
};
} // namespace

TEST(ContentKey, EveryTermCounts) {
  std::set<Digest> keys{Inputs().key()};
  auto differs = [&](auto change) {
    Inputs inputs;
    change(inputs);
    EXPECT_TRUE(keys.insert(inputs.key()).second);
  };
  differs([](Inputs &i) { i.kernel.bytes[31] ^= 1; });
  differs([](Inputs &i) { i.facts.pop_back(); });
  differs([](Inputs &i) { i.facts[0] = eq(0, 2); });
  differs([](Inputs &i) { i.config[0].second = 8; });
  differs([](Inputs &i) { i.config.pop_back(); });
  differs([](Inputs &i) { i.chip = "x86-64-v3"; });
  differs([](Inputs &i) { i.features = ""; });
  differs([](Inputs &i) { i.device = schema::DeviceKind::sim; });
  differs([](Inputs &i) { i.format = schema::CodeFormat::ptx; });
  differs([](Inputs &i) { i.pipeline = schema::Pipeline::lean; });
  differs([](Inputs &i) { i.producer = "pgkp 2"; });
}

TEST(ContentKey, OrderAndRepetitionDoNotCount) {
  Inputs inputs;
  std::swap(inputs.facts[0], inputs.facts[1]);
  inputs.facts.push_back(eq(0, 1));
  inputs.facts.push_back(divisible(0, 1));
  std::swap(inputs.config[0], inputs.config[1]);
  EXPECT_EQ(inputs.key(), Inputs().key());
  EXPECT_EQ(keyDigest(matmulHash(), inputs.facts),
            keyDigest(matmulHash(), Inputs().facts));
  EXPECT_NE(keyDigest(matmulHash(), {}), keyDigest(matmulHash(), inputs.facts));
}
