// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/Tuner.h"

#include "base/Random.h"
#include "devices/device/Memref.h"
#include "schema/Element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>

namespace pgkp::rt {

namespace {

/// Fills with values in [-1, 1), none of them subnormal; integers with 0.
void fill(std::vector<uint8_t> &bytes, schema::ElementType type,
          Random &random) {
  const auto each = [&](auto convert) {
    using Bits = decltype(convert(0.0f));
    for (size_t at = 0; at + sizeof(Bits) <= bytes.size(); at += sizeof(Bits)) {
      // A multiple of 2^-7 in [-1, 1): exact in every type, f16 and bf16 too.
      const float value =
          static_cast<float>(static_cast<int64_t>(random.below(256)) - 128) /
          128;
      const Bits bits = convert(value);
      std::memcpy(&bytes[at], &bits, sizeof bits);
    }
  };
  switch (type) {
  case schema::ElementType::f64:
    return each([](float value) { return static_cast<double>(value); });
  case schema::ElementType::f32:
    return each([](float value) { return value; });
  case schema::ElementType::bf16:
    return each([](float value) {
      return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    });
  case schema::ElementType::f16:
    return each([](float value) {
      const uint32_t bits = std::bit_cast<uint32_t>(value);
      if (value == 0)
        return uint16_t{0};
      const uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
      return static_cast<uint16_t>((bits >> 16 & 0x8000) | exponent << 10 |
                                   (bits >> 13 & 0x3ff));
    });
  default:
    std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  }
}

/// 1 for floating-point types, since scalars divide and a vanishing epsilon
/// makes infinities; else 0.
void setScalar(std::vector<uint8_t> &bytes, schema::ElementType type) {
  const auto put = [&](auto bits) {
    std::memcpy(bytes.data(), &bits, sizeof bits);
  };
  switch (type) {
  case schema::ElementType::f64:
    return put(1.0);
  case schema::ElementType::f32:
    return put(1.0f);
  case schema::ElementType::bf16:
    return put(uint16_t{0x3f80});
  case schema::ElementType::f16:
    return put(uint16_t{0x3c00});
  default:
    return;
  }
}

/// The arguments of one call, on the device. Scalars live here.
class Arguments {
public:
  Arguments(Device &device, Stream &stream) : device(device), stream(stream) {}
  ~Arguments() {
    for (void *memory : buffers)
      device.release(stream, memory);
  }
  Arguments(const Arguments &) = delete;
  Arguments &operator=(const Arguments &) = delete;

  Status make(const KernelInfo &kernel, std::span<const int64_t> extents,
              uint64_t maxBytes) {
    SeededRandom random(0x7075);
    uint64_t total = 0;
    for (size_t index = 0; index < kernel.args.size(); ++index) {
      const KernelInfo::Arg &arg = kernel.args[index];
      const unsigned size = elementBytes(arg.element);
      if (arg.shape.empty()) {
        std::vector<uint8_t> &value = scalars.emplace_back(8, uint8_t{0});
        setScalar(value, arg.element);
        pointers.push_back(value.data());
        continue;
      }
      std::vector<int64_t> sizes;
      uint64_t bytes = size;
      for (const Expr &dim : arg.shape) {
        const auto value = dim.evaluate(extents);
        if (!value || *value < 0)
          return makeError(Code::invalidArgument,
                           "kernel '{}': argument {} has no shape at these "
                           "extents",
                           kernel.name, index);
        sizes.push_back(*value);
        if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(*value),
                                   &bytes))
          bytes = maxBytes + 1;
      }
      if (bytes > maxBytes || (total += bytes) > maxBytes)
        return makeError(Code::exhausted,
                         "kernel '{}': arguments of more than {} bytes are not "
                         "measured",
                         kernel.name, maxBytes);
      PGKP_ASSIGN(void *memory, device.allocate(stream, bytes));
      buffers.push_back(memory);
      std::vector<uint8_t> content(bytes);
      fill(content, arg.element, random);
      PGKP_TRY(device.copyIn(stream, memory, content.data(), bytes));
      PGKP_TRY(stream.synchronize()); // `content` ends here
      pointers.push_back(headers.emplace_back(memory, sizes).data());
    }
    return {};
  }

  std::span<void *const> list() const { return pointers; }

private:
  Device &device;
  Stream &stream;
  std::vector<void *> buffers;
  std::deque<MemrefHeader> headers;
  std::deque<std::vector<uint8_t>> scalars;
  std::vector<void *> pointers;
};

double median(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  if (values.size() % 2)
    return values[middle];
  return (values[middle] +
          *std::max_element(values.begin(), values.begin() + middle)) /
         2;
}

} // namespace

Expected<TuneResult> Tuner::measure(const KernelInfo &kernel,
                                    std::span<const int64_t> extents,
                                    const TuneSide &generic,
                                    const TuneSide &variant,
                                    const TuneOptions &options) {
  if (!stream) {
    PGKP_ASSIGN(stream, device.createStream());
  }
  Arguments arguments(device, *stream);
  PGKP_TRY(arguments.make(kernel, extents, options.maxBytes));

  TuneResult result;
  TimeNs total = 0;
  // Time of `repeats` launches, the queue empty before and after.
  auto time = [&](const TuneSide &side, unsigned repeats) -> Expected<TimeNs> {
    const LaunchArgs call{arguments.list(), extents, side.workspaceBytes};
    const TimeNs begin = clock.now();
    for (unsigned i = 0; i < repeats; ++i)
      PGKP_TRY(device.launch(*stream, *side.image, call));
    PGKP_TRY(stream->synchronize());
    const TimeNs took = std::max<TimeNs>(clock.now() - begin, 1);
    result.launches += repeats;
    total += took;
    result.deviceSeconds = toSeconds(total);
    return took;
  };

  // Warm-up: page faults, caches, first-launch work.
  PGKP_ASSIGN(TimeNs genericFirst, time(generic, 1));
  PGKP_ASSIGN(TimeNs variantFirst, time(variant, 1));
  (void)genericFirst;
  (void)variantFirst;
  // The race, and how many launches make a sample. Both sides get as many.
  PGKP_ASSIGN(TimeNs genericRun, time(generic, 1));
  PGKP_ASSIGN(TimeNs variantRun, time(variant, 1));
  const auto repeats = static_cast<unsigned>(std::clamp<TimeNs>(
      options.minSample / std::min(genericRun, variantRun), 1, 1000));
  // One run of a kernel that the clock hardly sees proves nothing.
  if (repeats == 1 && static_cast<double>(variantRun) >
                          options.raceLimit * static_cast<double>(genericRun)) {
    result.genericNs = static_cast<double>(genericRun);
    result.variantNs = static_cast<double>(variantRun);
    result.pairs = 1;
    return result;
  }

  std::vector<double> genericTimes, variantTimes;
  unsigned faster = 0;
  for (unsigned pair = 0; pair < options.maxPairs; ++pair) {
    if (pair >= options.minPairs && total >= options.budget)
      break;
    // Who goes first alternates: drift and cache warmth favour neither.
    const bool genericLeads = pair % 2 == 0;
    PGKP_ASSIGN(TimeNs lead, time(genericLeads ? generic : variant, repeats));
    PGKP_ASSIGN(TimeNs follow, time(genericLeads ? variant : generic, repeats));
    const double g =
        static_cast<double>(genericLeads ? lead : follow) / repeats;
    const double v =
        static_cast<double>(genericLeads ? follow : lead) / repeats;
    genericTimes.push_back(g);
    variantTimes.push_back(v);
    faster += v < g;
    result.genericNs = median(genericTimes);
    result.variantNs = median(variantTimes);
    result.pairs = pair + 1;
    if (result.pairs < options.minPairs)
      continue;
    // Clear either way: more pairs would not change the verdict.
    if (faster == 0 && result.variantNs > 1.1 * result.genericNs)
      break;
    if (faster == result.pairs && result.variantNs < 0.8 * result.genericNs)
      break;
  }
  result.worth =
      result.variantNs < options.worthRatio * result.genericNs &&
      faster >= options.agreement * static_cast<double>(result.pairs);
  return result;
}

} // namespace pgkp::rt
