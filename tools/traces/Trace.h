// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Recorded workloads of three kinds, whatever format they came in:
/// requests with lengths, forwards, kernel launches.
#pragma once

#include "InputFile.h"
#include "Requests.h"

#include "base/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pgkp::rt {

/// What a serving queue sees. A serving loop makes forwards of it.
struct ServingTrace {
  struct Request {
    double arrival = 0;             ///< s since the first one
    int64_t prompt = 1, output = 1; ///< tokens, both at least 1
  };
  std::vector<Request> requests; ///< by arrival
};

/// Launches of kernels whose extents are all that is known of them.
struct KernelTrace {
  /// What is the same at every launch: name and extents (grid and block; or an
  /// operator's shapes).
  struct Key {
    uint32_t name = 0; ///< index into `names`
    std::vector<int64_t> extents;
  };
  struct Launch {
    double start = 0;   ///< s since the first one
    double seconds = 0; ///< on the device; a guess where it was not recorded
    uint64_t correlation = 0;
    uint32_t key = 0;    ///< index into `keys`
    uint32_t stream = 0; ///< dense, in order of appearance
  };
  std::vector<std::string> names;
  std::vector<Key> keys;
  std::vector<Launch> launches; ///< by (start, recorded stream, correlation)
  bool measured = true;         ///< times were recorded
};

using Trace = std::variant<ServingTrace, ForwardTrace, KernelTrace>;

/// The formats, as `--format` spells them.
enum class TraceFormat : uint8_t {
  automatic, ///< told from the first bytes
  azure,     ///< CSV TIMESTAMP,ContextTokens,GeneratedTokens
  mooncake,  ///< JSON lines with timestamp (ms), input_length, output_length
  forwards,  ///< CSV arrival_s,entry,<roots...> or fwd,t_us,<roots...>
  operators, ///< CSV t_us,fwd,op,dtype,shapes
  kineto,    ///< Kineto (Chrome) JSON: device kernels with grid and block
  execution  ///< PyTorch execution trace JSON: operators with shapes
};
/// In the order of TraceFormat.
std::vector<std::string> traceFormatNames();

/// Reads a file: plain, .gz, or the first file of a .tar or .tar.gz. Memory is
/// linear in what is kept, not in the file. An error is one line with file and
/// line: invalidArgument (what is missing or out of range), corrupt, io.
Expected<Trace> readTrace(const std::string &path,
                          TraceFormat format = TraceFormat::automatic);

/// From the first bytes; `automatic` where they fit nothing.
TraceFormat detectFormat(std::string_view head);

// A reader for each format, beside readForwards.
Expected<ServingTrace> readAzure(InputFile &file);
Expected<ServingTrace> readMooncake(InputFile &file);
Expected<KernelTrace> readOperators(InputFile &file);
Expected<KernelTrace> readKineto(InputFile &file);
Expected<KernelTrace> readExecution(InputFile &file);

} // namespace pgkp::rt
