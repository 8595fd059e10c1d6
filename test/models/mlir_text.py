# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Spells models as MLIR text (func, linalg, tensor, arith, math): what the generators share."""

import re


def tensor(element, *dims):
    """Spells a tensor type; None is a dynamic dimension."""
    return "tensor<" + "".join(f"{'?' if d is None else d}x" for d in dims) + element + ">"


def affine_map(domain, results):
    """affine_map("b s", "s") -> affine_map<(b, s) -> (s)>."""
    return (f"affine_map<({', '.join(domain.split())}) -> "
            f"({', '.join(results.split())})>")


def function(name, arguments, results, lines):
    """arguments: (name, type, attributes); results: (type, attributes); either may be ""."""
    def spell(type_, attributes):
        return f"{type_} {attributes}" if attributes else type_
    signature = ",\n".join(f"    %{n}: {spell(t, a)}" for n, t, a in arguments)
    returned = ", ".join(spell(t, a) for t, a in results)
    body = "\n".join(lines)
    return f"func.func @{name}(\n{signature})\n    -> ({returned}) {{\n{body}\n}}\n"


def file(script, flags, summary, text):
    """A checked-in module: licence, how it was written, what it is."""
    return ("// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
            f"// Written by {script} {flags}\n// Do not edit. {summary}\n{text}")


class Body:
    """The operations of an entry function, and the idioms that they are made of.

    Values are named without their "%". The constants %zero and %one (f32) must exist.
    """

    def __init__(self, element="f32"):
        self.element = element
        self.lines = []

    def emit(self, text):
        for line in text.strip("\n").split("\n"):
            self.lines.append("  " + line if line else line)

    def comment(self, text):
        self.emit("")
        self.emit("// " + text)

    def empty(self, name, type_, *extents):
        self.emit(f"%{name} = tensor.empty({', '.join('%' + e for e in extents)}) : {type_}")

    def fill(self, name, value, type_, *extents):
        scalar = type_[:-1].replace("<", "x").split("x")[-1]
        self.empty(f"{name}_empty", type_, *extents)
        self.emit(f"%{name} = linalg.fill ins(%{value} : {scalar}) outs(%{name}_empty : {type_}) "
                  f"-> {type_}")

    def generic(self, name, domain, iterators, inputs, out, result, lines):
        """One linalg.generic. inputs: (value, type, map results, block argument).

        out: (value, type, map results, block argument or None where it is not read).
        The body computes in f32 (bf16 inputs are widened, the result is narrowed), or without
        lines moves elements as they are.
        """
        operands = inputs + [out]
        maps = ", ".join(affine_map(domain, o[2]) for o in operands)
        kinds = {"p": "parallel", "r": "reduction"}
        types = ", ".join(f'"{kinds[i]}"' for i in iterators)
        scalar = [o[1][:-1].replace("<", "x").split("x")[-1] for o in operands]
        arguments, widen = [], []
        moves = not lines and len(set(scalar)) == 1
        for operand, type_ in zip(operands, scalar):
            argument = operand[3] or "_"
            if type_ != "bf16" or operand[3] is None or moves:
                arguments.append(f"%{argument}: {type_}")
            else:
                arguments.append(f"%{argument}_: {type_}")
                widen.append(f"%{argument} = arith.extf %{argument}_ : {type_} to f32")
        self.emit(f"%{name} = linalg.generic {{")
        self.emit(f"    indexing_maps = [{maps}],")
        self.emit(f"    iterator_types = [{types}]}}")
        if inputs:
            self.emit(f"    ins({', '.join('%' + o[0] for o in inputs)} : "
                      f"{', '.join(o[1] for o in inputs)})")
        self.emit(f"    outs(%{out[0]} : {out[1]}) {{")
        self.emit(f"  ^bb0({', '.join(arguments)}):")
        for line in widen + lines:
            self.emit("    " + line)
        if scalar[-1] == "bf16" and not moves:
            self.emit(f"    %{result}_ = arith.truncf %{result} : f32 to {scalar[-1]}")
            result += "_"
        self.emit(f"    linalg.yield %{result} : {scalar[-1]}")
        self.emit(f"}} -> {out[1]}")

    def matmul(self, name, lhs, rhs, k, n, rows="tokens"):
        """%name = %lhs [rows, k] times %rhs [k, n], in f32."""
        out = tensor("f32", None, n)
        self.fill(f"{name}_init", "zero", out, rows)
        self.emit(f"%{name} = linalg.matmul "
                  f"ins(%{lhs}, %{rhs} : {tensor(self.element, None, k)}, "
                  f"{tensor(self.element, k, n)}) outs(%{name}_init : {out}) -> {out}")

    def add(self, name, product, residual, n, rows="tokens"):
        """%name = %product (f32) plus %residual, both [rows, n]."""
        type_ = tensor(self.element, None, n)
        self.empty(f"{name}_out", type_, rows)
        self.generic(name, "t c", "pp",
                     [(product, tensor("f32", None, n), "t c", "p"),
                      (residual, type_, "t c", "a")],
                     (f"{name}_out", type_, "t c", None), "r",
                     ["%r = arith.addf %p, %a : f32"])

    def rms_norm(self, name, source, weight, n, rows="tokens"):
        """RMSNorm over rows of n; needs %hidden (n as f32) and %eps."""
        rows_e, row = tensor(self.element, None, n), tensor("f32", None)
        self.fill(f"{name}_zero", "zero", row, rows)
        self.generic(f"{name}_sq", "t c", "pr", [(source, rows_e, "t c", "a")],
                     (f"{name}_zero", row, "t", "acc"), "s",
                     ["%p = arith.mulf %a, %a : f32", "%s = arith.addf %acc, %p : f32"])
        self.empty(f"{name}_out", rows_e, rows)
        self.generic(name, "t c", "pp",
                     [(source, rows_e, "t c", "a"), (f"{name}_sq", row, "t", "sq"),
                      (weight, tensor(self.element, n), "c", "w")],
                     (f"{name}_out", rows_e, "t c", None), "r",
                     ["%mean = arith.divf %sq, %hidden : f32",
                      "%biased = arith.addf %mean, %eps : f32",
                      "%scale = math.rsqrt %biased : f32",
                      "%n = arith.mulf %a, %scale : f32",
                      "%r = arith.mulf %n, %w : f32"])

    def softmax(self, source, domain, shape, extents, probabilities):
        """Softmax over the last dimension of %source (f32); needs %lowest.

        domain: letters of the dimensions; shape: their extents, None where dynamic; extents:
        the values of the dynamic ones. Defines %probs in the type `probabilities`.
        """
        outer, kinds = " ".join(domain.split()[:-1]), "p" * (len(shape) - 1)
        whole, row = tensor("f32", *shape), tensor("f32", *shape[:-1])
        row_extents = extents[:sum(d is None for d in shape[:-1])]
        self.fill("max_init", "lowest", row, *row_extents)
        self.generic("max", domain, kinds + "r", [(source, whole, domain, "a")],
                     ("max_init", row, outer, "acc"), "r",
                     ["%r = arith.maxnumf %acc, %a : f32"])
        self.empty("exp_out", whole, *extents)
        self.generic("exp", domain, kinds + "p",
                     [(source, whole, domain, "a"), ("max", row, outer, "m")],
                     ("exp_out", whole, domain, None), "r",
                     ["%d = arith.subf %a, %m : f32", "%r = math.exp %d : f32"])
        self.fill("sum_init", "zero", row, *row_extents)
        self.generic("sum", domain, kinds + "r", [("exp", whole, domain, "a")],
                     ("sum_init", row, outer, "acc"), "r",
                     ["%r = arith.addf %acc, %a : f32"])
        self.empty("probs_out", probabilities, *extents)
        self.generic("probs", domain, kinds + "p",
                     [("exp", whole, domain, "a"), ("sum", row, outer, "s")],
                     ("probs_out", probabilities, domain, None), "r",
                     ["%r = arith.divf %a, %s : f32"])


def rename(lines, names):
    """The lines with values renamed: names(old) is the new name."""
    return [re.sub(r"%([A-Za-z_]\w*)", lambda m: "%" + names(m.group(1)), line) for line in lines]
