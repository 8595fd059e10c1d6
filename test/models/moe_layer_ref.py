# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy reference of one top-2 mixture-of-experts layer (Shazeer et al. 2017; weights as in
Mixtral: softmax over the two largest logits), in float64, one token at a time."""

import numpy as np

import llama_decoder_ref


def moe_layer(x, w, experts, round_to_type, margin):
    """x: [batch, seq, hidden]; w: weights by name; margin: logits nearer than this may be
    ordered either way by a computation in fewer bits.

    Returns y; tokens whose second expert is in doubt are masked.
    """
    rows = np.asarray(x, np.float64).reshape(-1, x.shape[-1])
    y = np.ma.masked_array(np.zeros(rows.shape), np.zeros(rows.shape, bool))
    for t, row in enumerate(rows):
        h = round_to_type(llama_decoder_ref.rms_norm(row, w["norm"]))
        logits = h @ w["router"]
        order = np.argsort(-logits, kind="stable")
        y[t] = row
        gates = np.exp(logits[order[:2]] - logits[order[0]])
        for gate, expert in zip(gates / gates.sum(), order[:2]):
            gated, lifted = np.split(h @ w[f"w_in_{expert}"], 2)
            y[t] += gate * ((gated / (1 + np.exp(-gated)) * lifted) @ w[f"w_out_{expert}"])
        if experts > 2 and logits[order[1]] - logits[order[2]] < margin:
            y[t] = np.ma.masked
    return y.reshape(x.shape)
