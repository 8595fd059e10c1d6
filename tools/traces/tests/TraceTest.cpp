// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Trace.h"

#include "base/TempDir.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

using namespace pgkp::rt;

namespace {

class TraceTest : public ::testing::Test {
protected:
  std::string write(const std::string &name, std::string_view text) {
    const std::string path = folder / name;
    overwrite(path,
              {reinterpret_cast<const uint8_t *>(text.data()), text.size()});
    return path;
  }
  template <typename T> T read(const std::string &text) {
    auto trace = readTrace(write("trace", text));
    EXPECT_TRUE(trace) << trace.error().message;
    if (!trace || !std::holds_alternative<T>(*trace)) {
      ADD_FAILURE() << "not the expected kind of trace";
      return {};
    }
    return std::get<T>(std::move(*trace));
  }
  /// The error without the folder's name.
  std::string problem(const std::string &text,
                      TraceFormat format = TraceFormat::automatic) {
    auto trace = readTrace(write("trace", text), format);
    EXPECT_FALSE(trace);
    if (trace)
      return "";
    const std::string message = trace.error().message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    const std::string prefix = folder.path + "/";
    EXPECT_TRUE(message.starts_with(prefix)) << message;
    return message.starts_with(prefix) ? message.substr(prefix.size())
                                       : message;
  }
  TempDir folder;
};

// CSV of serving traces.

TEST_F(TraceTest, AzureTimesCountFromTheFirstRequest) {
  const auto trace =
      read<ServingTrace>("TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
                         "2023-11-16 23:59:59.7500000,374,44\r\n"
                         "2023-11-17 00:00:01.0000000,0,0\r\n");
  ASSERT_EQ(trace.requests.size(), 2u);
  EXPECT_EQ(trace.requests[0].arrival, 0);
  EXPECT_EQ(trace.requests[0].prompt, 374);
  EXPECT_EQ(trace.requests[0].output, 44);
  EXPECT_DOUBLE_EQ(trace.requests[1].arrival, 1.25);
  EXPECT_EQ(trace.requests[1].prompt, 1); // at least one token runs
}

TEST_F(TraceTest, AzureOf2024HasZonesAndOtherColumns) {
  const auto trace =
      read<ServingTrace>("ContextTokens,TIMESTAMP,GeneratedTokens\n"
                         "5,2024-05-10 00:00:00.009930+00:00,2\n"
                         "6,2024-05-10 00:00:00.010930+00:00,3\n");
  ASSERT_EQ(trace.requests.size(), 2u);
  EXPECT_NEAR(trace.requests[1].arrival, 0.001, 1e-12);
  EXPECT_EQ(trace.requests[1].prompt, 6);
}

TEST_F(TraceTest, AzureErrorsNameTheLine) {
  EXPECT_EQ(problem("TIMESTAMP,ContextTokens\n2023-11-16 18:15:46,1\n",
                    TraceFormat::azure),
            "trace:1: no column 'GeneratedTokens'");
  EXPECT_EQ(problem("TIMESTAMP,ContextTokens,GeneratedTokens\n"
                    "2023-11-16 18:15:46,1,1\n2023-13-16 18:15:46,1,1\n"),
            "trace:3: TIMESTAMP is '2023-13-16 18:15:46'; expected YYYY-MM-DD "
            "hh:mm:ss.fraction");
  EXPECT_EQ(problem("TIMESTAMP,ContextTokens,GeneratedTokens\n"
                    "2023-11-16 18:15:46,-4,1\n"),
            "trace:2: ContextTokens is -4; expected an integer in [0, "
            "1073741824]");
  EXPECT_EQ(problem("TIMESTAMP,ContextTokens,GeneratedTokens\n"
                    "2023-11-16 18:15:46,4\n"),
            "trace:2: expected 3 fields, found 2");
}

TEST_F(TraceTest, MooncakeIsInMilliseconds) {
  const auto trace = read<ServingTrace>(
      "{\"timestamp\": 500, \"input_length\": 6758, \"output_length\": 500, "
      "\"hash_ids\": [0, 1]}\n"
      "{\"timestamp\": 2000, \"input_length\": 10, \"output_length\": 0}\n");
  ASSERT_EQ(trace.requests.size(), 2u);
  EXPECT_EQ(trace.requests[0].prompt, 6758);
  EXPECT_DOUBLE_EQ(trace.requests[1].arrival, 1.5);
  EXPECT_EQ(trace.requests[1].output, 1);
}

TEST_F(TraceTest, MooncakeErrorsNameTheLine) {
  const std::string good =
      "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}\n";
  EXPECT_EQ(problem(good + "{\"timestamp\": 0, \"output_length\": 1}\n"),
            "trace:2: expected a number 'input_length'");
  EXPECT_EQ(problem(good + "{\"timestamp\"\n"),
            "trace:2: expected a JSON object");
  EXPECT_EQ(problem(good + "{\"timestamp\": 0, \"input_length\": -1, "
                           "\"output_length\": 1}\n"),
            "trace:2: input_length is -1; expected 0 to 1073741824");
}

// Operators.

TEST_F(TraceTest, OperatorsAreKeyedByTypeAndShapes) {
  const auto trace = read<KernelTrace>("t_us,fwd,op,dtype,shapes\n"
                                       "512,0,mm.default,bf16,8x4;4x2s\n"
                                       "520,0,mm.default,bf16,8x4;4x2s\n"
                                       "530,0,mm.default,bf16,8x4;4x2\n"
                                       "540,0,mm.default,f32,8x4;4x2s\n"
                                       "550,0,add,f32,;4\n");
  ASSERT_EQ(trace.launches.size(), 5u);
  EXPECT_EQ(trace.keys.size(), 4u);
  EXPECT_EQ(trace.launches[0].key, trace.launches[1].key);
  EXPECT_EQ(trace.keys[0].extents, (std::vector<int64_t>{8, 4, 4, 2}));
  EXPECT_EQ(trace.names[trace.keys[3].name], "add:f32:0;1");
  EXPECT_NEAR(trace.launches[1].start, 8e-6, 1e-12);
  EXPECT_FALSE(trace.measured);
}

TEST_F(TraceTest, OperatorErrorsNameTheLine) {
  const std::string header = "t_us,fwd,op,dtype,shapes\n";
  EXPECT_EQ(problem(header + "1,0,mm,f32,-8x4\n"),
            "trace:2: shapes is '-8x4'; expected extents like 8x64s;64, none "
            "negative");
  EXPECT_EQ(problem(header + "1,0,mm,f32,8x\n"),
            "trace:2: shapes is '8x'; expected extents like 8x64s;64, none "
            "negative");
  EXPECT_EQ(problem(header + "x,0,mm,f32,8\n"),
            "trace:2: t_us is 'x'; expected a time, not negative");
  EXPECT_EQ(problem("t_us,fwd,op,dtype\n1,0,mm,f32\n"),
            "trace:1: no column 'shapes'");
}

// Kineto.

std::string kernel(const char *name, double ts, int stream, int correlation,
                   const char *grid = "[1, 2, 3]") {
  return fmt::format(
      R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7,
          "ts": {}, "dur": 2.5, "args": {{"device": 0, "stream": {},
          "Input Dims": [[1], [[2]]], "correlation": {}, "grid": {},
          "block": [64, 1, 1], "nested": {{"stream": 99}}}}}})",
      name, ts, stream, correlation, grid);
}

TEST_F(TraceTest, KinetoKeepsDeviceKernelsInOrder) {
  const auto trace = read<KernelTrace>(
      R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "x"}],
          "traceEvents": [)" +
      kernel("b", 1010, 7, 12) + "," + kernel("a", 1010, 7, 11) + "," +
      R"({"ph": "X", "cat": "cpu_op", "name": "c", "ts": 5, "dur": 1},
         {"ph": "i", "cat": "kernel", "name": "d", "ts": 6},)" +
      kernel("a", 1000, 20, 10) + R"(], "traceName": "t"})");
  ASSERT_EQ(trace.launches.size(), 3u);
  const auto name = [&](size_t i) {
    return trace.names[trace.keys[trace.launches[i].key].name];
  };
  EXPECT_EQ(name(0), "a");
  EXPECT_EQ(name(1), "a"); // the lower correlation at the same time
  EXPECT_EQ(name(2), "b");
  EXPECT_EQ(trace.launches[0].stream, 0u);
  EXPECT_EQ(trace.launches[1].stream, 1u);
  EXPECT_NEAR(trace.launches[1].start, 10e-6, 1e-12);
  EXPECT_NEAR(trace.launches[1].seconds, 2.5e-6, 1e-12);
  EXPECT_EQ(trace.keys[0].extents, (std::vector<int64_t>{1, 2, 3, 64, 1, 1}));
  EXPECT_TRUE(trace.measured);
}

TEST_F(TraceTest, KinetoMayBeABareArray) {
  EXPECT_EQ(read<KernelTrace>("[" + kernel("a", 1, 7, 1) + "]").launches.size(),
            1u);
}

TEST_F(TraceTest, KinetoErrorsNameTheLine) {
  EXPECT_EQ(problem("{\"traceEvents\": [\n" +
                    kernel("a", 1, 7, 1, "[1, -2, 3]") + "]}"),
            "trace:5: kernel 'a': grid is -2; expected an extent in [0, "
            "1099511627776]");
  EXPECT_EQ(problem("{\"traceEvents\": [\n" + kernel("a", 1, 7, 1)),
            "trace:5: JSON: Missing a comma or ']' after an array element.");
  EXPECT_EQ(problem("{\"schemaVersion\": 1}"),
            "trace:1: no member 'traceEvents'");
  EXPECT_EQ(problem("{\"traceEvents\": []}"),
            "trace:1: no device kernel among the events (category 'kernel')");
  EXPECT_EQ(problem("hello\n"),
            "trace:1: the format is none of azure, mooncake, forwards, "
            "operators, kineto, execution; name it with --format");
}

TEST_F(TraceTest, DeepNestingIsReadWithoutDeepStacks) {
  std::string text = "{\"x\": ";
  text += std::string(200000, '[') + std::string(200000, ']');
  EXPECT_EQ(problem(text + "}", TraceFormat::kineto),
            "trace:1: no member 'traceEvents'");
}

// Execution traces.

TEST_F(TraceTest, ExecutionTracesOfBothSchemasGiveInnermostOperators) {
  const auto old = read<KernelTrace>(R"x({"schema": "1.0.1", "nodes": [
    {"name": "aten::t", "id": 3, "parent": 1, "op_schema": "aten::t(Tensor(a) self) -> Tensor(a)",
     "input_shapes": [[8, 4]], "input_types": ["Tensor(float)"]},
    {"name": "aten::mm", "id": 5, "parent": 2, "op_schema": "aten::mm(Tensor self, Tensor mat2) -> Tensor",
     "input_shapes": [[8, 4], [4, 2]], "input_types": ["Tensor(float)", "Tensor(float)"]},
    {"name": "aten::linear", "id": 2, "parent": 1, "op_schema": "aten::linear(Tensor input, Tensor weight) -> Tensor",
     "input_shapes": [[8, 4], [2, 4]], "input_types": ["Tensor(float)", "Tensor(float)"]},
    {"name": "aten::add_", "id": 6, "parent": 1, "op_schema": "aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
     "input_shapes": [[8, 2], []], "input_types": ["Tensor(float)", "Tensor(float)"]}]})x");
  ASSERT_EQ(old.launches.size(), 2u); // mm inside linear, and add_
  EXPECT_EQ(old.names[old.keys[old.launches[0].key].name],
            "aten::mm:[Tensor(float),Tensor(float)]:[[#,#],[#,#]]");
  EXPECT_EQ(old.keys[0].extents, (std::vector<int64_t>{8, 4, 4, 2}));
  EXPECT_LT(old.launches[0].start, old.launches[1].start);

  const auto chakra = read<KernelTrace>(R"x({"schema": "1.1.0", "nodes": [
    {"id": 82, "name": "aten::mm", "ctrl_deps": 3,
     "inputs": {"values": [[1, 2], 1], "shapes": [[8, 4], [4, 2]], "types": ["Tensor(float)", "Tensor(float)"]},
     "outputs": {"values": [], "shapes": [[8, 2]], "types": ["Tensor(float)"]},
     "attrs": [{"name": "rf_id", "type": "uint64", "value": 39},
               {"name": "op_schema", "type": "string", "value": "aten::mm(Tensor self, Tensor mat2) -> Tensor"}]}]})x");
  ASSERT_EQ(chakra.launches.size(), 1u);
  EXPECT_EQ(chakra.keys[0].extents, (std::vector<int64_t>{8, 4, 4, 2}));
}

TEST_F(TraceTest, ExecutionErrorsNameTheLine) {
  EXPECT_EQ(problem(R"({"nodes": [
    {"name": "aten::mm", "id": 5, "input_shapes": [[8, -4]]}]})"),
            "trace:2: node 5 'aten::mm' has the extent -4; expected none below "
            "0");
  EXPECT_EQ(problem(R"({"nodes": []})"),
            "trace:1: no operator with tensors among the nodes");
}

// Containers.

class RecordedTest : public TraceTest {
protected:
  std::string recorded(const std::string &name) {
    return std::string(PGKP_RECORDED_TRACES) + "/" + name;
  }
  std::string bytes(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(RecordedTest, ReadsCompressedFiles) {
  auto kineto = readTrace(recorded("bert.kineto.json.gz"));
  ASSERT_TRUE(kineto) << kineto.error().message;
  EXPECT_GT(std::get<KernelTrace>(*kineto).launches.size(), 200u);
  auto operators = readTrace(recorded("bert.ops.csv.gz"));
  ASSERT_TRUE(operators) << operators.error().message;
  EXPECT_GT(std::get<KernelTrace>(*operators).keys.size(), 100u);
  auto forwards = readTrace(recorded("llama.fwd.csv.gz"));
  ASSERT_TRUE(forwards) << forwards.error().message;
  EXPECT_EQ(std::get<ForwardTrace>(*forwards).columns,
            (std::vector<std::string>{"batch", "seq", "kv", "requests"}));
}

TEST_F(RecordedTest, TruncatedGzipIsAnErrorWhereverItEnds) {
  const std::string whole = bytes(recorded("bert.kineto.json.gz"));
  for (size_t size : {size_t{2}, size_t{9}, size_t{200}, whole.size() / 2,
                      whole.size() - 1}) {
    const std::string text =
        problem(whole.substr(0, size), TraceFormat::kineto);
    EXPECT_TRUE(text.starts_with("trace: gzip data ends early")) << text;
  }
}

TEST_F(RecordedTest, DamagedGzipIsAnError) {
  std::string damaged = bytes(recorded("bert.ops.csv.gz"));
  for (size_t i = damaged.size() / 2; i < damaged.size() / 2 + 64; ++i)
    damaged[i] = static_cast<char>(~damaged[i]);
  const std::string text = problem(damaged, TraceFormat::operators);
  EXPECT_FALSE(text.empty());
}

TEST_F(TraceTest, TheFirstFileOfAnArchiveIsRead) {
  const std::string text = "t_us,fwd,op,dtype,shapes\n1,0,mm,f32,8\n";
  std::string header(512, '\0');
  header.replace(0, 5, "x.csv");
  header.replace(124, 11, fmt::format("{:011o}", text.size()));
  header[156] = '0';
  header.replace(257, 5, "ustar");
  std::string padding(512 - text.size() % 512 + 1024, '\0');
  EXPECT_EQ(read<KernelTrace>(header + text + padding).launches.size(), 1u);
  // Lines are the file's, not the archive's.
  const std::string bad = "t_us,fwd,op,dtype,shapes\n1,0,mm,f32,z\n";
  EXPECT_TRUE(problem(header + bad + padding).starts_with("trace:2: shapes"));
  // An archive that ends before its file does.
  EXPECT_EQ(problem(header + text.substr(0, 30)),
            "trace: the tar archive ends early");
}

// The traces of others, where they are.

TEST(SharedTraces, AreReadWhole) {
  const char *folder = std::getenv("PGKP_TEST_DATA");
  if (!folder)
    GTEST_SKIP() << "PGKP_TEST_DATA is not set";
  size_t found = 0;
  const auto launches = [&](const char *name) -> std::pair<size_t, size_t> {
    const std::string path = std::string(folder) + "/" + name;
    if (!std::filesystem::exists(path))
      return {0, 0};
    ++found;
    auto trace = readTrace(path);
    EXPECT_TRUE(trace) << trace.error().message;
    if (!trace)
      return {0, 0};
    if (auto *kernels = std::get_if<KernelTrace>(&*trace))
      return {kernels->launches.size(), kernels->keys.size()};
    return {std::get<ServingTrace>(*trace).requests.size(), 0};
  };
  const std::pair<size_t, size_t> absent{0, 0};
  if (auto n =
          launches("kineto-hta/df_index_resolver__df_index_resolver.json.gz");
      n != absent) {
    EXPECT_EQ(n.first, 19370u);
  }
  if (auto n = launches("pytorch-et/resnet_kineto.json.gz"); n != absent) {
    EXPECT_EQ(n.second, 111u);
  }
  if (auto n = launches("pytorch-et/hf_GPT2_et.json.tar.gz"); n != absent) {
    EXPECT_GT(n.first, 1000u);
  }
  if (auto n = launches("pytorch-et/linear_et.json.gz"); n != absent) {
    EXPECT_GT(n.first, 10u);
  }
  if (auto n = launches("azure-llm-2023/AzureLLMInferenceTrace_conv.csv.gz");
      n != absent) {
    EXPECT_EQ(n.first, 19366u);
  }
  if (auto n = launches("mooncake-fast25/conversation_trace.jsonl.gz");
      n != absent) {
    EXPECT_EQ(n.first, 12031u);
  }
  if (found == 0)
    GTEST_SKIP() << "PGKP_TEST_DATA has none of the traces";
}

} // namespace
