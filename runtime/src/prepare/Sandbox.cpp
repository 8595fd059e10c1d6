// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "prepare/Sandbox.h"

#include <cerrno>
#include <cstddef>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace pgkp::rt {

#if defined(__x86_64__)
static constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
static constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#endif

static constexpr unsigned kDenied[] = {
#ifndef __SANITIZE_ADDRESS__ // LeakSanitizer stops its own threads with it
    SYS_ptrace,
#endif
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_setns,
    SYS_unshare,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_userfaultfd,
    SYS_open_by_handle_at,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_sethostname,
    SYS_acct,
    SYS_quotactl,
#ifdef SYS_io_uring_setup // would get around the rule about sockets
    SYS_io_uring_setup,
#endif
};

std::vector<sock_filter> sandboxFilter() {
#if defined(__x86_64__) || defined(__aarch64__)
  auto load = [](size_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                static_cast<unsigned>(offset));
  };
  // Skips `then` instructions where the loaded word is `value`, else
  // `otherwise`.
  auto ifEqual = [](unsigned value, unsigned char then,
                    unsigned char otherwise) {
    return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then,
                                otherwise);
  };
  auto answer = [](unsigned action) {
    return sock_filter BPF_STMT(BPF_RET | BPF_K, action);
  };
  const sock_filter deny = answer(SECCOMP_RET_ERRNO | EPERM),
                    allow = answer(SECCOMP_RET_ALLOW);

  std::vector<sock_filter> filter{load(offsetof(seccomp_data, arch)),
                                  ifEqual(kArchitecture, 1, 0), deny,
                                  load(offsetof(seccomp_data, nr))};
#ifdef __x86_64__
  // The x32 numbers are other names of the same calls.
  filter.push_back(
      sock_filter BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
  filter.push_back(deny);
#endif
  for (unsigned number : kDenied) {
    filter.push_back(ifEqual(number, 0, 1));
    filter.push_back(deny);
  }
  // The argument's low word comes first on both architectures.
  filter.push_back(ifEqual(SYS_socket, 0, 3));
  filter.push_back(load(offsetof(seccomp_data, args)));
  filter.push_back(ifEqual(AF_UNIX, 1, 0));
  filter.push_back(deny);
  filter.push_back(allow);
  return filter;
#else
  return {};
#endif
}

} // namespace pgkp::rt
