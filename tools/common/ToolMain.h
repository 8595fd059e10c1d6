// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What every runtime tool does alike: version, errors, exit codes.
#pragma once

#include "base/Status.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

namespace pgkp::rt {

enum ExitCode { exitOk = 0, exitFailed = 1, exitUsage = 2 };

/// One `error:` line; \returns the exit code for it.
inline int reportError(const std::string &message, ExitCode code = exitFailed) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return code;
}
inline int reportError(const Error &error) {
  return reportError(error.message);
}

/// Parses; \returns -1 to go on, else the exit code: 0 after --help or
/// --version, 2 on bad usage.
inline int parseCommandLine(CLI::App &app, int argc, char **argv) {
  app.set_version_flag("--version", std::string(PGKP_VERSION_STRING));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    return app.exit(success);
  } catch (const CLI::ParseError &error) {
    return reportError(
        fmt::format("{} (see {} --help)", error.what(), app.get_name()),
        exitUsage);
  }
  return -1;
}

} // namespace pgkp::rt
