# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy reference of one residual convolution block (He et al. 2016), in float64, one output
position at a time."""

import numpy as np


def conv(x, w, stride):
    """Cross-correlation with a border of zeros; x: [batch, h, w, in], w: [size, size, in, out]."""
    size = w.shape[0]
    border = size // 2
    out = np.zeros((x.shape[0], -(-x.shape[1] // stride), -(-x.shape[2] // stride), w.shape[3]))
    for i in range(out.shape[1]):
        for j in range(out.shape[2]):
            for p in range(size):
                for q in range(size):
                    row, column = i * stride + p - border, j * stride + q - border
                    if 0 <= row < x.shape[1] and 0 <= column < x.shape[2]:
                        out[:, i, j] += x[:, row, column] @ w[p, q]
    return out


def residual_block(x, w, stride):
    x = np.asarray(x, np.float64)
    inner = np.maximum(conv(x, w["w1"], stride) * w["scale1"] + w["shift1"], 0)
    y = conv(inner, w["w2"], 1) * w["scale2"] + w["shift2"]
    kept = conv(x, w["wp"], stride) * w["scalep"] + w["shiftp"] if "wp" in w else x
    return np.maximum(y + kept, 0)
