#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a whole llama model as MLIR: embedding, decoder layers, final norm, output projection.

The defaults print the checked-in llama_model.mlir: the recorded model (4 layers, hidden 1024,
vocabulary 32000) scaled down as llama_decoder.mlir is. Roots: batch, seq, kv (positions
that the caches of every layer hold).
"""

import argparse
import sys

import llama_decoder
import mlir_text
from mlir_text import Body, tensor


def parse_args(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    llama_decoder.add_size_options(parser)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=2000)
    args = parser.parse_args(argv)
    return llama_decoder.check_sizes(parser, args, args.layers, args.vocabulary)


def flags(args):
    return f"{llama_decoder.flags(args)} --layers {args.layers} --vocabulary {args.vocabulary}"


def embed(b, args, ids_type, table_type):
    """%x_rows [tokens, hidden]: the rows of %embedding that %ids name."""
    flat, rows = tensor("i32", None), tensor(args.type, None, args.hidden)
    b.comment("Embedding.")
    b.emit(f"%ids_flat = tensor.collapse_shape %ids [[0, 1]] : {ids_type} into {flat}")
    b.empty("x_rows_out", rows, "tokens")
    b.emit(f"""%x_rows = linalg.generic {{
    indexing_maps = [{mlir_text.affine_map("t c", "t")}, {mlir_text.affine_map("t c", "t c")}],
    iterator_types = ["parallel", "parallel"]}}
    ins(%ids_flat : {flat})
    outs(%x_rows_out : {rows}) {{
  ^bb0(%id: i32, %_: {args.type}):
    %row = arith.index_cast %id : i32 to index
    %column = linalg.index 1 : index
    %value = tensor.extract %embedding[%row, %column] : {table_type}
    linalg.yield %value : {args.type}
}} -> {rows}""")


def layer(args, number):
    """The lines of one layer; its values are those of llama_decoder with a suffix."""
    b = Body(args.type)
    llama_decoder.layer(b, args, slice_positions=False)
    shared = {"cos_now", "sin_now", "batch", "seq", "kv", "tokens", "length", "groups", "rows",
              "c0", "c1", "c2", "zero", "one", "lowest", "hidden", "eps", "qk_scale", "masked_out"}
    source = "x_rows" if number == 0 else f"y_rows_{number - 1}"

    def names(old):
        if old == "x_rows":
            return source
        return old if old in shared else f"{old}_{number}"
    return mlir_text.rename(b.lines, names)


def llama(args):
    e, hidden, vocabulary = args.type, args.hidden, args.vocabulary
    b = Body(e)
    ids_type, table_type = tensor("i32", None, None), tensor(e, vocabulary, hidden)
    cache = llama_decoder.cache_type(args)
    caches = [f"{name}_{i}" for i in range(args.layers) for name in ("k_cache", "v_cache")]
    arguments = [("ids", ids_type, '{pgkp.dims = ["batch", "seq"], '
                                   f"pgkp.range = [0, {vocabulary - 1}]}}")]
    arguments += llama_decoder.cache_arguments(args, *caches) + llama_decoder.tables(args)
    arguments.append(("embedding", table_type, "{pgkp.persistent}"))
    for i in range(args.layers):
        arguments += llama_decoder.weights(args, f"_{i}")
    arguments += [("final_norm", tensor(e, hidden), "{pgkp.persistent}"),
                  ("head", tensor(e, hidden, vocabulary), "{pgkp.persistent}")]

    llama_decoder.constants(b, args, "ids", ids_type, "k_cache_0")
    embed(b, args, ids_type, table_type)
    llama_decoder.slice_tables(b, args)
    for i in range(args.layers):
        b.comment(f"Layer {i}.")
        b.lines += layer(args, i)
    b.comment("Output projection.")
    b.rms_norm("final", f"y_rows_{args.layers - 1}", "final_norm", hidden)
    b.matmul("logits_rows", "final", "head", hidden, vocabulary)
    logits = tensor("f32", None, None, vocabulary)
    b.emit(f"%logits = tensor.expand_shape %logits_rows [[0, 1], [2]] output_shape "
           f"[%batch, %seq, {vocabulary}] : {tensor('f32', None, vocabulary)} into {logits}")
    grown = [f"%{name}_{i}" for i in range(args.layers) for name in ("k", "v")]
    b.emit(f"return %logits, {', '.join(grown)} : {logits}, {', '.join([cache] * len(grown))}")
    results = [(logits, "")] + [(cache, f"{{pgkp.carries = {1 + i} : i64}}")
                                for i in range(len(grown))]
    return mlir_text.function("llama", arguments, results, b.lines)


def module(args):
    return mlir_text.file("llama_model.py", flags(args), "A whole llama model.", llama(args))


if __name__ == "__main__":
    sys.stdout.write(module(parse_args()))
