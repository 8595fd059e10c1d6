#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""llama_model.mlir through PGKP against llama_model_ref.py (see model_check.py). The caches are
carried from request to request where their extents fit."""

import sys

import numpy as np

import llama_decoder
import llama_model
import llama_model_ref as ref
import make_requests
import model_check


def reference(args, extents, arguments):
    ids, rest = arguments[0], arguments[1:]
    caches = [(rest[2 * i], rest[2 * i + 1]) for i in range(args.layers)]
    # The seeded tables hold any numbers: the reference takes what was given.
    cos, sin, embedding, *rest = rest[2 * args.layers:]
    names = list(llama_decoder.weight_shapes(args))
    weights = [dict(zip(names, rest[i * len(names):])) for i in range(args.layers)]
    with model_check.replaced(ref.layers, "rotate", rotate_by(cos, sin)):
        return ref.llama(ids, caches, embedding, weights, *rest[-2:], args.heads)


def rotate_by(cos, sin):
    def rotate(vectors, first_position):
        positions = slice(first_position, first_position + len(vectors))
        half = vectors.shape[-1] // 2
        low, high, c, s = vectors[:, :half], vectors[:, half:], cos[positions], sin[positions]
        return np.concatenate([low * c - high * s, high * c + low * s], axis=-1)
    return rotate


def extents(rng):
    seq = 1 if rng.random() < 0.4 else int(rng.integers(1, 30))
    kv = 0 if rng.random() < 0.3 else int(rng.integers(1, 50))
    return int(rng.integers(1, 5)), seq, kv


MODEL = model_check.Model(
    "llama_model", llama_model, "llama", ("batch", "seq", "kv"), reference,
    # The decoder layer's tolerances, for four of them in a row.
    {"f32": 1e-5, "bf16": 3e-2}, extents, lambda: make_requests.text("llama_model"))

if __name__ == "__main__":
    # The first three: a prefill and two steps over the caches that it left.
    sys.exit(model_check.main(
        MODEL, [(2, 6, 0), (2, 1, 6), (2, 1, 7), (1, 64, 0), (4, 1, 33)],
        ["--layers 2 --kv-heads 2 --head-dim 8 --ffn 48 --hidden 40 --vocabulary 77",
         "--layers 3 --type bf16"]))
