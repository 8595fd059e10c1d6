// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "DriverObject.h"

#include "base/File.h"

#include "lld/Common/Driver.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using ::pgkp::rt::Code;
using ::pgkp::rt::makeErrnoError;
using ::pgkp::rt::makeError;
using ::pgkp::rt::UniqueFd;

static bool writeAll(int fd, llvm::ArrayRef<char> bytes) {
  while (!bytes.empty()) {
    ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    bytes = bytes.drop_front(count);
  }
  return true;
}

/// The linker's complaints as one line.
static std::string joinLines(llvm::StringRef text) {
  std::string line;
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : lines) {
    part = part.trim();
    part.consume_front("ld.lld: ");
    part.consume_front("error: ");
    // Where in which object says nothing to the user.
    if (part.starts_with(">>>"))
      continue;
    line += (line.empty() ? "" : "; ") + part.str();
  }
  return line;
}

::pgkp::rt::Expected<std::vector<uint8_t>>
mlir::pgkp::linkShared(llvm::ArrayRef<char> object, llvm::StringRef name) {
  UniqueFd input(memfd_create("pgkp-object", MFD_CLOEXEC));
  UniqueFd output(memfd_create("pgkp-image", MFD_CLOEXEC));
  if (!input || !output || !writeAll(input.get(), object))
    return makeErrnoError(errno, "cannot hold an object file in memory");

  // The linker cannot write to a descriptor's path, but "-" is descriptor 1; so
  // no file system is needed, which a sandboxed worker may not have.
  llvm::outs().flush();
  UniqueFd saved(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (dup2(output.get(), STDOUT_FILENO) < 0)
    return makeErrnoError(errno, "cannot redirect the linker's output");
  std::string source = "/proc/self/fd/" + std::to_string(input.get());
  const char *arguments[] = {"ld.lld",
                             "-shared",
                             "-z",
                             "defs",
                             "-z",
                             "now",
                             "-z",
                             "relro",
                             "--hash-style=gnu",
                             "--threads=1",
                             "--build-id=none",
                             "--no-undefined",
                             "-o",
                             "-",
                             source.c_str()};
  std::string messages, errors;
  llvm::raw_string_ostream messageStream(messages), errorStream(errors);
  lld::Result result = lld::lldMain(arguments, messageStream, errorStream,
                                    {{lld::Gnu, &lld::elf::link}});
  llvm::outs().flush();
  if (saved)
    dup2(saved.get(), STDOUT_FILENO);
  else
    close(STDOUT_FILENO);

  if (result.retCode != 0 || !result.canRunAgain) {
    std::string text = joinLines(errors);
    bool undefined = llvm::StringRef(text).contains("undefined");
    return makeError(undefined ? Code::unsupported : Code::internal,
                     "cannot link '{}': {}", name.str(), text);
  }
  struct stat status;
  if (fstat(output.get(), &status) != 0 || status.st_size == 0)
    return makeErrnoError(errno, "the linker wrote no image");
  std::vector<uint8_t> image(status.st_size);
  for (size_t done = 0; done < image.size();) {
    ssize_t count =
        pread(output.get(), image.data() + done, image.size() - done, done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return makeErrnoError(errno, "cannot read the linked image");
    done += count;
  }
  return image;
}
