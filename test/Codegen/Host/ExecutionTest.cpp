// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// Compiles kernels through the driver, loads them as the runtime does, and
/// compares them with naive C++ over many extents, classes and configurations.
#include "LoadedKernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <random>

using namespace pgkp::schema;
using mlir::pgkp::HostCompiler;
using mlir::pgkp::VariantRequest;
using pgkp::test::describe;
using pgkp::test::Variant;

namespace {

HostCompiler &compiler() {
  static HostCompiler instance;
  return instance;
}

/// A tensor between canaries, so that a write outside is seen.
struct Tensor {
  static constexpr size_t kGuard = 64;
  static constexpr float kCanary = -12345.0f;

  explicit Tensor(std::vector<int64_t> shape) : shape(std::move(shape)) {
    storage.assign(static_cast<size_t>(size()) + 2 * kGuard, kCanary);
  }
  int64_t size() const {
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    return count;
  }
  float *data() { return storage.data() + kGuard; }
  float &operator[](int64_t i) { return data()[i]; }
  bool guardsHold() const {
    for (size_t i = 0; i < kGuard; ++i)
      if (storage[i] != kCanary || storage[storage.size() - 1 - i] != kCanary)
        return false;
    return true;
  }
  void fill(std::mt19937 &random, float low = -1, float high = 1) {
    std::uniform_real_distribution<float> draw(low, high);
    for (int64_t i = 0; i < size(); ++i)
      data()[i] = draw(random);
  }
  std::vector<int64_t> header() {
    return pgkp::test::makeHeader(data(), shape);
  }

  std::vector<int64_t> shape;
  std::vector<float> storage;
};

/// A compiled and loaded kernel.
class Kernel {
public:
  Kernel(const std::string &source, const Variant &variant) {
    auto loaded = pgkp::test::LoadedKernel::create(compiler(), source, variant);
    if (!loaded) {
      ADD_FAILURE() << loaded.error().message << " (" << describe(variant)
                    << ")";
      return;
    }
    kernel.emplace(std::move(*loaded));
  }
  bool ok() const { return kernel.has_value(); }
  int64_t workspaceBytes(const std::vector<int64_t> &extents) const {
    return kernel->workspaceBytes(extents);
  }

  void run(const std::vector<int64_t> &extents,
           const std::vector<Tensor *> &tensors) {
    std::vector<std::vector<int64_t>> headers;
    for (Tensor *tensor : tensors)
      headers.push_back(tensor->header());
    std::vector<void *> arguments;
    for (auto &header : headers)
      arguments.push_back(header.data());
    int64_t bytes = kernel->workspaceBytes(extents);
    EXPECT_GE(bytes, 0);
    std::vector<uint8_t> scratch(static_cast<size_t>(bytes) + 128, 0xcd);
    auto base = (reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64;
    arguments.push_back(bytes ? reinterpret_cast<void *>(base) : nullptr);
    kernel->function(arguments.data());
    for (size_t i = base - reinterpret_cast<uintptr_t>(scratch.data()) +
                    static_cast<size_t>(bytes);
         i < scratch.size(); ++i)
      ASSERT_EQ(scratch[i], 0xcd) << "workspace of " << bytes << " overrun";
    for (Tensor *tensor : tensors)
      ASSERT_TRUE(tensor->guardsHold()) << "write outside a tensor";
  }

private:
  std::optional<pgkp::test::LoadedKernel> kernel;
};

void expectNear(Tensor &got, const std::vector<double> &want, double tolerance,
                const std::string &what) {
  ASSERT_EQ(got.size(), static_cast<int64_t>(want.size()));
  for (int64_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::abs(got[i] - want[i]),
              tolerance * std::max(1.0, std::abs(want[i])))
        << what << ", element " << i << ": " << got[i] << " for " << want[i];
}

std::string shapeText(const std::vector<int64_t> &extents) {
  std::string text = "extents";
  for (int64_t extent : extents)
    text.append(1, ' ').append(std::to_string(extent));
  return text;
}

bool fits(const Variant &variant, const std::vector<int64_t> &extents) {
  for (const Fact &fact : variant.facts) {
    int64_t extent = extents[fact.dim()];
    bool holds = fact.kind() == FactKind::eq ? extent == fact.a()
                 : fact.kind() == FactKind::divisible
                     ? extent % fact.a() == 0
                     : extent >= fact.a() && extent <= fact.b();
    if (!holds)
      return false;
  }
  return true;
}

/// Runs every variant over every extents vector that its facts allow.
void check(const std::string &source, const std::vector<Variant> &variants,
           const std::vector<std::vector<int64_t>> &extents,
           const std::function<void(Kernel &, const std::vector<int64_t> &,
                                    const std::string &)> &once) {
  for (const Variant &variant : variants) {
    SCOPED_TRACE(describe(variant));
    Kernel kernel(source, variant);
    if (!kernel.ok())
      continue;
    int runs = 0;
    for (const auto &vector : extents)
      if (fits(variant, vector)) {
        once(kernel, vector, describe(variant) + ", " + shapeText(vector));
        ++runs;
        if (testing::Test::HasFatalFailure())
          return;
      }
    EXPECT_GT(runs, 0) << "no extents fit";
  }
}

Fact eq(uint16_t dim, int64_t v) { return Fact(FactKind::eq, dim, v, 0); }
Fact divisible(uint16_t dim, int64_t k) {
  return Fact(FactKind::divisible, dim, k, 0);
}
Fact range(uint16_t dim, int64_t low, int64_t high) {
  return Fact(FactKind::range, dim, low, high);
}

std::vector<std::vector<int64_t>>
product(const std::vector<std::vector<int64_t>> &sets) {
  std::vector<std::vector<int64_t>> result{{}};
  for (const auto &set : sets) {
    std::vector<std::vector<int64_t>> next;
    for (const auto &prefix : result)
      for (int64_t value : set) {
        next.push_back(prefix);
        next.back().push_back(value);
      }
    result = std::move(next);
  }
  return result;
}

const std::vector<Variant> kMatmulVariants = {
    {{}, {}},
    {{}, {}, Pipeline::full},
    {{}, {{"script", "auto"}}},
    {{}, {{"script", "scalar"}}},
    {{}, {{"script", "direct"}, {"mr", "6"}, {"nr", "16"}}},
    {{}, {{"script", "direct"}, {"mr", "4"}, {"nr", "8"}, {"unroll", "4"}}},
    {{}, {{"script", "packed"}, {"mr", "6"}, {"nr", "16"}}},
    {{}, {{"script", "packed"}, {"mr", "4"}, {"nr", "32"}}},
    {{}, {{"script", "skinny"}, {"mr", "4"}, {"nr", "16"}, {"kc", "8"}}},
    {{}, {{"script", "gemv"}, {"mr", "1"}, {"nr", "64"}}},
    {{}, {{"script", "dot"}, {"mr", "2"}, {"nc", "4"}}},
    {{eq(0, 1)}, {}},
    {{eq(0, 5)}, {}},
    {{range(0, 2, 7)}, {}},
    {{divisible(0, 16)}, {}},
    {{divisible(1, 16)}, {{"script", "direct"}}},
    {{eq(0, 33), eq(1, 17), eq(2, 16)}, {}},
    {{eq(0, 0)}, {}},
};

const char *kMatmul = R"(
pgkp.kernel private @k(%a: tensor<?x?xf32>, %w: tensor<?x?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32>
    dims(m, n, k) args([m, k], [k, n], [m, n]) {
  %z = arith.constant 0.0 : f32
  %i = linalg.fill ins(%z : f32) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%a, %w : tensor<?x?xf32>, tensor<?x?xf32>) outs(%i : tensor<?x?xf32>) -> tensor<?x?xf32>
  pgkp.return %r : tensor<?x?xf32>
})";

TEST(HostExecution, Matmul) {
  std::mt19937 random(1);
  auto extents = product({{0, 1, 2, 5, 6, 7, 16, 33},
                          {0, 1, 7, 16, 17, 64, 75},
                          {0, 1, 8, 16, 21}});
  check(kMatmul, kMatmulVariants, extents,
        [&](Kernel &kernel, const std::vector<int64_t> &e,
            const std::string &what) {
          int64_t m = e[0], n = e[1], k = e[2];
          Tensor a({m, k}), w({k, n}), out({m, n});
          a.fill(random), w.fill(random), out.fill(random);
          std::vector<double> want(m * n, 0);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j)
              for (int64_t l = 0; l < k; ++l)
                want[i * n + j] += double(a[i * k + l]) * w[l * n + j];
          kernel.run(e, {&a, &w, &out});
          expectNear(out, want, 1e-5, what);
        });
}

TEST(HostExecution, MatmulAccumulatesIntoItsDestination) {
  const char *source = R"(
pgkp.kernel private @k(%a: tensor<?x40xf32>, %w: tensor<40x24xf32>, %i: tensor<?x24xf32>, %o: tensor<?x24xf32>) -> tensor<?x24xf32>
    dims(m) args([m, 40], [40, 24], [m, 24], [m, 24]) {
  %r = linalg.matmul ins(%a, %w : tensor<?x40xf32>, tensor<40x24xf32>) outs(%i : tensor<?x24xf32>) -> tensor<?x24xf32>
  pgkp.return %r : tensor<?x24xf32>
})";
  std::mt19937 random(2);
  check(source, {{}, {{eq(0, 3)}, {}}, {{}, {{"script", "skinny"}}}},
        product({{0, 1, 3, 13}}),
        [&](Kernel &kernel, const std::vector<int64_t> &e,
            const std::string &what) {
          int64_t m = e[0];
          Tensor a({m, 40}), w({40, 24}), init({m, 24}), out({m, 24});
          a.fill(random), w.fill(random), init.fill(random);
          std::vector<double> want(m * 24);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < 24; ++j) {
              want[i * 24 + j] = init[i * 24 + j];
              for (int64_t l = 0; l < 40; ++l)
                want[i * 24 + j] += double(a[i * 40 + l]) * w[l * 24 + j];
            }
          std::vector<float> before = init.storage;
          kernel.run(e, {&a, &w, &init, &out});
          EXPECT_EQ(before, init.storage) << "an input was written";
          expectNear(out, want, 1e-5, what);
        });
}

TEST(HostExecution, MatmulWithEpilogue) {
  const char *source = R"(
#id = affine_map<(i, j) -> (i, j)>
pgkp.kernel private @k(%a: tensor<?x64xf32>, %w: tensor<64x176xf32>, %x: tensor<?x176xf32>, %o: tensor<?x176xf32>) -> tensor<?x176xf32>
    dims(m) args([m, 64], [64, 176], [m, 176], [m, 176]) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?x176xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x176xf32>) -> tensor<?x176xf32>
  %p = linalg.matmul ins(%a, %w : tensor<?x64xf32>, tensor<64x176xf32>) outs(%i : tensor<?x176xf32>) -> tensor<?x176xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %x : tensor<?x176xf32>, tensor<?x176xf32>) outs(%o : tensor<?x176xf32>) {
    ^bb0(%g: f32, %u: f32, %_: f32):
      %n = arith.negf %g : f32
      %ex = math.exp %n : f32
      %d = arith.addf %ex, %one : f32
      %s = arith.divf %g, %d : f32
      %y = arith.mulf %s, %u : f32
      linalg.yield %y : f32
  } -> tensor<?x176xf32>
  pgkp.return %r : tensor<?x176xf32>
})";
  std::mt19937 random(3);
  std::vector<Variant> variants = {{},
                                   {{}, {{"script", "scalar"}}},
                                   {{}, {{"script", "packed"}}},
                                   {{eq(0, 1)}, {}},
                                   {{divisible(0, 16)}, {}},
                                   {{range(0, 2, 20)}, {}, Pipeline::full}};
  check(source, variants, product({{0, 1, 2, 7, 16, 19}}),
        [&](Kernel &kernel, const std::vector<int64_t> &e,
            const std::string &what) {
          int64_t m = e[0];
          Tensor a({m, 64}), w({64, 176}), x({m, 176}), out({m, 176});
          a.fill(random), w.fill(random), x.fill(random);
          std::vector<double> want(m * 176);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < 176; ++j) {
              double sum = 0;
              for (int64_t l = 0; l < 64; ++l)
                sum += double(a[i * 64 + l]) * w[l * 176 + j];
              want[i * 176 + j] = sum / (1 + std::exp(-sum)) * x[i * 176 + j];
            }
          kernel.run(e, {&a, &w, &x, &out});
          expectNear(out, want, 2e-5, what);
        });
}

std::string batchMatmul(bool transposed) {
  std::string b = transposed ? "(b, n, k)" : "(b, k, n)";
  std::string dims = transposed ? "[b, n, k]" : "[b, k, n]";
  return R"(
pgkp.kernel private @k(%a: tensor<?x?x?xf32>, %w: tensor<?x?x?xf32>, %o: tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    dims(b, m, n, k) args([b, m, k], )" +
         dims + R"(, [b, m, n]) {
  %z = arith.constant 0.0 : f32
  %i = linalg.fill ins(%z : f32) outs(%o : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> )" +
         b + R"(>, affine_map<(b, m, n, k) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %w : tensor<?x?x?xf32>, tensor<?x?x?xf32>) outs(%i : tensor<?x?x?xf32>) {
    ^bb0(%x: f32, %y: f32, %acc: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
  } -> tensor<?x?x?xf32>
  pgkp.return %r : tensor<?x?x?xf32>
})";
}

TEST(HostExecution, BatchMatmul) {
  std::mt19937 random(4);
  std::vector<Variant> variants = {
      {},
      {{}, {}, Pipeline::full},
      {{}, {{"script", "scalar"}}},
      {{}, {{"script", "dot"}, {"mr", "2"}, {"nc", "4"}}},
      {{}, {{"script", "packed"}}},
      {{}, {{"script", "direct"}}},
      {{eq(0, 1), eq(1, 4)}, {}},
      {{eq(3, 16)}, {{"script", "dot"}}},
      {{divisible(2, 16)}, {{"script", "packed"}}},
      {{range(1, 1, 7)}, {}}};
  for (bool transposed : {false, true})
    check(
        batchMatmul(transposed), variants,
        product({{0, 1, 3}, {0, 1, 4, 9}, {0, 1, 16, 37}, {0, 1, 16, 19}}),
        [&](Kernel &kernel, const std::vector<int64_t> &e,
            const std::string &what) {
          int64_t b = e[0], m = e[1], n = e[2], k = e[3];
          Tensor a({b, m, k}),
              w(transposed ? std::vector<int64_t>{b, n, k}
                           : std::vector<int64_t>{b, k, n}),
              out({b, m, n});
          a.fill(random), w.fill(random), out.fill(random);
          std::vector<double> want(b * m * n, 0);
          for (int64_t h = 0; h < b; ++h)
            for (int64_t i = 0; i < m; ++i)
              for (int64_t j = 0; j < n; ++j)
                for (int64_t l = 0; l < k; ++l)
                  want[(h * m + i) * n + j] +=
                      double(a[(h * m + i) * k + l]) *
                      w[transposed ? (h * n + j) * k + l : (h * k + l) * n + j];
          kernel.run(e, {&a, &w, &out});
          expectNear(out, want, 1e-5, what);
        });
}

TEST(HostExecution, MaskedSoftmax) {
  const char *source = R"(
#row = affine_map<(b, i, j) -> (b, i, j)>
#red = affine_map<(b, i, j) -> (b, i)>
pgkp.kernel private @k(%x: tensor<?x?x?xf32>, %o: tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    dims(b, s, n) args([b, s, n], [b, s, n]) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %masked_out = arith.constant -1.0e+30 : f32
  %b = tensor.dim %x, %c0 : tensor<?x?x?xf32>
  %s = tensor.dim %x, %c1 : tensor<?x?x?xf32>
  %n = tensor.dim %x, %c2 : tensor<?x?x?xf32>
  %past = arith.subi %n, %s : index
  %me = tensor.empty(%b, %s, %n) : tensor<?x?x?xf32>
  %masked = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<?x?x?xf32>) outs(%me : tensor<?x?x?xf32>) {
    ^bb0(%a: f32, %_: f32):
      %i = linalg.index 1 : index
      %j = linalg.index 2 : index
      %p = arith.addi %past, %i : index
      %seen = arith.cmpi sle, %j, %p : index
      %r = arith.select %seen, %a, %masked_out : f32
      linalg.yield %r : f32
  } -> tensor<?x?x?xf32>
  %re = tensor.empty(%b, %s) : tensor<?x?xf32>
  %mi = linalg.fill ins(%low : f32) outs(%re : tensor<?x?xf32>) -> tensor<?x?xf32>
  %max = linalg.generic {indexing_maps = [#row, #red], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%masked : tensor<?x?x?xf32>) outs(%mi : tensor<?x?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %r = arith.maxnumf %acc, %a : f32
      linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %exp = linalg.generic {indexing_maps = [#row, #red, #row], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%masked, %max : tensor<?x?x?xf32>, tensor<?x?xf32>) outs(%me : tensor<?x?x?xf32>) {
    ^bb0(%a: f32, %m: f32, %_: f32):
      %d = arith.subf %a, %m : f32
      %r = math.exp %d : f32
      linalg.yield %r : f32
  } -> tensor<?x?x?xf32>
  %si = linalg.fill ins(%z : f32) outs(%re : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.generic {indexing_maps = [#row, #red], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%exp : tensor<?x?x?xf32>) outs(%si : tensor<?x?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %r = arith.addf %acc, %a : f32
      linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %probs = linalg.generic {indexing_maps = [#row, #red, #row], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<?x?x?xf32>, tensor<?x?xf32>) outs(%o : tensor<?x?x?xf32>) {
    ^bb0(%a: f32, %t: f32, %_: f32):
      %r = arith.divf %a, %t : f32
      linalg.yield %r : f32
  } -> tensor<?x?x?xf32>
  pgkp.return %probs : tensor<?x?x?xf32>
})";
  std::mt19937 random(5);
  std::vector<Variant> variants = {{},
                                   {{}, {}, Pipeline::full},
                                   {{}, {{"script", "scalar"}}},
                                   {{}, {{"v", "8"}}},
                                   {{}, {{"v", "64"}}},
                                   {{eq(2, 100)}, {}},
                                   {{divisible(2, 16)}, {}},
                                   {{eq(1, 1)}, {}},
                                   {{eq(0, 2), eq(1, 1), eq(2, 64)}, {}}};
  check(source, variants,
        product({{0, 1, 2}, {0, 1, 5}, {0, 1, 7, 16, 64, 100, 130}}),
        [&](Kernel &kernel, const std::vector<int64_t> &e,
            const std::string &what) {
          int64_t b = e[0], s = e[1], n = e[2];
          if (n > 0 && n < s)
            return; // rows that see nothing
          Tensor x({b, s, n}), out({b, s, n});
          x.fill(random, -5, 5);
          std::vector<double> want(b * s * n, 0);
          for (int64_t r = 0; r < b * s; ++r) {
            int64_t seen = std::min(n, n - s + r % s + 1);
            double max = -INFINITY, sum = 0;
            for (int64_t j = 0; j < seen; ++j)
              max = std::max<double>(max, x[r * n + j]);
            for (int64_t j = 0; j < seen; ++j)
              sum += want[r * n + j] = std::exp(x[r * n + j] - max);
            for (int64_t j = 0; j < seen; ++j)
              want[r * n + j] /= sum;
          }
          kernel.run(e, {&x, &out});
          expectNear(out, want, 1e-6, what);
        });
}

TEST(HostExecution, SoftmaxOperation) {
  const char *source = R"(
pgkp.kernel private @k(%x: tensor<?x?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32>
    dims(m, n) args([m, n], [m, n]) {
  %r = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>
  pgkp.return %r : tensor<?x?xf32>
})";
  std::mt19937 random(6);
  check(source, {{}, {{divisible(1, 16)}, {}}},
        product({{0, 1, 3}, {1, 16, 45}}),
        [&](Kernel &kernel, const std::vector<int64_t> &e,
            const std::string &what) {
          int64_t m = e[0], n = e[1];
          Tensor x({m, n}), out({m, n});
          x.fill(random, -5, 5);
          std::vector<double> want(m * n);
          for (int64_t r = 0; r < m; ++r) {
            double sum = 0;
            for (int64_t j = 0; j < n; ++j)
              sum += want[r * n + j] = std::exp(double(x[r * n + j]));
            for (int64_t j = 0; j < n; ++j)
              want[r * n + j] /= sum;
          }
          kernel.run(e, {&x, &out});
          expectNear(out, want, 1e-6, what);
        });
}

TEST(HostExecution, RMSNorm) {
  const char *source = R"(
pgkp.kernel private @k(%x: tensor<?x?x?xf32>, %w: tensor<?xf32>, %o: tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    dims(b, s, n) args([b, s, n], [n], [b, s, n]) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 0.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %b = tensor.dim %x, %c0 : tensor<?x?x?xf32>
  %s = tensor.dim %x, %c1 : tensor<?x?x?xf32>
  %n = tensor.dim %x, %c2 : tensor<?x?x?xf32>
  %ni = arith.index_cast %n : index to i64
  %nf = arith.sitofp %ni : i64 to f32
  %re = tensor.empty(%b, %s) : tensor<?x?xf32>
  %si = linalg.fill ins(%z : f32) outs(%re : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sq = linalg.generic {indexing_maps = [affine_map<(b, s, c) -> (b, s, c)>, affine_map<(b, s, c) -> (b, s)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<?x?x?xf32>) outs(%si : tensor<?x?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %p = arith.mulf %a, %a : f32
      %r = arith.addf %acc, %p : f32
      linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, s, c) -> (b, s, c)>, affine_map<(b, s, c) -> (b, s)>, affine_map<(b, s, c) -> (c)>, affine_map<(b, s, c) -> (b, s, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %sq, %w : tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?xf32>) outs(%o : tensor<?x?x?xf32>) {
    ^bb0(%a: f32, %q: f32, %g: f32, %_: f32):
      %mean = arith.divf %q, %nf : f32
      %biased = arith.addf %mean, %eps : f32
      %scale = math.rsqrt %biased : f32
      %y = arith.mulf %a, %scale : f32
      %v = arith.mulf %y, %g : f32
      linalg.yield %v : f32
  } -> tensor<?x?x?xf32>
  pgkp.return %r : tensor<?x?x?xf32>
})";
  std::mt19937 random(7);
  std::vector<Variant> variants = {{},
                                   {{}, {}, Pipeline::full},
                                   {{}, {{"script", "scalar"}}},
                                   {{eq(2, 64)}, {}},
                                   {{divisible(2, 16)}, {{"v", "16"}}},
                                   {{eq(0, 1), eq(1, 1)}, {}}};
  check(source, variants, product({{0, 1, 2}, {0, 1, 5}, {0, 1, 50, 64, 100}}),
        [&](Kernel &kernel, const std::vector<int64_t> &e,
            const std::string &what) {
          int64_t rows = e[0] * e[1], n = e[2];
          Tensor x({e[0], e[1], n}), w({n}), out({e[0], e[1], n});
          x.fill(random), w.fill(random);
          std::vector<double> want(rows * n);
          for (int64_t r = 0; r < rows; ++r) {
            double sum = 0;
            for (int64_t j = 0; j < n; ++j)
              sum += double(x[r * n + j]) * x[r * n + j];
            for (int64_t j = 0; j < n; ++j)
              want[r * n + j] = x[r * n + j] / std::sqrt(sum / n + 1e-5) * w[j];
          }
          kernel.run(e, {&x, &w, &out});
          expectNear(out, want, 1e-5, what);
        });
}

TEST(HostExecution, Concat) {
  const char *source = R"(
pgkp.kernel private @k(%a: tensor<?x2x?x16xf32>, %b: tensor<?x2x?x16xf32>, %o: tensor<?x2x?x16xf32>) -> tensor<?x2x?x16xf32>
    dims(n, s, t, l) args([n, 2, s, 16], [n, 2, t, 16], [n, 2, l, 16]) {
  %r = tensor.concat dim(2) %a, %b : (tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>) -> tensor<?x2x?x16xf32>
  pgkp.return %r : tensor<?x2x?x16xf32>
})";
  std::mt19937 random(8);
  check(source,
        {{}, {{eq(2, 1)}, {}}, {{eq(0, 1), eq(1, 4), eq(2, 1), eq(3, 5)}, {}}},
        {{0, 0, 0, 0}, {1, 0, 1, 1}, {2, 3, 0, 3}, {2, 3, 4, 7}, {1, 4, 1, 5}},
        [&](Kernel &kernel, const std::vector<int64_t> &e,
            const std::string &what) {
          int64_t n = e[0], s = e[1], t = e[2];
          Tensor a({n, 2, s, 16}), b({n, 2, t, 16}), out({n, 2, s + t, 16});
          a.fill(random), b.fill(random);
          std::vector<double> want;
          for (int64_t h = 0; h < n * 2; ++h) {
            for (int64_t i = 0; i < s * 16; ++i)
              want.push_back(a[h * s * 16 + i]);
            for (int64_t i = 0; i < t * 16; ++i)
              want.push_back(b[h * t * 16 + i]);
          }
          kernel.run(e, {&a, &b, &out});
          expectNear(out, want, 0, what);
          EXPECT_EQ(kernel.workspaceBytes(e), 0) << "a copy through scratch";
        });
}

TEST(HostExecution, Rotary) {
  // Halves of the head as slices, the tables from a position on, a transpose in
  // the maps.
  const char *source = R"(
pgkp.kernel private @k(%x: tensor<?x?x4x2x8xf32>, %cos: tensor<?x8xf32>, %sin: tensor<?x8xf32>, %o: tensor<?x4x?x2x8xf32>) -> tensor<?x4x?x2x8xf32>
    dims(b, s) args([b, s, 4, 2, 8], [s, 8], [s, 8], [b, 4, s, 2, 8]) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x4x2x8xf32>
  %s = tensor.dim %x, %c1 : tensor<?x?x4x2x8xf32>
  %lo = tensor.extract_slice %x[0, 0, 0, 0, 0] [%b, %s, 4, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x4x2x8xf32> to tensor<?x?x4x8xf32>
  %hi = tensor.extract_slice %x[0, 0, 0, 1, 0] [%b, %s, 4, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x4x2x8xf32> to tensor<?x?x4x8xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, t, j) -> (b, s, h, t, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (b, h, s, t, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %lo, %hi, %cos, %sin : tensor<?x?x4x2x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
      outs(%o : tensor<?x4x?x2x8xf32>) {
    ^bb0(%a: f32, %l: f32, %h: f32, %c: f32, %d: f32, %_: f32):
      %t = linalg.index 3 : index
      %first = arith.cmpi eq, %t, %c0 : index
      %neg = arith.negf %h : f32
      %other = arith.select %first, %neg, %l : f32
      %ac = arith.mulf %a, %c : f32
      %od = arith.mulf %other, %d : f32
      %y = arith.addf %ac, %od : f32
      linalg.yield %y : f32
  } -> tensor<?x4x?x2x8xf32>
  pgkp.return %r : tensor<?x4x?x2x8xf32>
})";
  std::mt19937 random(9);
  check(source,
        {{}, {{eq(1, 1)}, {}}, {{}, {{"script", "scalar"}}, Pipeline::full}},
        product({{0, 1, 2}, {0, 1, 5}}),
        [&](Kernel &kernel, const std::vector<int64_t> &e,
            const std::string &what) {
          int64_t b = e[0], s = e[1];
          Tensor x({b, s, 4, 2, 8}), cos({s, 8}), sin({s, 8}),
              out({b, 4, s, 2, 8});
          x.fill(random), cos.fill(random), sin.fill(random);
          std::vector<double> want(out.size());
          for (int64_t n = 0; n < b; ++n)
            for (int64_t h = 0; h < 4; ++h)
              for (int64_t i = 0; i < s; ++i)
                for (int64_t j = 0; j < 8; ++j) {
                  int64_t from = ((n * s + i) * 4 + h) * 16 + j;
                  int64_t to = ((n * 4 + h) * s + i) * 16 + j;
                  double c = cos[i * 8 + j], d = sin[i * 8 + j];
                  want[to] = x[from] * c - x[from + 8] * d;
                  want[to + 8] = x[from + 8] * c + x[from] * d;
                }
          kernel.run(e, {&x, &cos, &sin, &out});
          expectNear(out, want, 1e-6, what);
        });
}

TEST(HostExecution, ColumnSumAndTranspose) {
  const char *source = R"(
pgkp.kernel private @k(%x: tensor<?x?xf32>, %s: tensor<?xf32>, %t: tensor<?x?xf32>) -> (tensor<?xf32>, tensor<?x?xf32>)
    dims(m, n) args([m, n], [n], [n, m]) {
  %z = arith.constant 0.0 : f32
  %i = linalg.fill ins(%z : f32) outs(%s : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.reduce ins(%x : tensor<?x?xf32>) outs(%i : tensor<?xf32>) dimensions = [0]
    (%a: f32, %acc: f32) {
      %y = arith.addf %acc, %a : f32
      linalg.yield %y : f32
    }
  %p = linalg.transpose ins(%x : tensor<?x?xf32>) outs(%t : tensor<?x?xf32>) permutation = [1, 0]
  pgkp.return %r, %p : tensor<?xf32>, tensor<?x?xf32>
})";
  std::mt19937 random(10);
  check(source, {{}, {{eq(0, 1)}, {}}}, product({{0, 1, 9}, {0, 1, 16, 21}}),
        [&](Kernel &kernel, const std::vector<int64_t> &e,
            const std::string &what) {
          int64_t m = e[0], n = e[1];
          Tensor x({m, n}), sum({n}), t({n, m});
          x.fill(random);
          std::vector<double> wantSum(n, 0), wantT(n * m);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              wantSum[j] += x[i * n + j];
              wantT[j * m + i] = x[i * n + j];
            }
          kernel.run(e, {&x, &sum, &t});
          expectNear(sum, wantSum, 1e-5, what);
          expectNear(t, wantT, 0, what);
        });
}

TEST(HostExecution, ResultsThatStartFromOneFill) {
  // The largest of each row, and the largest of those smaller than it.
  const char *source = R"(
#row = affine_map<(d0, d1) -> (d0, d1)>
#of = affine_map<(d0, d1) -> (d0)>
pgkp.kernel private @k(%x: tensor<?x?xf32>, %o1: tensor<?xf32>, %o2: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
    dims(m, n) args([m, n], [m], [m]) {
  %low = arith.constant -1.0e+30 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#row, #of], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%i : tensor<?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %y = arith.maxnumf %acc, %a : f32
      linalg.yield %y : f32
  } -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#row, #of, #of], iterator_types = ["parallel", "reduction"]}
      ins(%x, %r : tensor<?x?xf32>, tensor<?xf32>) outs(%i : tensor<?xf32>) {
    ^bb0(%a: f32, %top: f32, %acc: f32):
      %below = arith.cmpf olt, %a, %top : f32
      %v = arith.select %below, %a, %low : f32
      %y = arith.maxnumf %acc, %v : f32
      linalg.yield %y : f32
  } -> tensor<?xf32>
  pgkp.return %r, %s : tensor<?xf32>, tensor<?xf32>
})";
  std::mt19937 random(12);
  check(source, {{}, {{eq(1, 8)}, {}}}, product({{0, 1, 9}, {2, 8, 21}}),
        [&](Kernel &kernel, const std::vector<int64_t> &e,
            const std::string &what) {
          int64_t m = e[0], n = e[1];
          Tensor x({m, n}), first({m}), second({m});
          x.fill(random);
          std::vector<double> top(m, -1e30), next(m, -1e30);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              double v = x[i * n + j];
              if (v > top[i]) {
                next[i] = top[i];
                top[i] = v;
              } else if (v > next[i]) {
                next[i] = v;
              }
            }
          kernel.run(e, {&x, &first, &second});
          expectNear(first, top, 0, what);
          expectNear(second, next, 0, what);
        });
}

TEST(HostExecution, MathFunctions) {
  struct Case {
    const char *op;
    double (*reference)(double);
    float low, high;
    double tolerance;
  };
  const Case cases[] = {
      {"math.exp", [](double x) { return std::exp(x); }, -20, 20, 1e-6},
      {"math.log", [](double x) { return std::log(x); }, 0.01f, 100, 1e-6},
      {"math.tanh", [](double x) { return std::tanh(x); }, -9, 9, 1e-6},
      {"math.erf", [](double x) { return std::erf(x); }, -4, 4, 1e-6},
      {"math.sqrt", [](double x) { return std::sqrt(x); }, 0, 100, 1e-6},
      {"math.rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.01f, 100,
       1e-6},
      {"math.exp2", [](double x) { return std::exp2(x); }, -20, 20, 1e-5},
      {"math.sin", [](double x) { return std::sin(x); }, -10, 10, 1e-5},
      {"math.cos", [](double x) { return std::cos(x); }, -10, 10, 1e-5},
      {"math.absf", [](double x) { return std::abs(x); }, -10, 10, 0},
      {"math.floor", [](double x) { return std::floor(x); }, -10, 10, 0},
  };
  std::mt19937 random(11);
  for (const Case &c : cases) {
    std::string source = R"(
#id = affine_map<(i) -> (i)>
pgkp.kernel private @k(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> dims(n) args([n], [n]) {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) {
    ^bb0(%a: f32, %_: f32):
      %y = )" + std::string(c.op) +
                         R"( %a : f32
      linalg.yield %y : f32
  } -> tensor<?xf32>
  pgkp.return %r : tensor<?xf32>
})";
    check(source, {{}, {{}, {{"script", "scalar"}}}}, {{0}, {1}, {999}},
          [&](Kernel &kernel, const std::vector<int64_t> &e,
              const std::string &what) {
            Tensor x({e[0]}), out({e[0]});
            x.fill(random, c.low, c.high);
            std::vector<double> want;
            for (int64_t i = 0; i < e[0]; ++i)
              want.push_back(c.reference(x[i]));
            kernel.run(e, {&x, &out});
            expectNear(out, want, c.tolerance, std::string(c.op) + " " + what);
          });
  }
}

TEST(HostExecution, FloatingPointSpecials) {
  // A row of -inf and NaN-free extremes through max and exp.
  const char *source = R"(
pgkp.kernel private @k(%x: tensor<?xf32>, %o: tensor<f32>) -> tensor<f32> dims(n) args([n], []) {
  %low = arith.constant 0xFF800000 : f32
  %i = linalg.fill ins(%low : f32) outs(%o : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce ins(%x : tensor<?xf32>) outs(%i : tensor<f32>) dimensions = [0]
    (%a: f32, %acc: f32) {
      %y = arith.maximumf %acc, %a : f32
      linalg.yield %y : f32
    }
  pgkp.return %r : tensor<f32>
})";
  check(source, {{}}, {{0}, {1}, {7}, {100}},
        [&](Kernel &kernel, const std::vector<int64_t> &e,
            const std::string &what) {
          Tensor x({e[0]}), out({});
          for (int64_t i = 0; i < e[0]; ++i)
            x[i] = -INFINITY;
          kernel.run(e, {&x, &out});
          EXPECT_EQ(out[0], -INFINITY) << what;
          if (e[0] > 3) {
            x[e[0] - 1] = NAN;
            kernel.run(e, {&x, &out});
            EXPECT_TRUE(std::isnan(out[0])) << what;
          }
        });
}

TEST(HostCompilerErrors, AreOneLineWithAPlace) {
  auto compile = [](const std::string &text, std::vector<Fact> facts = {}) {
    VariantRequest request;
    request.kernel = "broken.mlir";
    request.module.assign(text.begin(), text.end());
    request.facts = std::move(facts);
    request.target = mlir::pgkp::getHostTarget();
    return compiler().compile(request);
  };
  auto syntax = compile("pgkp.kernel private @k(\n  %x");
  ASSERT_FALSE(syntax);
  EXPECT_EQ(syntax.error().code, pgkp::rt::Code::invalidArgument);
  EXPECT_NE(syntax.error().message.find("broken.mlir:2:"), std::string::npos)
      << syntax.error().message;
  EXPECT_EQ(syntax.error().message.find('\n'), std::string::npos);

  auto none = compile("module {}");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("0 kernels, expected one"),
            std::string::npos)
      << none.error().message;

  auto fact = compile(kMatmul, {eq(7, 1)});
  ASSERT_FALSE(fact);
  EXPECT_NE(fact.error().message.find("extent 7"), std::string::npos)
      << fact.error().message;

  // No approximation for f64: the link names the missing function.
  auto libm = compile(R"(
pgkp.kernel private @k(%x: tensor<?xf64>, %o: tensor<?xf64>) -> tensor<?xf64> dims(n) args([n], [n]) {
  %r = linalg.exp ins(%x : tensor<?xf64>) outs(%o : tensor<?xf64>) -> tensor<?xf64>
  pgkp.return %r : tensor<?xf64>
})");
  ASSERT_FALSE(libm);
  EXPECT_EQ(libm.error().code, pgkp::rt::Code::unsupported)
      << libm.error().message;
  EXPECT_NE(libm.error().message.find("undefined symbol"), std::string::npos)
      << libm.error().message;
}

TEST(HostCompilerErrors, AnUnknownCpuIsNamed) {
  VariantRequest request;
  request.kernel = "k";
  request.module.assign(kMatmul, kMatmul + std::strlen(kMatmul));
  request.target.device = DeviceKind::host;
  request.target.chip = "nonesuch";
  auto result = compiler().compile(request);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("'nonesuch'"), std::string::npos)
      << result.error().message;
}

TEST(HostCompiler, IsDeterministic) {
  auto compile = [] {
    VariantRequest request;
    request.kernel = "k";
    request.module.assign(kMatmul, kMatmul + std::strlen(kMatmul));
    request.facts = {eq(0, 1)};
    request.target = mlir::pgkp::getHostTarget();
    return compiler().compile(request);
  };
  auto first = compile(), second = compile();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->code, second->code);
}

} // namespace
