# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy reference of one llama decoder layer, in float64.

Written from the definitions (RMSNorm: Zhang and Sennrich 2019; rotary embedding: Su et
al. 2021, pairs (j, j + d/2) as in Hugging Face Llama; grouped-query attention: Ainslie
et al. 2023; SwiGLU: Shazeer 2020), one head and one query at a time: no mask, no
reshapes shared with llama_decoder.mlir.
"""

import numpy as np

EPS = 1e-5
ROPE_BASE = 10000.0


def rotary_angles(positions, head_dim):
    """Angle of pair j at position p: p * base^(-2j / head_dim)."""
    j = np.arange(head_dim // 2)
    return np.outer(positions, ROPE_BASE ** (-2.0 * j / head_dim))


def rms_norm(x, weight):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPS) * weight


def rotate(vectors, first_position):
    """vectors: [positions, head_dim]; a pair is one complex number, turned by its angle."""
    half = vectors.shape[-1] // 2
    angles = rotary_angles(first_position + np.arange(len(vectors)), vectors.shape[-1])
    turned = (vectors[:, :half] + 1j * vectors[:, half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], axis=-1)


def attend(query, keys, values):
    """One query over the keys that it may see."""
    scores = keys @ query / np.sqrt(len(query))
    weights = np.exp(scores - scores.max())
    return (weights / weights.sum()) @ values


def decoder_layer(x, k_cache, v_cache, weights, heads):
    """x: [batch, seq, hidden]; caches: [batch, kv_heads, kv, head_dim]; weights by name,
    [in, out]. Returns y and the caches grown by seq positions."""
    x = np.asarray(x, np.float64)
    w = {name: np.asarray(value, np.float64) for name, value in weights.items()}
    batch, seq, _ = x.shape
    _, kv_heads, kv, dim = k_cache.shape
    k_all = np.zeros((batch, kv_heads, kv + seq, dim))
    v_all = np.zeros((batch, kv_heads, kv + seq, dim))
    k_all[:, :, :kv], v_all[:, :, :kv] = k_cache, v_cache
    y = np.zeros_like(x)
    for b in range(batch):
        normed = rms_norm(x[b], w["attn_norm"])
        q, k, v = normed @ w["wq"], normed @ w["wk"], normed @ w["wv"]
        for h in range(kv_heads):
            columns = slice(h * dim, (h + 1) * dim)
            k_all[b, h, kv:] = rotate(k[:, columns], kv)
            v_all[b, h, kv:] = v[:, columns]
        context = np.zeros((seq, heads * dim))
        for h in range(heads):
            columns = slice(h * dim, (h + 1) * dim)
            shared = h // (heads // kv_heads)
            queries = rotate(q[:, columns], kv)
            for i in range(seq):
                seen = kv + i + 1
                context[i, columns] = attend(queries[i], k_all[b, shared, :seen],
                                             v_all[b, shared, :seen])
        attended = x[b] + context @ w["wo"]
        normed = rms_norm(attended, w["mlp_norm"])
        gate = normed @ w["w_gate"]
        y[b] = attended + (gate / (1.0 + np.exp(-gate)) * (normed @ w["w_up"])) @ w["w_down"]
    return y, k_all, v_all
