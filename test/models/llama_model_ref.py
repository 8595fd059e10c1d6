# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy reference of a whole llama model, in float64: llama_decoder_ref layer by layer."""

import numpy as np

import llama_decoder_ref as layers


def llama(ids, caches, embedding, weights, final_norm, head, heads):
    """caches: (k, v) of each layer; weights: those of each layer by name.

    Returns the logits and the caches grown by the new positions, k and v of each layer.
    """
    x = np.asarray(embedding, np.float64)[ids]
    grown = []
    for (k, v), w in zip(caches, weights):
        x, k, v = layers.decoder_layer(x, k, v, w, heads)
        grown += [k, v]
    logits = layers.rms_norm(x, np.asarray(final_norm, np.float64)) @ np.asarray(head, np.float64)
    return [logits] + grown
