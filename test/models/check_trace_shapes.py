#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""At the recorded sizes, the decoder layer does the matrix products that were recorded.

For every recorded forward: the linalg.matmul operands of the generated module, evaluated
from its text with that forward's extents, are the operands of mm.default in each of the
four recorded layers, in order (the product left over is the language model head, which is
no part of a layer); the operands of attention are those of the recorded scaled dot product,
and the caches are concatenated as recorded. Also: llama_decoder.requests.csv is up to date.
Exits 1 on a difference.
"""

import argparse
import collections
import csv
import gzip
import os
import re
import sys

import llama_decoder
import make_requests

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = "--hidden 1024 --heads 16 --kv-heads 4 --head-dim 64 --ffn 2816".split()
LAYERS, VOCABULARY = 4, 32000


def type_dims(text):
    """tensor<?x64xf32> -> [None, 64]."""
    parts = re.fullmatch(r"tensor<(.*)>", text).group(1).split("x")[:-1]
    return [None if p == "?" else int(p) for p in parts]


class Evaluator:
    """Concrete extents of every value of a module, given those of its arguments.

    Each operation is evaluated from its operands; the printed type is only compared with
    the outcome, so a wrong extent operand is found.
    """

    def __init__(self, module):
        header, body = module.split("{\n  %c0", 1)
        self.arguments = re.findall(r'%(\w+): (tensor<\S+>) \{(.*)\}', header)
        # One line an operation: bodies of linalg.generic hold no tensors.
        body = re.sub(r" \{\n +\^bb0.*?\n +\} ->", " ->", "  %c0" + body, flags=re.S)
        body = re.sub(r" = linalg.generic \{\n.*?\]\}\n", " = linalg.generic", body, flags=re.S)
        body = re.sub(r"\n +(ins|outs)\(", r" \1(", body)
        self.lines = [line.strip() for line in body.splitlines() if line.startswith("  %")]

    def __call__(self, roots):
        self.shape, self.index, self.operations = {}, {}, []
        for name, type_, attributes in self.arguments:
            dims = type_dims(type_)
            named = re.search(r"pgkp.dims = \[(.*?)\]", attributes)
            names = re.findall(r'"(\w*)"', named.group(1)) if named else [""] * len(dims)
            assert len(names) == len(dims), name
            self.shape[name] = [roots[n] if n else d for n, d in zip(names, dims)]
        for line in self.lines:
            self.evaluate(line)
        return self

    def extent(self, token):
        return self.index[token[1:]] if token.startswith("%") else int(token)

    def extents(self, text):
        return [self.extent(t) for t in text.split(", ")] if text else []

    def evaluate(self, line):
        name, op, rest = re.fullmatch(r"%(\w+) = ([\w.]+)(.*)", line).groups()
        values = re.findall(r"%(\w+)", rest)
        if op == "arith.constant":
            if rest.endswith(": index"):
                self.index[name] = int(rest.split()[0])
            return
        if op in ("arith.muli", "arith.addi"):
            a, b = (self.index[v] for v in values)
            self.index[name] = a * b if op == "arith.muli" else a + b
            return
        if op == "tensor.dim":
            self.index[name] = self.shape[values[0]][self.index[values[1]]]
            return

        type_ = re.findall(r"tensor<[^>]*>", rest)[-1]
        printed = type_dims(type_)
        sources = [v for v in values if v in self.shape]
        if op == "tensor.empty":
            given = iter(self.extents(re.search(r"\((.*?)\)", rest).group(1)))
            shape = [next(given) if d is None else d for d in printed]
        elif op == "tensor.collapse_shape":
            shape = []
            for group in re.findall(r"\[([\d, ]+)\]", rest):
                product = 1
                for d in group.split(", "):
                    product *= self.shape[sources[0]][int(d)]
                shape.append(product)
        elif op == "tensor.expand_shape":
            shape = self.extents(re.search(r"output_shape \[(.*?)\]", rest).group(1))
            groups = re.search(r"\[\[.*?\]\]", rest).group(0)
            for extent, group in zip(self.shape[sources[0]],
                                     re.findall(r"\[([\d, ]+)\]", groups[1:-1])):
                product = 1
                for d in group.split(", "):
                    product *= shape[int(d)]
                assert product == extent, line
        elif op == "tensor.extract_slice":
            offsets, sizes = re.findall(r"\[(.*?)\]", rest)[:2]
            offsets, sizes = self.extents(offsets), self.extents(sizes)
            for offset, size, extent in zip(offsets, sizes, self.shape[sources[0]]):
                assert offset + size <= extent, line
            shape = sizes
            if len(printed) < len(sizes):  # rank-reduced: the unit dimension is dropped
                dropped = len(sizes) - 2
                assert sizes[dropped] == 1, line
                shape = sizes[:dropped] + sizes[dropped + 1:]
        elif op == "tensor.concat":
            axis = int(re.search(r"dim\((\d+)\)", rest).group(1))
            a, b = (list(self.shape[v]) for v in sources)
            shape = list(a)
            shape[axis] += b[axis]
            a[axis] = b[axis] = 0
            assert a == b, line
        elif op.startswith("linalg."):
            shape = self.shape[sources[-1]]
            if op == "linalg.matmul":
                (m, k), (k2, n) = (self.shape[v] for v in sources[:2])
                assert k == k2 and shape == [m, n], line
        else:
            raise NotImplementedError(line)
        assert len(shape) == len(printed), line
        assert all(p in (None, s) for p, s in zip(printed, shape)), (line, shape)
        self.shape[name] = shape
        self.operations.append((op, name, sources))

    def shapes_of(self, op):
        return [[tuple(self.shape[v]) for v in sources]
                for o, _, sources in self.operations if o == op]

    def origin(self, value):
        """The rank-4 tensor that value is a reshape of."""
        made = {name: (op, sources) for op, name, sources in self.operations}
        while len(self.shape[value]) != 4:
            op, sources = made[value]
            assert op in ("tensor.collapse_shape", "tensor.expand_shape"), (value, op)
            value = sources[0]
        return tuple(self.shape[value])

    def attention(self):
        """Shapes of q, k and v: operands of the two products over the grown caches."""
        products = [sources for op, _, sources in self.operations
                    if op in ("linalg.generic", "linalg.batch_matmul")
                    and len(sources) == 3 and all(len(self.shape[s]) == 3 for s in sources)]
        (q, k, _), (_, v, _) = products
        return self.origin(q), self.origin(k), self.origin(v)


def recorded_operations(traces):
    """fwd -> op -> list of operand shapes."""
    result = collections.defaultdict(lambda: collections.defaultdict(list))
    with gzip.open(os.path.join(traces, "llama.ops.csv.gz"), "rt") as file:
        for row in csv.DictReader(file):
            operands = [tuple(int(d) for d in shape.rstrip("s").split("x"))
                        for shape in row["shapes"].split(";") if shape]
            op = row["op"]
            if op.startswith("_scaled_dot_product"):
                op = "attention"
            result[int(row["fwd"])][op].append(operands)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", default=make_requests.TRACES)
    options = parser.parse_args()
    args = llama_decoder.parse_args(SIZES)
    evaluator = Evaluator(llama_decoder.module(args))
    operations = recorded_operations(options.traces)
    checked, failed = collections.Counter(), 0

    for forward in make_requests.recorded(options.traces):
        ours = evaluator({name: forward[name] for name in ("batch", "seq", "kv")})
        ops = operations[forward["fwd"]]
        where = (f"forward {forward['fwd']} ({forward['phase']}, batch {forward['batch']}, "
                 f"seq {forward['seq']}, kv {forward['kv']})")
        products = [shapes[:2] for shapes in ours.shapes_of("linalg.matmul")]
        tokens = forward["batch"] * forward["seq"]
        expected = [("products", ops["mm.default"][:-1], products * LAYERS),
                    ("attention", ops["attention"], [list(ours.attention())] * LAYERS)]
        # Each layer concatenates k and v; the first forward over a cache recorded it as "0".
        # Concatenations of other ranks or lengths belong to the rotary embedding.
        grown = [c[-1] for c in ops["cat.default"]
                 if len(c) == 2 and (c[0] == (0,) or c[0][:2] + c[0][3:] == c[1][:2] + c[1][3:])
                 and c[1][-1] == args.head_dim and len(c[1]) == 4]
        expected.append(("cache growth", grown,
                         [c[1] for c in ours.shapes_of("tensor.concat")] * LAYERS))
        if forward["phase"] == "decode":
            held = [c[0] for c in ops["cat.default"]
                    if len(c[0]) == 4 and c[0][-1] == args.head_dim]
            expected.append(("caches", held,
                             [c[0] for c in ours.shapes_of("tensor.concat")] * LAYERS))
        head = ops["mm.default"][-1]
        if head[1] != (args.hidden, VOCABULARY) or head[0] != (tokens, args.hidden):
            print(f"FAIL {where}: expected the language model head last, recorded {head}")
            failed += 1
        for what, theirs, mine in expected:
            checked[what] += len(theirs)
            if theirs != mine:
                print(f"FAIL {where}: {what}: recorded {theirs}, the module has {mine}")
                failed += 1
        checked[forward["phase"]] += 1

    with open(os.path.join(HERE, "llama_decoder.requests.csv")) as file:
        capped = make_requests.capped(make_requests.recorded(options.traces))
        if file.read() != make_requests.requests(capped):
            print("FAIL llama_decoder.requests.csv is not what make_requests.py prints")
            failed += 1
    if not checked["prefill"] or not checked["decode"]:
        print("FAIL no prefill or no decode forward was recorded")
        failed += 1
    print(f"{'FAIL' if failed else 'ok'} {checked['prefill']} prefill and {checked['decode']} "
          f"decode forwards: {checked['products']} products, {checked['attention']} attention "
          f"calls and {checked['cache growth']} cache concatenations compared")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
