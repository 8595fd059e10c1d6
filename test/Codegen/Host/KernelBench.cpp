// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// Host kernels against OpenBLAS (one thread, found by dlopen) and against
/// loops that the system's compiler vectorized. Every ratio is the median over
/// rounds in which both sides run one after the other; above 1: ours is faster.
#include "LoadedKernel.h"
#include "RowsReference.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <optional>
#include <random>

using namespace pgkp::schema;
using pgkp::test::LoadedKernel;
using pgkp::test::Variant;

namespace {

constexpr int kRounds = 15;
constexpr double kRoundSeconds = 0.004;

using Clock = std::chrono::steady_clock;

double seconds(const std::function<void()> &run, int64_t times) {
  auto begin = Clock::now();
  for (int64_t i = 0; i < times; ++i)
    run();
  return std::chrono::duration<double>(Clock::now() - begin).count() /
         static_cast<double>(times);
}

int64_t timesPerRound(const std::function<void()> &run) {
  run();
  double once = std::max(seconds(run, 1), 1e-8);
  return std::clamp<int64_t>(static_cast<int64_t>(kRoundSeconds / once), 1,
                             100000);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

/// The median of reference time / our time, and our median time.
struct Ratio {
  double ratio = 0, ours = 0;
};

std::vector<Ratio> compare(const std::function<void()> &reference,
                           const std::vector<std::function<void()>> &ours) {
  int64_t referenceTimes = timesPerRound(reference);
  std::vector<int64_t> times;
  for (const auto &run : ours)
    times.push_back(timesPerRound(run));
  std::vector<std::vector<double>> ratios(ours.size()), own(ours.size());
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < ours.size(); ++i) {
      double theirs = seconds(reference, referenceTimes);
      double time = seconds(ours[i], times[i]);
      ratios[i].push_back(theirs / time);
      own[i].push_back(time);
    }
  std::vector<Ratio> result;
  for (size_t i = 0; i < ours.size(); ++i)
    result.push_back({median(ratios[i]), median(own[i])});
  return result;
}

/// Aligned memory with random content.
struct Buffer {
  explicit Buffer(int64_t count)
      : memory(static_cast<float *>(
            std::aligned_alloc(64, (count * 4 + 127) / 64 * 64))) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> draw(-1, 1);
    for (int64_t i = 0; i < count; ++i)
      memory[i] = draw(random);
  }
  ~Buffer() { std::free(memory); }
  float *memory;
};

/// A call with its headers and scratch.
class Call {
public:
  Call(const LoadedKernel &kernel, const std::vector<int64_t> &extents,
       std::vector<std::pair<float *, std::vector<int64_t>>> tensors)
      : kernel(kernel), scratch(kernel.workspaceBytes(extents) / 4 + 16) {
    for (auto &[data, shape] : tensors)
      headers.push_back(pgkp::test::makeHeader(data, shape));
    for (auto &header : headers)
      arguments.push_back(header.data());
    arguments.push_back(scratch.memory);
  }
  void operator()() { kernel.function(arguments.data()); }

private:
  const LoadedKernel &kernel;
  Buffer scratch;
  std::vector<std::vector<int64_t>> headers;
  std::vector<void *> arguments;
};

mlir::pgkp::HostCompiler &compiler() {
  static mlir::pgkp::HostCompiler instance;
  return instance;
}

LoadedKernel compileOrDie(const std::string &source, const Variant &variant) {
  auto kernel = LoadedKernel::create(compiler(), source, variant);
  if (!kernel) {
    std::fprintf(stderr, "error: %s: %s\n", describe(variant).c_str(),
                 kernel.error().message.c_str());
    std::exit(1);
  }
  return std::move(*kernel);
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

using Sgemm = void (*)(int, int, int, int, int, int, float, const float *, int,
                       const float *, int, float, float *, int);
using Sgemv = void (*)(int, int, int, int, float, const float *, int,
                       const float *, int, float, float *, int);

struct OpenBLAS {
  Sgemm sgemm = nullptr;
  Sgemv sgemv = nullptr;

  static std::optional<OpenBLAS> find() {
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    void *handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      return std::nullopt;
    OpenBLAS blas;
    blas.sgemm = reinterpret_cast<Sgemm>(dlsym(handle, "cblas_sgemm"));
    blas.sgemv = reinterpret_cast<Sgemv>(dlsym(handle, "cblas_sgemv"));
    auto core =
        reinterpret_cast<char *(*)()>(dlsym(handle, "openblas_get_corename"));
    auto config =
        reinterpret_cast<char *(*)()>(dlsym(handle, "openblas_get_config"));
    if (!blas.sgemm || !blas.sgemv)
      return std::nullopt;
    std::printf("OpenBLAS core %s (%s)\n", core ? core() : "?",
                config ? config() : "?");
    return blas;
  }
};

/// The shape of a model's product: rows dynamic, the weight's sizes known.
std::string matmulSource(int64_t k, int64_t n) {
  std::string ks = std::to_string(k), ns = std::to_string(n);
  std::string a = "tensor<?x" + ks + "xf32>",
              w = "tensor<" + ks + "x" + ns + "xf32>",
              o = "tensor<?x" + ns + "xf32>";
  return "pgkp.kernel private @k(%a: " + a + ", %w: " + w + ", %o: " + o +
         ") -> " + o + " dims(m) args([m, " + ks + "], [" + ks + ", " + ns +
         "], [m, " + ns + "]) {\n  %z = arith.constant 0.0 : f32\n" +
         "  %i = linalg.fill ins(%z : f32) outs(%o : " + o + ") -> " + o +
         "\n  %r = linalg.matmul ins(%a, %w : " + a + ", " + w +
         ") outs(%i : " + o + ") -> " + o + "\n  pgkp.return %r : " + o + "\n}";
}

struct Shape {
  int64_t m, k, n;
};

void printRatios(const Shape &shape, const char *routine,
                 const std::vector<Ratio> &ratios) {
  auto [m, k, n] = shape;
  std::printf("%s %5ld x%5ld x%5ld", routine, m, k, n);
  for (size_t i = 0; i < ratios.size(); ++i)
    std::printf("  %5.2f (%5.1f GF/s)", ratios[i].ratio,
                2e-9 * static_cast<double>(m * k * n) / ratios[i].ours);
  std::printf("\n");
  std::fflush(stdout);
}

void benchMatmul(const OpenBLAS &blas, const Shape &shape,
                 const std::vector<Variant> &variants) {
  auto [m, k, n] = shape;
  Buffer a(m * k), b(k * n), c(m * n);
  std::vector<LoadedKernel> kernels;
  for (const Variant &variant : variants)
    kernels.push_back(compileOrDie(matmulSource(k, n), variant));
  std::vector<std::function<void()>> ours;
  for (LoadedKernel &kernel : kernels) {
    auto call = std::make_shared<Call>(
        kernel, std::vector<int64_t>{m},
        std::vector<std::pair<float *, std::vector<int64_t>>>{
            {a.memory, {m, k}}, {b.memory, {k, n}}, {c.memory, {m, n}}});
    ours.push_back([call] { (*call)(); });
  }
  // Row major is 101, no transposition 111, transposition 112.
  auto gemm = [&] {
    blas.sgemm(101, 111, 111, m, n, k, 1, a.memory, k, b.memory, n, 0, c.memory,
               n);
  };
  auto gemv = [&] {
    blas.sgemv(101, 112, k, n, 1, b.memory, n, a.memory, 1, 0, c.memory, 1);
  };
  printRatios(shape, "gemm", compare(gemm, ours));
  if (m == 1)
    printRatios(shape, "gemv", compare(gemv, ours));
}
void benchMatmuls(const std::vector<Variant> &extra, const std::string &only) {
  auto blas = OpenBLAS::find();
  if (!blas) {
    std::printf("skipped: no libopenblas.so.0\n");
    return;
  }
  std::printf("rows x depth x columns: OpenBLAS time / ours\n");
  std::printf("%25s  %-18s%-20s", "", "generic", "  class");
  for (const Variant &variant : extra)
    std::printf("%s", describe(variant).c_str());
  std::printf("\n");
  std::vector<Shape> shapes;
  for (int64_t size : {64, 100, 128, 192, 250, 256, 333, 512, 768, 1000, 1024})
    shapes.push_back({size, size, size});
  for (Shape shape : {Shape{127, 193, 251},
                      {250, 200, 300},
                      {333, 411, 517},
                      {256, 768, 3072},
                      {197, 1024, 2816}})
    shapes.push_back(shape);
  for (Shape shape : {Shape{8, 512, 512},
                      {16, 256, 256},
                      {16, 1024, 1024},
                      {16, 3072, 768},
                      {24, 1000, 500},
                      {32, 1024, 1024},
                      {48, 768, 768},
                      {1, 256, 256},
                      {1, 1024, 1024},
                      {1, 2816, 1024},
                      {1, 1000, 333}})
    shapes.push_back(shape);
  for (const Shape &shape : shapes) {
    if (!only.empty() && only != std::to_string(shape.m) + "x" +
                                     std::to_string(shape.k) + "x" +
                                     std::to_string(shape.n))
      continue;
    Variant generic, specialized;
    generic.pipeline = Pipeline::full;
    specialized.facts = {
        shape.m < 48 ? Fact(FactKind::eq, 0, shape.m, 0)
                     : Fact(FactKind::range, 0, shape.m / 2 + 1, 2 * shape.m)};
    std::vector<Variant> variants = {generic, specialized};
    variants.insert(variants.end(), extra.begin(), extra.end());
    benchMatmul(*blas, shape, variants);
  }
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Reductions over rows as models have them, one operation a step.
std::string rowSource(const std::string &kind, int64_t n) {
  std::string size = n < 0 ? "?" : std::to_string(n);
  std::string bind = n < 0 ? "n" : size;
  std::string t = "tensor<?x" + size + "xf32>", row = "tensor<?xf32>",
              w = "tensor<" + size + "xf32>";
  std::string source =
      "#id = affine_map<(d0, d1) -> (d0, d1)>\n#row = affine_map<(d0, d1) -> "
      "(d0)>\n#col = affine_map<(d0, d1) -> (d1)>\npgkp.kernel private "
      "@k(%x: " +
      t + ", %w: " + w + ", %o: " + t + ") -> " + t + " dims(m" +
      (n < 0 ? ", n" : "") + ") args([m, " + bind + "], [" + bind + "], [m, " +
      bind + "]) {\n  %zero = arith.constant 0.0 : f32\n" +
      "  %low = arith.constant 0xFF800000 : f32\n" +
      "  %eps = arith.constant 1.0e-5 : f32\n" +
      "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n" +
      "  %m = tensor.dim %x, %c0 : " + t +
      "\n  %n = tensor.dim %x, %c1 : " + t +
      "\n  %ni = arith.index_cast %n : index to i32\n" +
      "  %nf = arith.sitofp %ni : i32 to f32\n" +
      "  %re = tensor.empty(%m) : " + row + "\n  %te = tensor.empty(%m" +
      (n < 0 ? ", %n" : "") + ") : " + t + "\n";
  auto fill = [&](const char *name, const char *value) {
    source += std::string("  %") + name + " = linalg.fill ins(%" + value +
              " : f32) outs(%re : " + row + ") -> " + row + "\n";
  };
  // Maps and types: t a tensor, r a value a row, c a value a column.
  auto generic = [&](const std::string &name, const std::string &kinds,
                     const std::string &ins, char out, const std::string &init,
                     const std::string &body) {
    auto map = [](char c) {
      return c == 't' ? "#id" : c == 'r' ? "#row" : "#col";
    };
    auto type = [&](char c) { return c == 't' ? t : c == 'r' ? row : w; };
    std::string maps, types, arguments;
    for (size_t i = 0; i < kinds.size(); ++i) {
      maps += std::string(map(kinds[i])) + ", ";
      types += (i ? ", " : "") + type(kinds[i]);
      arguments += "%v" + std::to_string(i) + ": f32, ";
    }
    source += "  %" + name + " = linalg.generic {indexing_maps = [" + maps +
              map(out) + "], iterator_types = [\"parallel\", \"" +
              (out == 't' ? "parallel" : "reduction") + "\"]} ins(" + ins +
              " : " + types + ") outs(%" + init + " : " + type(out) +
              ") {\n    ^bb0(" + arguments + "%acc: f32):\n" + body +
              "      linalg.yield %r : f32\n  } -> " + type(out) + "\n";
  };
  if (kind == "softmax") {
    fill("mi", "low");
    generic("max", "t", "%x", 'r', "mi",
            "      %r = arith.maxnumf %acc, %v0 : f32\n");
    generic("exp", "tr", "%x, %max", 't', "te",
            "      %d = arith.subf %v0, %v1 : f32\n"
            "      %r = math.exp %d : f32\n");
    fill("si", "zero");
    generic("sum", "t", "%exp", 'r', "si",
            "      %r = arith.addf %acc, %v0 : f32\n");
    generic("y", "tr", "%exp, %sum", 't', "o",
            "      %r = arith.divf %v0, %v1 : f32\n");
  } else {
    fill("si", "zero");
    std::string center;
    if (kind == "layer norm") {
      generic("sum", "t", "%x", 'r', "si",
              "      %r = arith.addf %acc, %v0 : f32\n");
      generic("sq", "tr", "%x, %sum", 'r', "si",
              "      %mean = arith.divf %v1, %nf : f32\n"
              "      %d = arith.subf %v0, %mean : f32\n"
              "      %p = arith.mulf %d, %d : f32\n"
              "      %r = arith.addf %acc, %p : f32\n");
      generic("y", "trrc", "%x, %sum, %sq, %w", 't', "o",
              "      %mean = arith.divf %v1, %nf : f32\n"
              "      %d = arith.subf %v0, %mean : f32\n"
              "      %var = arith.divf %v2, %nf : f32\n"
              "      %b = arith.addf %var, %eps : f32\n"
              "      %s = math.rsqrt %b : f32\n"
              "      %u = arith.mulf %d, %s : f32\n"
              "      %r = arith.mulf %u, %v3 : f32\n");
    } else {
      generic("sq", "t", "%x", 'r', "si",
              "      %p = arith.mulf %v0, %v0 : f32\n"
              "      %r = arith.addf %acc, %p : f32\n");
      generic("y", "trc", "%x, %sq, %w", 't', "o",
              "      %mean = arith.divf %v1, %nf : f32\n"
              "      %b = arith.addf %mean, %eps : f32\n"
              "      %s = math.rsqrt %b : f32\n"
              "      %u = arith.mulf %v0, %s : f32\n"
              "      %r = arith.mulf %u, %v2 : f32\n");
    }
  }
  return source + "  pgkp.return %y : " + t + "\n}";
}

void benchRow(const std::string &kind, int64_t m, int64_t n,
              const std::vector<Variant> &extra) {
  Buffer x(m * n), w(n), out(m * n);
  // Row length dynamic, known to the kernel (as weights tell), known and odd
  // widths tried.
  std::vector<LoadedKernel> kernels;
  std::vector<std::vector<int64_t>> extents;
  auto add = [&](int64_t known, const Variant &variant) {
    kernels.push_back(compileOrDie(rowSource(kind, known), variant));
    extents.push_back(known < 0 ? std::vector<int64_t>{m, n}
                                : std::vector<int64_t>{m});
  };
  Variant full;
  full.pipeline = Pipeline::full;
  add(-1, full);
  add(n, full);
  add(n, {});
  for (const Variant &variant : extra)
    add(n, variant);
  std::vector<std::function<void()>> ours;
  for (size_t i = 0; i < kernels.size(); ++i) {
    auto call = std::make_shared<Call>(
        kernels[i], extents[i],
        std::vector<std::pair<float *, std::vector<int64_t>>>{
            {x.memory, {m, n}}, {w.memory, {n}}, {out.memory, {m, n}}});
    ours.push_back([call] { (*call)(); });
  }
  auto reference = [&] {
    if (kind == "softmax")
      referenceSoftmax(x.memory, out.memory, m, n);
    else if (kind == "layer norm")
      referenceLayerNorm(x.memory, w.memory, out.memory, m, n);
    else
      referenceRMSNorm(x.memory, w.memory, out.memory, m, n);
  };
  std::vector<Ratio> ratios = compare(reference, ours);
  std::printf("%-11s %5ld x%5ld", kind.c_str(), m, n);
  for (const Ratio &ratio : ratios)
    std::printf("  %5.2f (%7.2f us)", ratio.ratio, ratio.ours * 1e6);
  std::printf("\n");
  std::fflush(stdout);
}

void benchRows(const std::vector<Variant> &extra) {
  std::printf("\nrows x length: time of -O3 -ffast-math / ours\n"
              "%25s  %-18s%-18s%-18s",
              "", "length dynamic", "length known", "known, lean");
  for (const Variant &variant : extra)
    std::printf("%s  ", describe(variant).c_str());
  std::printf("\n");
  for (const char *kind : {"softmax", "rms norm", "layer norm"})
    for (auto [m, n] : std::vector<std::pair<int64_t, int64_t>>{{512, 768},
                                                                {64, 1000},
                                                                {8, 4096},
                                                                {512, 64},
                                                                {512, 50},
                                                                {256, 100}})
      benchRow(kind, m, n, extra);
}

/// "script=packed,mr=6" as a variant.
Variant parseVariant(const char *text) {
  Variant variant;
  std::string rest = text;
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    std::string item = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    size_t equals = item.find('=');
    if (item == "full")
      variant.pipeline = Pipeline::full;
    else if (equals != std::string::npos)
      variant.config.emplace_back(item.substr(0, equals),
                                  item.substr(equals + 1));
  }
  return variant;
}

} // namespace

int main(int argc, char **argv) {
  std::string what, only;
  std::vector<Variant> extra;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "matmul" || argument == "rows")
      what = argument;
    else if (argument.rfind("--config=", 0) == 0)
      extra.push_back(parseVariant(argv[i] + 9));
    else if (argument.rfind("--only=", 0) == 0)
      only = argument.substr(7);
    else {
      std::printf("usage: pgkp_kernel_bench [matmul|rows] [--only=MxKxN] "
                  "[--config=script=packed,mr=6,nr=16[,full]]...\n");
      return argument == "--help" ? 0 : 2;
    }
  }
  if (what != "rows")
    benchMatmuls(extra, only);
  if (what != "matmul")
    benchRows(extra);
  return 0;
}
