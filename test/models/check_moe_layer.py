#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""moe_layer.mlir through PGKP against moe_layer_ref.py (see model_check.py)."""

import sys

import numpy as np

import make_requests
import model_check
import moe_layer
import moe_layer_ref as ref

# A normalized row has up to eight roundings of 2^-9 behind it in bf16.
MARGIN = {"f32": 1e-6, "bf16": 1e-2}


def reference(args, extents, arguments):
    x, *weights = arguments
    w = {name: np.asarray(value, np.float64)
         for name, value in zip(moe_layer.weight_shapes(args), weights)}
    return [ref.moe_layer(x, w, args.experts, model_check.rounding(args.type), MARGIN[args.type])]


def extents(rng):
    return int(rng.integers(1, 5)), int(rng.integers(1, 60))


MODEL = model_check.Model(
    "moe_layer", moe_layer, "moe", ("batch", "seq"), reference,
    {"f32": 1e-6, "bf16": 2e-3}, extents, lambda: make_requests.text("moe_layer"))

if __name__ == "__main__":
    # One token leaves most experts without any.
    sys.exit(model_check.main(MODEL, [(1, 1), (2, 1), (2, 31), (1, 64)],
                              ["--experts 2 --hidden 24 --ffn 20",
                               "--experts 5 --hidden 40 --ffn 33", "--type bf16"]))
