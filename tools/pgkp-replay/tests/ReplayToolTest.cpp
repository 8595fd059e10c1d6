// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelModule.h"
#include "Report.h"
#include "ServingLoop.h"
#include "Synthetic.h"

#include "schema/TestBundle.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace pgkp::rt;

namespace {

/// An entry decode(batch, seq) of the fixture; `seq` stands for the context.
ReplayWorkload decoder() {
  ReplayWorkload workload;
  auto module = Module::load(fixtures::pack(fixtures::testBundle()));
  EXPECT_TRUE(module);
  workload.module = *module;
  return workload;
}

ServingOptions options() {
  ServingOptions result;
  result.roots["seq"] = "context";
  result.maxContext = 1000;
  result.maxTokens = 256;
  result.maxSequences = 4;
  return result;
}

ServingTrace requests(size_t count, double gap, int64_t prompt,
                      int64_t output) {
  ServingTrace trace;
  for (size_t i = 0; i < count; ++i)
    trace.requests.push_back({gap * static_cast<double>(i), prompt, output});
  return trace;
}

TEST(ServingLoop, ALoneRequestIsPrefilledAndDecodedTokenByToken) {
  ReplayWorkload workload = decoder();
  ASSERT_TRUE(serve(requests(1, 0, 100, 4), options(), workload));
  ASSERT_EQ(workload.requests.size(), 4u); // the prefill gives the first token
  EXPECT_EQ(workload.requests[0].roots, (std::vector<int64_t>{1, 100}));
  EXPECT_EQ(workload.requests[1].roots, (std::vector<int64_t>{1, 101}));
  EXPECT_EQ(workload.requests[3].roots, (std::vector<int64_t>{1, 103}));
  for (size_t i = 1; i < 4; ++i)
    EXPECT_DOUBLE_EQ(workload.requests[i].arrival,
                     workload.requests[i - 1].arrival +
                         workload.requests[i - 1].seconds);
}

TEST(ServingLoop, BatchesStayWithinTokensAndSequences) {
  ReplayWorkload workload = decoder();
  ASSERT_TRUE(serve(requests(40, 0.001, 100, 8), options(), workload));
  int64_t widest = 0;
  for (const ReplayRequest &request : workload.requests)
    widest = std::max(widest, request.roots[0]);
  EXPECT_EQ(widest, 4);
  // Two prompts of 100 fit into 256 tokens, three do not.
  EXPECT_TRUE(
      std::any_of(workload.requests.begin(), workload.requests.end(),
                  [](const ReplayRequest &request) {
                    return request.roots == std::vector<int64_t>{2, 100};
                  }));
}

TEST(ServingLoop, LongPromptsRunInChunksAndAreCut) {
  ReplayWorkload workload = decoder();
  ASSERT_TRUE(serve(requests(1, 0, 600, 1), options(), workload));
  ASSERT_EQ(workload.requests.size(), 3u); // 256, 256, 88
  EXPECT_EQ(workload.requests[2].roots[1], 600);
  workload.requests.clear();
  ASSERT_TRUE(serve(requests(1, 0, 5000, 1), options(), workload));
  EXPECT_LE(workload.requests.back().roots[1], 1000);
}

TEST(ServingLoop, AnnouncementsComeAtArrivalAndBeforeTheForward) {
  ReplayWorkload workload = decoder();
  const ServingTrace trace = requests(20, 0.02, 64, 6);
  ASSERT_TRUE(serve(trace, options(), workload));
  EXPECT_EQ(workload.announcements.size(), 40u); // a prefill and a decode each
  for (const ReplayAnnouncement &announcement : workload.announcements)
    EXPECT_GE(announcement.when, announcement.at);
  for (const ReplayRequest &request : workload.requests) {
    EXPECT_GE(request.known, 0);
    EXPECT_LE(request.known, request.arrival);
  }
}

TEST(ServingLoop, ARootWithoutMeaningIsAnError) {
  ReplayWorkload workload = decoder();
  ServingOptions unclear = options();
  unclear.roots["seq"] = "width";
  const Status status = serve(requests(1, 0, 1, 1), unclear, workload);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "entry 'decode': what is its root 'seq'? --root=seq=batch, seq, "
            "tokens, kv, context or a number");
}

TEST(ServingLoop, ForwardsAsCsvHaveTheirRootsByName) {
  ReplayWorkload workload = decoder();
  ASSERT_TRUE(serve(requests(1, 0, 3, 1), options(), workload));
  EXPECT_EQ(toCsv(workload),
            "arrival_s,entry,batch,seq\n0.000000,decode,1,3\n");
}

TEST(Synthetic, HasItsStatistics) {
  auto settings = parseSynthetic(
      "requests=20000,rate=4,prompt_median=500,prompt_sigma=1,repeat=0.25");
  ASSERT_TRUE(settings);
  ServingTrace trace = makeSynthetic(*settings);
  ASSERT_EQ(trace.requests.size(), 20000u);
  // 20000 gaps of mean 1/4 s: the sum is within 4 standard deviations.
  EXPECT_NEAR(trace.requests.back().arrival, 5000, 4 * std::sqrt(20000.0) / 4);
  std::vector<int64_t> prompts;
  for (const auto &request : trace.requests)
    prompts.push_back(request.prompt);
  std::nth_element(prompts.begin(), prompts.begin() + 10000, prompts.end());
  EXPECT_NEAR(static_cast<double>(prompts[10000]), 500, 50);
  // A seed is a trace.
  EXPECT_EQ(makeSynthetic(*settings).requests[777].prompt,
            trace.requests[777].prompt);
  settings->seed = 2;
  EXPECT_NE(makeSynthetic(*settings).requests.back().arrival,
            trace.requests.back().arrival);
}

TEST(Synthetic, UnknownSettingsAreErrors) {
  EXPECT_EQ(parseSynthetic("speed=1").error().message,
            "synthetic workload: no setting 'speed'");
  EXPECT_EQ(parseSynthetic("repeat=2").error().message,
            "synthetic workload: repeat is '2'; expected 0 to 1");
}

TEST(KernelModule, KeysAreTheSameForEveryTraceOfAProgram) {
  KernelTrace trace;
  trace.names = {"void gemm<a b>(int)", "copy"};
  trace.keys = {{0, {1, 2, 3, 4, 5, 6}}, {1, {}}, {0, {9, 2, 3, 4, 5, 6}}};
  trace.launches = {{0, 1e-3, 1, 0, 0}, {1, 1e-3, 2, 1, 0}, {2, 1e-3, 3, 2, 0}};
  auto whole = workloadOf(trace);
  ASSERT_TRUE(whole) << whole.error().message;
  ASSERT_EQ(whole->launches.size(), 3u);
  EXPECT_NE(whole->launches[0].key, whole->launches[2].key);
  EXPECT_EQ(whole->module->kernels()[0].family, "matmul");
  EXPECT_EQ(whole->module->kernels()[1].family, "");
  // A trace that has only the last key names it alike.
  KernelTrace part;
  part.names = {"void gemm<a b>(int)"};
  part.keys = {{0, {9, 2, 3, 4, 5, 6}}};
  part.launches = {{0, 1e-3, 1, 0, 0}};
  auto other = workloadOf(part);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->module->keys()[other->launches[0].key].digest,
            whole->module->keys()[whole->launches[2].key].digest);
  EXPECT_EQ(other->module->hash(), whole->module->hash());
}

RunReport report(const char *policy, double lost) {
  RunReport run;
  run.policy = policy;
  run.metrics["policy"] = policy;
  run.metrics["lost"]["total_s"] = lost;
  return run;
}

TEST(Report, GapClosedIsAShareOfWhatTheOracleSaves) {
  std::vector<RunReport> runs{report("lazy", 12), report("predictive", 4),
                              report("oracle", 2)};
  addGaps(runs);
  EXPECT_DOUBLE_EQ(runs[1].metrics["gap_closed"].get<double>(), 0.8);
  EXPECT_DOUBLE_EQ(runs[2].metrics["gap_closed"].get<double>(), 1);
}

TEST(Report, SmallGapsAreNone) {
  std::vector<RunReport> runs{report("lazy", 2.9), report("oracle", 2)};
  addGaps(runs);
  EXPECT_TRUE(runs[0].metrics["gap_closed"].is_null());
  EXPECT_EQ(runs[0].metrics["gap"], "no gap");
  runs = {report("lazy", 400), report("oracle", 397)};
  addGaps(runs);
  EXPECT_EQ(runs[0].metrics["gap"], "no gap"); // under 1 %
  runs = {report("lazy", 400)};
  addGaps(runs);
  EXPECT_TRUE(runs[0].metrics["gap_closed"].is_null());
}

TEST(Report, ThePageIsSelfContainedAndSafe) {
  RunReport run = report("lazy", 1);
  run.series = Series{};
  run.series->lost = {0, 1};
  run.series->keys.push_back({"k</script><b>", 0, 1, 2, true, 1, 3});
  const std::string page = toHtml({run}, "a<b");
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_NE(page.find("a&lt;b"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("href="), std::string::npos);
  EXPECT_NE(page.find("prefers-color-scheme:dark"), std::string::npos);
}

} // namespace
