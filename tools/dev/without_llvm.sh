#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs a command where no LLVM, MLIR or CUDA can be found: in a mount namespace of its
# own their folders are empty and their libraries are no libraries. Nothing outside sees
# it. Exits 77 with a reason where that is not allowed.
set -eu
if [ "${1:-}" = --inside ]; then
  shift
  for folder in /usr/lib/llvm-* /usr/local/cuda*; do
    if [ -d "$folder" ] && [ ! -L "$folder" ]; then
      mount -t tmpfs -o size=64k none "$folder"
    fi
  done
  for library in /usr/lib/*/libLLVM*.so* /usr/lib/*/libMLIR*.so* /usr/lib/*/libcuda.so*; do
    if [ -f "$library" ] && [ ! -L "$library" ]; then
      mount --bind /dev/null "$library"
    fi
  done
  exec "$@"
fi
if ! unshare -m true 2>/dev/null; then
  echo "a mount namespace is not permitted here"
  exit 77
fi
exec unshare -m "$0" --inside "$@"
