#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""conv_block.mlir through PGKP against conv_block_ref.py (see model_check.py)."""

import sys

import numpy as np

import conv_block
import conv_block_ref as ref
import make_requests
import model_check


def reference(args, extents, arguments):
    x, *weights = arguments
    w = {name: np.asarray(value, np.float64)
         for name, value in zip(conv_block.weight_shapes(args), weights)}
    return [ref.residual_block(x, w, args.stride)]


def extents(rng):
    return int(rng.integers(1, 5)), int(rng.integers(1, 34)), int(rng.integers(1, 34))


MODEL = model_check.Model(
    "conv_block", conv_block, "block", ("batch", "height", "width"), reference,
    # Sums of up to 288 terms.
    {"f32": 1e-5}, extents, lambda: make_requests.text("conv_block"))

if __name__ == "__main__":
    sys.exit(model_check.main(MODEL, [(1, 1, 1), (2, 7, 12), (1, 32, 32)],
                              ["--stride 1 --channels-in 24 --channels-out 24",
                               "--stride 1 --channels-in 3 --channels-out 7",
                               "--channels-in 3 --channels-out 64"]))
