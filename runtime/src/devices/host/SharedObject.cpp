// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/host/HostDevice.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_EXEC // Linux 6.3
#define MFD_EXEC 0x0010U
#endif

namespace pgkp::rt {
namespace {

#if defined(__x86_64__)
constexpr unsigned kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kMachine = EM_AARCH64;
#else
constexpr unsigned kMachine = EM_NONE;
#endif

class Descriptor {
public:
  explicit Descriptor(int fd) : fd(fd) {}
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  int get() const { return fd; }

private:
  int fd;
};

Status checkElf(std::span<const uint8_t> elf, const std::string &what) {
  Elf64_Ehdr header;
  if (elf.size() < sizeof header)
    return makeError(Code::corrupt, "{}: {} bytes of code are no ELF file",
                     what, elf.size());
  std::memcpy(&header, elf.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN)
    return makeError(Code::corrupt, "{}: code is no 64-bit ELF shared object",
                     what);
  if (header.e_machine != kMachine)
    return makeError(Code::unsupported,
                     "{}: code for ELF machine {}, this is machine {}", what,
                     header.e_machine, kMachine);
  // glibc reads program headers through the mapping and would crash on these.
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > elf.size() ||
      (elf.size() - header.e_phoff) / sizeof(Elf64_Phdr) < header.e_phnum)
    return makeError(Code::corrupt, "{}: ELF program headers out of bounds",
                     what);
  return {};
}

/// glibc recognizes an open library by the path string first: a descriptor
/// number that is used again would silently give the old library. So no string
/// is used twice in a process: the bits of a counter are spelled in redundant
/// path components, "/." for 0 and "//." for 1.
std::string uniquePath(int fd) {
  static std::atomic<uint64_t> generations{0};
  uint64_t generation = generations.fetch_add(1, std::memory_order_relaxed);
  std::string path = "/proc/self/fd";
  do {
    path += generation & 1 ? "//." : "/.";
    generation >>= 1;
  } while (generation != 0);
  return path + "/" + std::to_string(fd);
}

} // namespace

Expected<std::unique_ptr<SharedObject>>
SharedObject::load(std::span<const uint8_t> elf, const std::string &what) {
  PGKP_TRY(checkElf(elf, what));
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int fd = ::memfd_create("pgkp", flags | MFD_EXEC);
  if (fd < 0 && errno == EINVAL) // before Linux 6.3
    fd = ::memfd_create("pgkp", flags);
  if (fd < 0)
    return makeErrnoError(errno, what + ": memfd_create");
  const Descriptor memory(fd);

  for (size_t written = 0; written < elf.size();) {
    const ssize_t n = ::write(fd, elf.data() + written, elf.size() - written);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return makeErrnoError(n < 0 ? errno : ENOSPC, what + ": writing code");
    written += static_cast<size_t>(n);
  }
  if (::fcntl(fd, F_ADD_SEALS,
              F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
    return makeErrnoError(errno, what + ": sealing code");

  void *handle = ::dlopen(uniquePath(fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *message = ::dlerror();
    return makeError(Code::unsupported, "{}: dlopen: {}", what,
                     message ? message : "no reason given");
  }
  return std::unique_ptr<SharedObject>(new SharedObject(handle, elf.size()));
}

SharedObject::~SharedObject() { ::dlclose(handle); }

void *SharedObject::find(const char *symbol) const {
  return ::dlsym(handle, symbol);
}

} // namespace pgkp::rt
