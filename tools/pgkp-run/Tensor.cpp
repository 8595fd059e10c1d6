// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tensor.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace pgkp::rt {

using schema::ElementType;

void Tensor::Free::operator()(uint8_t *p) const { std::free(p); }

Expected<Tensor> Tensor::create(ElementType element,
                                std::vector<int64_t> shape) {
  Tensor tensor;
  tensor.type = element;
  int64_t total = static_cast<int64_t>(elementBytes(element));
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(total, extent, &total) ||
        total > (int64_t{1} << 46))
      return makeError(Code::exhausted,
                       "a tensor of shape [{}] does not fit into memory",
                       fmt::join(shape, ", "));
  tensor.extents = std::move(shape);
  tensor.size = static_cast<size_t>(total);
  const size_t rounded = (tensor.size + 63) / 64 * 64 + 64;
  auto *memory = static_cast<uint8_t *>(std::aligned_alloc(64, rounded));
  if (!memory)
    return makeError(Code::exhausted, "out of memory for a tensor of {} bytes",
                     tensor.size);
  std::memset(memory, 0, rounded);
  tensor.storage.reset(memory);
  return tensor;
}

void *Tensor::descriptor() {
  const size_t rank = extents.size();
  header.assign(3 + 2 * rank, 0);
  header[0] = header[1] = std::bit_cast<int64_t>(storage.get());
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    header[3 + i] = extents[i];
    header[3 + rank + i] = stride;
    stride *= extents[i];
  }
  return header.data();
}

Expected<Tensor> Tensor::clone() const {
  PGKP_ASSIGN(Tensor copy, create(type, extents));
  std::memcpy(copy.data(), data(), size);
  return copy;
}

namespace {

float halfToFloat(uint16_t h) {
  const uint32_t sign = uint32_t{h & 0x8000u} << 16, exponent = (h >> 10) & 31,
                 mantissa = h & 0x3ff;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0)
    return std::copysign(std::ldexp(static_cast<float>(mantissa), -24),
                         std::bit_cast<float>(sign));
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t floatToHalf(float f) {
  _Float16 h = static_cast<_Float16>(f);
  return std::bit_cast<uint16_t>(h);
}

float bf16ToFloat(uint16_t b) {
  return std::bit_cast<float>(uint32_t{b} << 16);
}

uint16_t floatToBf16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename T> T load(const uint8_t *data, size_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}
template <typename T> void put(uint8_t *data, size_t i, T value) {
  std::memcpy(data + i * sizeof(T), &value, sizeof(T));
}

double loadElement(const Tensor &t, size_t i) {
  const uint8_t *d = t.data();
  switch (t.element()) {
  case ElementType::f64:
    return load<double>(d, i);
  case ElementType::f32:
    return load<float>(d, i);
  case ElementType::f16:
    return halfToFloat(load<uint16_t>(d, i));
  case ElementType::bf16:
    return bf16ToFloat(load<uint16_t>(d, i));
  case ElementType::i64:
  case ElementType::index:
    return static_cast<double>(load<int64_t>(d, i));
  case ElementType::i32:
    return load<int32_t>(d, i);
  case ElementType::i16:
    return load<int16_t>(d, i);
  case ElementType::i1:
  case ElementType::i8:
    return load<int8_t>(d, i);
  }
  return 0;
}

void storeElement(Tensor &t, size_t i, double x) {
  uint8_t *d = t.data();
  switch (t.element()) {
  case ElementType::f64:
    return put(d, i, x);
  case ElementType::f32:
    return put(d, i, static_cast<float>(x));
  case ElementType::f16:
    return put(d, i, floatToHalf(static_cast<float>(x)));
  case ElementType::bf16:
    return put(d, i, floatToBf16(static_cast<float>(x)));
  case ElementType::i64:
  case ElementType::index:
    return put(d, i, static_cast<int64_t>(x));
  case ElementType::i32:
    return put(d, i, static_cast<int32_t>(x));
  case ElementType::i16:
    return put(d, i, static_cast<int16_t>(x));
  case ElementType::i1:
  case ElementType::i8:
    return put(d, i, static_cast<int8_t>(x));
  }
}

bool isFloat(ElementType element) {
  return element == ElementType::f64 || element == ElementType::f32 ||
         element == ElementType::f16 || element == ElementType::bf16;
}

} // namespace

void fillSeeded(Tensor &tensor,
                std::optional<std::pair<int64_t, int64_t>> range,
                Random &random) {
  const size_t count = tensor.bytes() / elementBytes(tensor.element());
  if (isFloat(tensor.element())) {
    const double scale =
        tensor.shape().size() >= 2 && tensor.shape().back() > 0
            ? 1 / std::sqrt(static_cast<double>(tensor.shape().back()))
            : 1;
    for (size_t i = 0; i < count; ++i)
      storeElement(tensor, i, (2 * random.uniform() - 1) * scale);
  } else if (range) {
    const uint64_t span =
        static_cast<uint64_t>(range->second - range->first) + 1;
    for (size_t i = 0; i < count; ++i)
      storeElement(
          tensor, i,
          static_cast<double>(
              range->first +
              static_cast<int64_t>(span ? random.below(span) : random.next())));
  }
}

void copyOverlap(const Tensor &from, Tensor &to) {
  const size_t rank = from.shape().size(), width = elementBytes(from.element());
  if (rank == 0) {
    std::memcpy(to.data(), from.data(), width);
    return;
  }
  std::vector<int64_t> box(rank), index(rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    box[i] = std::min(from.shape()[i], to.shape()[i]);
    if (box[i] == 0)
      return;
  }
  // Copies rows of the innermost dimension; the index runs over the outer ones.
  while (true) {
    int64_t source = 0, target = 0;
    for (size_t i = 0; i < rank; ++i) {
      source = source * from.shape()[i] + index[i];
      target = target * to.shape()[i] + index[i];
    }
    std::memcpy(to.data() + target * width, from.data() + source * width,
                box[rank - 1] * width);
    size_t d = rank - 1;
    while (d-- > 0) {
      if (++index[d] < box[d])
        break;
      index[d] = 0;
    }
    if (d == static_cast<size_t>(-1))
      return;
  }
}

double tolerance(ElementType element) {
  switch (element) {
  case ElementType::f64:
    return 1e-12;
  case ElementType::f32:
    return 2e-5;
  case ElementType::f16:
    return 4e-3;
  case ElementType::bf16:
    return 3e-2;
  default:
    return 0;
  }
}

std::optional<Mismatch> compare(const Tensor &got, const Tensor &want) {
  const double limit = tolerance(want.element());
  const size_t count = want.bytes() / elementBytes(want.element());
  std::optional<Mismatch> worst;
  for (size_t i = 0; i < count; ++i) {
    const double a = loadElement(got, i), b = loadElement(want, i);
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    double error = std::abs(a - b) / (1 + std::abs(b));
    if (!std::isfinite(error))
      error = HUGE_VAL;
    if (error > limit && (!worst || error > worst->error))
      worst = Mismatch{i, a, b, error};
  }
  return worst;
}

} // namespace pgkp::rt
