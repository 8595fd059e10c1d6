#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bert_encoder.mlir through PGKP against bert_encoder_ref.py (see model_check.py)."""

import sys

import numpy as np

import bert_encoder
import bert_encoder_ref as ref
import make_requests
import model_check


def reference(args, extents, arguments):
    x, *weights = arguments
    names = bert_encoder.weight_shapes(args)
    w = {name: np.asarray(value, np.float64) for name, value in zip(names, weights)}
    return [ref.encoder_layer(x, w, args.heads)]


def extents(rng):
    return int(rng.integers(1, 5)), int(rng.integers(1, 70))


MODEL = model_check.Model(
    "bert_encoder", bert_encoder, "encoder", ("batch", "seq"), reference,
    # f32: sums of up to 384 terms, normalized twice. bf16: eight roundings to eight bits.
    {"f32": 2e-5, "bf16": 2e-2}, extents, lambda: make_requests.text("bert_encoder"))

if __name__ == "__main__":
    sys.exit(model_check.main(MODEL, [(1, 1), (2, 17), (1, 64)],
                              ["--hidden 40 --heads 5 --ffn 52", "--type bf16"]))
