// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Synthetic.h"
#include "Csv.h"

#include "base/Random.h"

#include <cmath>
#include <limits>

namespace pgkp::rt {

ServingTrace makeSynthetic(const SyntheticOptions &options) {
  SeededRandom random(options.seed);
  const auto exponential = [&] { return -std::log(1 - random.uniform()); };
  const auto normal = [&] {
    const double u = 1 - random.uniform(), v = random.uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
  };
  const auto length = [&](double median, double sigma) {
    const double drawn = median * std::exp(sigma * normal());
    return std::clamp<int64_t>(std::llround(std::min(drawn, 1e12)), 1,
                               options.maxTokens);
  };
  ServingTrace trace;
  double at = 0, minuteEnds = 0;
  bool burst = false;
  for (size_t i = 0; i < options.requests; ++i) {
    // A gap in units of the rate is used up minute by minute.
    double gap = exponential();
    while (true) {
      if (at >= minuteEnds) {
        burst = random.uniform() < options.burstShare;
        minuteEnds += 60;
      }
      const double rate = options.rate * (burst ? options.burst : 1);
      if (at + gap / rate <= minuteEnds) {
        at += gap / rate;
        break;
      }
      gap -= (minuteEnds - at) * rate;
      at = minuteEnds;
    }
    ServingTrace::Request request;
    request.arrival = at;
    const bool again = i > 0 && random.uniform() < options.repeat;
    request.prompt = again ? trace.requests[random.below(i)].prompt
                           : length(options.promptMedian, options.promptSigma);
    request.output = length(options.outputMedian, options.outputSigma);
    trace.requests.push_back(request);
  }
  return trace;
}

Expected<SyntheticOptions> parseSynthetic(std::string_view text) {
  SyntheticOptions options;
  double seed = 1, requests = static_cast<double>(options.requests),
         maxTokens = static_cast<double>(options.maxTokens);
  struct Setting {
    std::string_view name;
    double *value;
    double low, high;
  };
  const Setting settings[] = {{"seed", &seed, 0, 1e15},
                              {"requests", &requests, 1, 1e8},
                              {"rate", &options.rate, 1e-6, 1e6},
                              {"burst", &options.burst, 1e-3, 1e3},
                              {"burst_share", &options.burstShare, 0, 1},
                              {"prompt_median", &options.promptMedian, 1, 1e9},
                              {"prompt_sigma", &options.promptSigma, 0, 10},
                              {"output_median", &options.outputMedian, 1, 1e9},
                              {"output_sigma", &options.outputSigma, 0, 10},
                              {"repeat", &options.repeat, 0, 1},
                              {"max_tokens", &maxTokens, 1, 1e9}};
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t equals = std::min(item.find('='), item.size());
    const auto *setting = std::find_if(
        std::begin(settings), std::end(settings),
        [&](const Setting &s) { return s.name == item.substr(0, equals); });
    if (setting == std::end(settings))
      return makeError(Code::invalidArgument,
                       "synthetic workload: no setting '{}'",
                       item.substr(0, equals));
    double value = 0;
    if (equals == item.size() || !parseNumber(item.substr(equals + 1), value) ||
        !(value >= setting->low && value <= setting->high))
      return makeError(Code::invalidArgument,
                       "synthetic workload: {} is '{}'; expected {} to {}",
                       setting->name,
                       item.substr(std::min(equals + 1, item.size())),
                       setting->low, setting->high);
    *setting->value = value;
  }
  options.seed = static_cast<uint64_t>(seed);
  options.requests = static_cast<size_t>(requests);
  options.maxTokens = static_cast<int64_t>(maxTokens);
  return options;
}

} // namespace pgkp::rt
