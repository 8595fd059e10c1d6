# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes operations with random expressions and, as an expected remark, the value that
the expression as written has for random symbol values. Canonicalization happens while
the expression is parsed, so a wrong rule shows as a wrong value."""

import random
import sys

NUM_SYMBOLS = 4


def generate(rng, depth):
    """A random expression as nested tuples."""
    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.6:
            return ("s", rng.randrange(NUM_SYMBOLS))
        return ("c", rng.choice([0, 1, 2, 3, 4, 8, 16, -1, -2, rng.randrange(-50, 50)]))
    op = rng.choice(["+", "+", "-", "*", "*", "floordiv", "ceildiv", "mod", "min", "max"])
    if op in ("min", "max"):
        return (op, *[generate(rng, depth - 1) for _ in range(rng.randrange(1, 4))])
    lhs = generate(rng, depth - 1)
    if op in ("floordiv", "ceildiv", "mod") and rng.random() < 0.8:
        return (op, lhs, ("c", rng.randrange(1, 17)))
    return (op, lhs, generate(rng, depth - 1))


def text(expr):
    kind = expr[0]
    if kind == "s":
        return f"s{expr[1]}"
    if kind == "c":
        return str(expr[1])
    if kind in ("min", "max"):
        return f"{kind}({', '.join(map(text, expr[1:]))})"
    return f"({text(expr[1])} {kind} {text(expr[2])})"


def evaluate(expr, symbols):
    """The exact value; ArithmeticError without one, or near the limits of 64 bits, where
    the order of operations may matter."""
    kind = expr[0]
    if kind == "s":
        return symbols[expr[1]]
    if kind == "c":
        return expr[1]
    values = [evaluate(operand, symbols) for operand in expr[1:]]
    if kind in ("floordiv", "ceildiv", "mod") and values[1] <= 0:
        raise ArithmeticError
    value = {
        "+": lambda: values[0] + values[1],
        "-": lambda: values[0] - values[1],
        "*": lambda: values[0] * values[1],
        "floordiv": lambda: values[0] // values[1],
        "ceildiv": lambda: -(-values[0] // values[1]),
        "mod": lambda: values[0] % values[1],
        "min": lambda: min(values),
        "max": lambda: max(values),
    }[kind]()
    if abs(value) > 2**40:
        raise ArithmeticError
    return value


def main():
    rng = random.Random(int(sys.argv[1]))
    written = 0
    print("module {")
    while written < int(sys.argv[2]):
        expr = generate(rng, rng.randrange(1, 6))
        symbols = [rng.randrange(0, 300) for _ in range(NUM_SYMBOLS)]
        try:
            value = evaluate(expr, symbols)
        except ArithmeticError:
            continue
        values = ", ".join(map(str, symbols))
        print(f"  // expected-remark@+1 {{{{value {value}, }}}}")
        print(f'  "t.e"() {{expr = #pgkp.expr<{text(expr)}>, at = array<i64: {values}>}} : () -> ()')
        written += 1
    print("}")


main()
