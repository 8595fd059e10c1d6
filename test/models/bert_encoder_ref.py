# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy reference of one BERT encoder layer (Devlin et al. 2019), in float64, one head and
one query at a time. GELU is x times the normal distribution's P(X <= x) (Hendrycks and
Gimpel 2016)."""

import math

import numpy as np

EPS = 1e-12
_erf = np.vectorize(math.erf, otypes=[np.float64])


def layer_norm(x, gain, shift):
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered / np.sqrt((centered ** 2).mean(axis=-1, keepdims=True) + EPS) * gain + shift


def gelu(x):
    return x * 0.5 * (1 + _erf(x / math.sqrt(2)))


def attend(query, keys, values):
    scores = keys @ query / math.sqrt(len(query))
    weights = np.exp(scores - scores.max())
    return (weights / weights.sum()) @ values


def encoder_layer(x, w, heads):
    """x: [batch, seq, hidden]; w: weights by name, [in, out]."""
    y = np.zeros(x.shape)
    dim = x.shape[2] // heads
    for b, tokens in enumerate(np.asarray(x, np.float64)):
        q, k, v = (tokens @ w["w" + n] + w["b" + n] for n in "qkv")
        context = np.zeros_like(tokens)
        for h in range(heads):
            columns = slice(h * dim, (h + 1) * dim)
            for i in range(len(tokens)):
                context[i, columns] = attend(q[i, columns], k[:, columns], v[:, columns])
        attended = layer_norm(tokens + context @ w["wo"] + w["bo"], w["attn_gain"],
                              w["attn_shift"])
        inner = gelu(attended @ w["w_in"] + w["b_in"])
        y[b] = layer_norm(attended + inner @ w["w_out"] + w["b_out"], w["mlp_gain"],
                          w["mlp_shift"])
    return y
