// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast/NextKey.h"

#include "base/Random.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

using namespace pgkp::rt;
using forecast::NextKey;

namespace {

double accuracy(const std::vector<KeyId> &sequence, size_t from = 1) {
  NextKey predictor;
  size_t right = 0;
  for (size_t i = 0; i < sequence.size(); ++i) {
    if (i >= from)
      right += predictor.predicted() == sequence[i];
    predictor.observe(sequence[i]);
  }
  return static_cast<double>(right) /
         static_cast<double>(sequence.size() - from);
}

TEST(NextKey, NothingKnownNothingPredicted) {
  NextKey predictor;
  EXPECT_EQ(predictor.predicted(), kNoKey);
  EXPECT_EQ(predictor.probability(), 0);
  predictor.observe(5);
  EXPECT_EQ(predictor.predicted(), kNoKey);
}

TEST(NextKey, ACycleIsLearntAfterOneRound) {
  std::vector<KeyId> sequence;
  for (int i = 0; i < 100; ++i)
    for (KeyId key : {3, 1, 4, 15, 9})
      sequence.push_back(key);
  EXPECT_EQ(accuracy(sequence, 6), 1);
}

TEST(NextKey, LongHistoryTellsEqualContextsApart) {
  // After seven times 0 comes 1 or 2, in turn: the last key alone is right once
  // in four.
  std::vector<KeyId> sequence;
  for (int i = 0; i < 400; ++i) {
    sequence.insert(sequence.end(), 7, 0);
    sequence.push_back(1 + i % 2);
  }
  EXPECT_GT(accuracy(sequence, 800), 0.99);
}

TEST(NextKey, ProbabilityIsTheShareOfRightOnes) {
  // A cycle whose every eighth step is a fair coin: certain where it can be.
  SeededRandom random(7);
  NextKey predictor;
  double claimed = 0, right = 0, asked = 0;
  for (int i = 0; i < 40000; ++i) {
    const KeyId key =
        i % 8 == 7 ? 100 + static_cast<KeyId>(random.below(2)) : i % 8;
    if (i > 1000) {
      claimed += predictor.probability();
      right += predictor.predicted() == key;
      ++asked;
    }
    predictor.observe(key);
  }
  EXPECT_NEAR(right / asked, 15.0 / 16, 0.02);
  EXPECT_NEAR(claimed / asked, right / asked, 0.01);
}

TEST(NextKey, FitsItsBudget) {
  // The tables are the only thing it allocates.
  EXPECT_LE(sizeof(NextKey) + NextKey::kTables * NextKey::kEntries * 8 +
                NextKey::kEntries * 8,
            256u * 1024);
}

/// Device kernels of a Kineto trace as keys (name, grid, block), in order of
/// time, stream, correlation.
std::vector<KeyId> kinetoKeys(const std::string &path) {
  FILE *pipe = popen(("gzip -dc '" + path + "'").c_str(), "r");
  if (!pipe)
    return {};
  std::string text;
  char buffer[1 << 16];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    text.append(buffer, n);
  pclose(pipe);
  const auto trace = nlohmann::json::parse(text, nullptr, false);
  std::vector<std::tuple<double, int64_t, int64_t, std::string>> kernels;
  for (const auto &event :
       trace.value("traceEvents", nlohmann::json::array())) {
    const std::string category = event.value("cat", "");
    if (category != "kernel" && category != "Kernel")
      continue;
    const auto &args = event["args"];
    kernels.emplace_back(
        event["ts"].get<double>(), args.value("stream", int64_t{0}),
        args.value("correlation", int64_t{0}),
        event.value("name", "") + args.value("grid", nlohmann::json()).dump() +
            args.value("block", nlohmann::json()).dump());
  }
  std::sort(kernels.begin(), kernels.end());
  std::map<std::string, KeyId> numbers;
  std::vector<KeyId> keys;
  for (const auto &[ts, stream, correlation, name] : kernels)
    keys.push_back(numbers.emplace(name, numbers.size()).first->second);
  return keys;
}

/// Real traces, where they are: the folder is PGKP_TEST_DATA's.
double traceAccuracy(const char *file) {
  const char *folder = std::getenv("PGKP_TEST_DATA");
  const std::string path = std::string(folder ? folder : "") + "/" + file;
  if (!folder || !std::filesystem::exists(path))
    return -1;
  const auto keys = kinetoKeys(path);
  EXPECT_GT(keys.size(), 1000u);
  return keys.empty() ? 0 : accuracy(keys);
}

TEST(NextKeyTrace, HolisticTraceAnalysis) {
  const double result =
      traceAccuracy("kineto-hta/df_index_resolver__df_index_resolver.json.gz");
  if (result < 0)
    GTEST_SKIP() << "PGKP_TEST_DATA has no kineto-hta";
  RecordProperty("accuracy", std::to_string(result));
  std::printf("next-key accuracy %.4f\n", result);
  EXPECT_GE(result, 0.94);
}

TEST(NextKeyTrace, ResNet) {
  const double result = traceAccuracy("pytorch-et/resnet_kineto.json.gz");
  if (result < 0)
    GTEST_SKIP() << "PGKP_TEST_DATA has no pytorch-et";
  std::printf("next-key accuracy %.4f\n", result);
  EXPECT_GE(result, 0.975);
}

} // namespace
