// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ServingLoop.h"
#include "Csv.h"

#include <algorithm>
#include <array>
#include <deque>
#include <set>

namespace pgkp::rt {

namespace {

/// One forward, before a module gives its numbers names.
struct Shape {
  int64_t batch = 1, seq = 1, kv = 0;
};

/// What may stand behind a root.
enum class Meaning { batch, seq, tokens, kv, context, constant };

constexpr std::pair<std::string_view, Meaning> kMeanings[] = {
    {"batch", Meaning::batch},     {"b", Meaning::batch},
    {"seq", Meaning::seq},         {"seq_len", Meaning::seq},
    {"s", Meaning::seq},           {"tokens", Meaning::tokens},
    {"kv", Meaning::kv},           {"past", Meaning::kv},
    {"context", Meaning::context}, {"length", Meaning::context}};

struct RootValue {
  Meaning meaning;
  int64_t constant = 0;
  int64_t of(const Shape &shape) const {
    switch (meaning) {
    case Meaning::batch:
      return shape.batch;
    case Meaning::seq:
      return shape.seq;
    case Meaning::tokens:
      return shape.batch * shape.seq;
    case Meaning::kv:
      return shape.kv;
    case Meaning::context:
      return shape.kv + shape.seq;
    case Meaning::constant:
      break;
    }
    return constant;
  }
};

/// An entry with what its roots mean.
struct BoundEntry {
  uint32_t entry = 0;
  std::vector<RootValue> roots;

  std::vector<int64_t> values(const Shape &shape) const {
    std::vector<int64_t> out;
    for (const RootValue &root : roots)
      out.push_back(root.of(shape));
    return out;
  }
  bool uses(Meaning meaning) const {
    return std::any_of(roots.begin(), roots.end(), [&](const RootValue &root) {
      return root.meaning == meaning;
    });
  }
};

Expected<BoundEntry> bindRoots(const Module &module, const std::string &name,
                               const ServingOptions &options) {
  const auto entry = module.findEntry(name);
  if (!entry)
    return makeError(Code::invalidArgument, "'{}' has no entry '{}'",
                     module.name(), name);
  BoundEntry bound{*entry, {}};
  for (const std::string &root : module.entries()[*entry].roots) {
    const auto given = options.roots.find(root);
    const std::string &word =
        given == options.roots.end() ? root : given->second;
    const auto *meaning =
        std::find_if(std::begin(kMeanings), std::end(kMeanings),
                     [&](const auto &pair) { return pair.first == word; });
    int64_t constant = 0;
    if (meaning != std::end(kMeanings))
      bound.roots.push_back({meaning->second});
    else if (parseNumber(std::string_view(word), constant) && constant >= 0)
      bound.roots.push_back({Meaning::constant, constant});
    else
      return makeError(
          Code::invalidArgument,
          "entry '{}': what is its root '{}'? --root={}=batch, seq, "
          "tokens, kv, context or a number",
          name, root, root);
  }
  return bound;
}

class Loop {
public:
  Loop(const ServingOptions &options, BoundEntry prefill, BoundEntry decode,
       bool generates, int64_t maxContext, ReplayWorkload &workload)
      : options(options), prefill(std::move(prefill)),
        decode(std::move(decode)), generates(generates), maxContext(maxContext),
        workload(workload) {}

  void run(const ServingTrace &trace) {
    requests = &trace.requests;
    while (next < trace.requests.size() || !waiting.empty() ||
           !running.empty()) {
      if (waiting.empty() && running.empty())
        now = std::max(now, trace.requests[next].arrival);
      hear(now);
      if (!waiting.empty() &&
          static_cast<int64_t>(running.size()) < options.maxSequences)
        prefillBatch();
      else
        decodeStep();
    }
    std::stable_sort(workload.announcements.begin(),
                     workload.announcements.end(),
                     [](const auto &a, const auto &b) { return a.at < b.at; });
  }

private:
  struct Sequence {
    double arrival = 0;
    int64_t prompt = 1, left = 0; ///< tokens to prefill, to generate
    int64_t cached = 0;           ///< positions
  };

  /// Requests that have arrived by `t` join the queue, and are announced.
  void hear(double t) {
    for (; next < requests->size() && (*requests)[next].arrival <= t; ++next) {
      const ServingTrace::Request &request = (*requests)[next];
      Sequence sequence;
      sequence.arrival = request.arrival;
      const int64_t output =
          generates ? std::min(request.output, (maxContext + 1) / 2) : 1;
      sequence.prompt = std::clamp<int64_t>(
          request.prompt, 1, std::max<int64_t>(1, maxContext - output));
      sequence.left = output - 1; // the prefill gives the first token
      waiting.push_back(sequence);
      announce(request.arrival);
    }
  }

  /// How many of the queue from `begin` on fit into one prefill.
  size_t groupAt(size_t begin, int64_t free) const {
    int64_t longest = 0;
    size_t count = 0;
    while (begin + count < waiting.size() &&
           static_cast<int64_t>(count) < free) {
      longest = std::max(longest, waiting[begin + count].prompt);
      if (count > 0 &&
          longest * static_cast<int64_t>(count + 1) > options.maxTokens)
        break;
      ++count;
    }
    return std::max<size_t>(count, 1);
  }
  Shape shapeOf(size_t begin, size_t count) const {
    Shape shape{static_cast<int64_t>(count), 1, 0};
    for (size_t i = begin; i < begin + count; ++i)
      shape.seq = std::max(shape.seq, waiting[i].prompt);
    return shape;
  }

  double seconds(const Shape &shape) const {
    return options.base +
           options.perToken * static_cast<double>(shape.batch * shape.seq) +
           options.perPosition * static_cast<double>(shape.batch * shape.kv);
  }

  /// The newest request's prefill and the decode behind it, from what the queue
  /// holds when it arrives: `busyUntil` is when the present forward ends.
  void announce(double at) {
    double when = std::max(at, busyUntil);
    size_t begin = 0, count = 0;
    const int64_t free = std::max<int64_t>(
        1, options.maxSequences - static_cast<int64_t>(running.size()));
    while (true) {
      count = groupAt(begin, free);
      if (begin + count >= waiting.size())
        break;
      when += seconds(shapeOf(begin, count));
      begin += count;
    }
    Shape shape = shapeOf(begin, count);
    shape.seq = std::min(shape.seq, options.maxTokens);
    workload.announcements.push_back(
        {at, when, prefill.entry, prefill.values(shape)});
    if (!generates)
      return;
    when += seconds(shape);
    Shape step{std::min<int64_t>(
                   options.maxSequences,
                   static_cast<int64_t>(running.size() + waiting.size())),
               1, shape.seq};
    for (const Sequence &sequence : running)
      step.kv = std::max(step.kv, sequence.cached);
    workload.announcements.push_back(
        {at, when, decode.entry, decode.values(step)});
  }

  void forward(const BoundEntry &entry, const Shape &shape, double known) {
    ReplayRequest request;
    request.arrival = now;
    request.entry = entry.entry;
    request.roots = entry.values(shape);
    request.seconds = seconds(shape);
    request.known = known;
    now += request.seconds;
    busyUntil = now;
    workload.requests.push_back(std::move(request));
    hear(now); // with the queue as it is while this forward runs
  }

  void prefillBatch() {
    const size_t count =
        groupAt(0, options.maxSequences - static_cast<int64_t>(running.size()));
    const Shape whole = shapeOf(0, count);
    std::vector<Sequence> group(
        waiting.begin(), waiting.begin() + static_cast<ptrdiff_t>(count));
    waiting.erase(waiting.begin(),
                  waiting.begin() + static_cast<ptrdiff_t>(count));
    double known = 0;
    for (const Sequence &sequence : group)
      known = std::max(known, sequence.arrival);
    // Only a prompt that is alone can be longer than a forward.
    for (int64_t done = 0; done < whole.seq; done += options.maxTokens)
      forward(
          prefill,
          {whole.batch, std::min(options.maxTokens, whole.seq - done), done},
          known);
    for (Sequence &sequence : group) {
      sequence.cached = sequence.prompt;
      if (sequence.left > 0)
        running.push_back(sequence);
    }
  }

  void decodeStep() {
    Shape shape{static_cast<int64_t>(running.size()), 1, 0};
    double known = 0;
    for (const Sequence &sequence : running) {
      shape.kv = std::max(shape.kv, sequence.cached);
      known = std::max(known, sequence.arrival);
    }
    forward(decode, shape, known);
    for (Sequence &sequence : running) {
      ++sequence.cached;
      --sequence.left;
    }
    std::erase_if(running,
                  [](const Sequence &sequence) { return sequence.left == 0; });
  }

  const ServingOptions &options;
  const BoundEntry prefill, decode;
  const bool generates;
  const int64_t maxContext;
  ReplayWorkload &workload;
  const std::vector<ServingTrace::Request> *requests = nullptr;
  std::deque<Sequence> waiting;
  std::vector<Sequence> running;
  size_t next = 0;
  double now = 0, busyUntil = 0;
};

/// The longest context that breaks no limit of the entry, up to `most`.
int64_t contextLimit(const Module &module, const BoundEntry &bound,
                     int64_t most) {
  const EntryInfo &entry = module.entries()[bound.entry];
  const auto holds = [&](int64_t context) {
    return !entry.brokenLimit(bound.values({1, 1, context - 1})) &&
           !entry.brokenLimit(bound.values({1, context, 0}));
  };
  if (holds(most))
    return most;
  int64_t low = 1;
  while (low + 1 < most) {
    const int64_t middle = low + (most - low) / 2;
    (holds(middle) ? low : most) = middle;
  }
  return low;
}

} // namespace

Status serve(const ServingTrace &trace, const ServingOptions &options,
             ReplayWorkload &workload) {
  const Module &module = *workload.module;
  std::string first = options.entry, second = options.entry;
  if (first.empty() && module.findEntry("prefill") &&
      module.findEntry("decode")) {
    first = "prefill";
    second = "decode";
  } else if (first.empty()) {
    if (module.entries().size() != 1)
      return makeError(Code::invalidArgument,
                       "'{}' has {} entries; name one with --entry",
                       module.name(), module.entries().size());
    first = second = module.entries()[0].name;
  }
  PGKP_ASSIGN(BoundEntry prefill, bindRoots(module, first, options));
  PGKP_ASSIGN(BoundEntry decode, bindRoots(module, second, options));
  // Without a cache there is nothing to decode from: an encoder.
  const bool generates =
      decode.uses(Meaning::kv) || decode.uses(Meaning::context);
  int64_t most = options.maxContext > 0 ? options.maxContext : kMaxExtent >> 10;
  most = std::min(contextLimit(module, prefill, most),
                  contextLimit(module, decode, most));
  Loop(options, std::move(prefill), std::move(decode), generates, most,
       workload)
      .run(trace);
  return {};
}

std::string toCsv(const ReplayWorkload &workload) {
  const auto entries = workload.module->entries();
  std::vector<std::string> columns;
  std::set<uint32_t> used;
  for (const ReplayRequest &request : workload.requests)
    if (used.insert(request.entry).second)
      for (const std::string &root : entries[request.entry].roots)
        if (std::find(columns.begin(), columns.end(), root) == columns.end())
          columns.push_back(root);
  std::string out = "arrival_s,entry";
  for (const std::string &column : columns)
    out += "," + column;
  out += '\n';
  for (const ReplayRequest &request : workload.requests) {
    const EntryInfo &entry = entries[request.entry];
    fmt::format_to(std::back_inserter(out), "{:.6f},{}", request.arrival,
                   entry.name);
    for (const std::string &column : columns) {
      const auto it = std::find(entry.roots.begin(), entry.roots.end(), column);
      fmt::format_to(std::back_inserter(out), ",{}",
                     it == entry.roots.end()
                         ? 0
                         : request.roots[it - entry.roots.begin()]);
    }
    out += '\n';
  }
  return out;
}

} // namespace pgkp::rt
