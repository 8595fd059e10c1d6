#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""At the recorded sizes, the models do the matrix products that were recorded.

For every recorded forward, operands of a generated module are evaluated from its text with
that forward's extents and compared in order:
  llama_decoder: mm.default in each of the four recorded layers (the product left over is the
    language model head), the scaled dot products, and the concatenations of the caches;
  llama_model (every tenth forward): every mm.default, the head included;
  bert_encoder: addmm.default of each layer (the one left over is the pooler) and attention;
  moe_layer: the router's product and those of the experts that got tokens, with the recorded
    numbers of tokens, which add up to two a token.
Also: llama_decoder.requests.csv is up to date. Exits 1 on a difference.
"""

import argparse
import collections
import csv
import gzip
import os
import re
import sys

import bert_encoder
import llama_decoder
import llama_model
import make_requests
import moe_layer

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

    def __call__(self, roots, data=None):
        """data: values that the module reads from tensors, by name."""
        self.shape, self.index, self.operations = {}, dict(data or {}), []
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
        if op == "arith.ceildivui":
            a, b = (self.index[v] for v in values)
            self.index[name] = -(-a // b)
            return
        if op in ("tensor.extract", "arith.index_cast"):
            if op == "arith.index_cast" and name not in self.index:
                self.index[name] = self.index.get(values[0], 0)
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
            shapes = [list(self.shape[v]) for v in sources]
            shape = list(shapes[0])
            shape[axis] = sum(other[axis] for other in shapes)
            for other in shapes:
                other[axis] = 0
            assert all(other == shapes[0] for other in shapes), line
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


def recorded_operations(traces, name="llama"):
    """fwd -> op -> list of operand shapes."""
    result = collections.defaultdict(lambda: collections.defaultdict(list))
    with gzip.open(os.path.join(traces, f"{name}.ops.csv.gz"), "rt") as file:
        for row in csv.DictReader(file):
            operands = [tuple(int(d) for d in shape.rstrip("s").split("x"))
                        for shape in row["shapes"].split(";") if shape]
            op = row["op"]
            if op.startswith("_scaled_dot_product"):
                op = "attention"
            result[int(row["fwd"])][op].append(operands)
    return result


class Report:
    """Counts what was compared and prints differences."""

    def __init__(self):
        self.checked, self.failed = collections.Counter(), 0

    def compare(self, where, what, recorded, ours):
        self.checked[what] += len(recorded)
        if recorded != ours:
            self.fail(f"{where}: {what}: recorded {recorded}, the module has {ours}")

    def fail(self, message):
        print(f"FAIL {message}")
        self.failed += 1

    def close(self, model):
        if not all(self.checked.values()) or not self.checked:
            self.fail(f"{model}: nothing was recorded of {dict(self.checked)}")
        counts = ", ".join(f"{n} {what}" for what, n in self.checked.items())
        print(f"{'FAIL' if self.failed else 'ok'} {model}: {counts} compared")
        return self.failed


def describe(forward):
    return (f"forward {forward['fwd']} ({forward['phase']}, batch {forward['batch']}, "
            f"seq {forward['seq']}, kv {forward['kv']})")


def products_of(evaluated):
    return [shapes[:2] for shapes in evaluated.shapes_of("linalg.matmul")]


def check_decoder(traces):
    report = Report()
    args = llama_decoder.parse_args(SIZES)
    evaluator = Evaluator(llama_decoder.module(args))
    operations = recorded_operations(traces)
    for forward in make_requests.recorded(traces):
        ours = evaluator({name: forward[name] for name in ("batch", "seq", "kv")})
        ops, where = operations[forward["fwd"]], describe(forward)
        tokens = forward["batch"] * forward["seq"]
        report.compare(where, "products", ops["mm.default"][:-1], products_of(ours) * LAYERS)
        report.compare(where, "attention calls", ops["attention"],
                       [list(ours.attention())] * LAYERS)
        # Each layer concatenates k and v; the first forward over a cache recorded it as "0".
        # Concatenations of other ranks or lengths belong to the rotary embedding.
        grown = [c[-1] for c in ops["cat.default"]
                 if len(c) == 2 and (c[0] == (0,) or c[0][:2] + c[0][3:] == c[1][:2] + c[1][3:])
                 and c[1][-1] == args.head_dim and len(c[1]) == 4]
        report.compare(where, "cache concatenations", grown,
                       [c[1] for c in ours.shapes_of("tensor.concat")] * LAYERS)
        if forward["phase"] == "decode":
            held = [c[0] for c in ops["cat.default"]
                    if len(c[0]) == 4 and c[0][-1] == args.head_dim]
            report.compare(where, "caches", held,
                           [c[0] for c in ours.shapes_of("tensor.concat")] * LAYERS)
        head = ops["mm.default"][-1]
        if head[1] != (args.hidden, VOCABULARY) or head[0] != (tokens, args.hidden):
            report.fail(f"{where}: expected the language model head last, recorded {head}")
        report.checked[forward["phase"] + " forwards"] += 1
    with open(os.path.join(HERE, "llama_decoder.requests.csv")) as file:
        if file.read() != make_requests.text("llama_decoder", traces):
            report.fail("llama_decoder.requests.csv is not what make_requests.py prints")
    return report.close("llama_decoder")


def check_model(traces):
    report = Report()
    args = llama_model.parse_args([*SIZES, "--layers", str(LAYERS), "--vocabulary",
                                   str(VOCABULARY)])
    evaluator = Evaluator(llama_model.module(args))
    operations = recorded_operations(traces)
    for forward in list(make_requests.recorded(traces))[::10]:
        ours = evaluator({name: forward[name] for name in ("batch", "seq", "kv")})
        report.compare(describe(forward), "products", operations[forward["fwd"]]["mm.default"],
                       products_of(ours))
    return report.close("llama_model")


def check_encoder(traces):
    report = Report()
    args = bert_encoder.parse_args("--hidden 768 --heads 12 --ffn 3072".split())
    evaluator = Evaluator(bert_encoder.module(args))
    operations = recorded_operations(traces, "bert")
    for forward in make_requests.recorded(traces, "bert"):
        ours = evaluator({name: forward[name] for name in ("batch", "seq")})
        ops, where = operations[forward["fwd"]], describe(forward)
        report.compare(where, "products", [operands[1:] for operands in ops["addmm.default"][:-1]],
                       products_of(ours) * LAYERS)
        # [batch, heads, seq, dim] there is [batch * heads, seq, dim] here.
        folded = [[(b * h, *rest) for b, h, *rest in operands] for operands in ops["attention"]]
        q, k, v = (tuple(ours.shape[name]) for name in ("q_rows", "k_rows", "v_rows"))
        report.compare(where, "attention calls", folded, [[q, k, v]] * LAYERS)
    return report.close("bert_encoder")


def check_experts(traces):
    report = Report()
    args = moe_layer.parse_args("--hidden 512 --experts 8 --ffn 1024".split())
    evaluator = Evaluator(moe_layer.module(args))
    operations = recorded_operations(traces, "moe")
    router, first = (args.hidden, args.experts), (args.hidden, 2 * args.ffn)
    for forward in make_requests.recorded(traces, "moe"):
        where, tokens = describe(forward), forward["batch"] * forward["seq"]
        layers = []
        for operands in operations[forward["fwd"]]["mm.default"]:
            if operands[1] == router:
                layers.append([operands])
            elif layers and operands[1] in (first, (args.ffn, args.hidden)):
                layers[-1].append(operands)
        if len(layers) != 2:
            report.fail(f"{where}: {len(layers)} routers, expected 2")
        for recorded in layers:
            counts = [lhs[0] for lhs, rhs in recorded if rhs == first]
            if sum(counts) != 2 * tokens:
                report.fail(f"{where}: {counts} tokens of experts, expected {2 * tokens} in all")
            # Which experts got none was not recorded and does not matter.
            counts += [0] * (args.experts - len(counts))
            ours = evaluator({name: forward[name] for name in ("batch", "seq")},
                             {f"n_{i}": n for i, n in enumerate(counts)})
            report.compare(where, "products", recorded,
                           [shapes for shapes in products_of(ours) if shapes[0][0]])
    return report.close("moe_layer")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", default=make_requests.TRACES)
    traces = parser.parse_args().traces
    return 1 if sum(check(traces) for check in (check_decoder, check_model, check_encoder,
                                                check_experts)) else 0


if __name__ == "__main__":
    sys.exit(main())
