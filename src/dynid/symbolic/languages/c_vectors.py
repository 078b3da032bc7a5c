"""Vectors in C: several samples per register, and sines and cosines of several angles at once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import factorial

import numpy as np

from dynid.symbolic.functions import Function
from dynid.symbolic.languages.text import exact

LARGEST = {"double": "1e5", "float": "5e3"}  # rad: beyond it the reduction by multiples of pi/2 loses digits
_PI_FRACTION = Fraction(3141592653589793238462643383279502884197169399375105820974944592, 10 ** 63)
_LANES = {"sign": "({real})((x[k] > 0) - (x[k] < 0))", "abs": "fabs{f}(x[k])", "tanh": "tanh{f}(x[k])",
          "atan": "atan{f}(x[k])", "exp": "exp{f}(x[k])", "sqrt": "sqrt{f}(x[k])", "pow": "pow{f}(x[k], y[k])",
          "atan2": "atan2{f}(x[k], y[k])", "max": "fmax{f}(x[k], y[k])",
          "min": "fmin{f}(x[k], y[k])", "greater": "({real})(x[k] > y[k])",
          "where": "x[k] != 0 ? y[k] : z[k]"}


def _types(name: str, real: str, size: int) -> list[str]:
    """Return vector types of `size` bytes, of numbers and of integers of the same width."""
    whole = "long long" if real == "double" else "int"
    return [f"typedef {real} {name}_vector __attribute__((vector_size({size})));",
            f"typedef {whole} {name}_whole __attribute__((vector_size({size})));"]


def lanes(real: str) -> int:
    """Return how many numbers a vector of 16 bytes holds."""
    return 2 if real == "double" else 4


def sines(name: str, real: str) -> str:
    """Return a function for sines and cosines of an array of angles. It uses vectors if the processor has them, and
    the standard library otherwise or for large angles."""
    f, width = "f" if real == "float" else "", lanes(real)
    small = " && ".join(f"fabs{f}(angle[k + {i}]) < {LARGEST[real]}{f}" for i in range(width))
    return "\n".join([
        "/* Their rounding would be lost by -ffast-math. */",
        "#if (defined(__SSE2__) || defined(__aarch64__)) && defined(__GNUC__) && !defined(__FAST_MATH__)",
        *_types(name, real, 16), "", *_sincos(name, real), "#endif", "",
        f"static inline void {name}_sines(const {real} *angle, {real} *s, {real} *c, int count)", "{", "  int k = 0;",
        "#if (defined(__SSE2__) || defined(__aarch64__)) && defined(__GNUC__) && !defined(__FAST_MATH__)",
        f"  for (; k < count && {small}; k += {width}) {{", f"    {name}_vector x, sine, cosine;",
        "    __builtin_memcpy(&x, angle + k, sizeof x);", f"    {name}_sincos(x, &sine, &cosine);",
        "    __builtin_memcpy(s + k, &sine, sizeof x);", "    __builtin_memcpy(c + k, &cosine, sizeof x);", "  }",
        "#endif", "  for (; k < count; ++k) {", f"    s[k] = sin{f}(angle[k]);", f"    c[k] = cos{f}(angle[k]);", "  }",
        "}", ""])


def vectors(functions: Sequence[Function], name: str, real: str, batch: int) -> str:
    """Return types for several samples, with sine and cosine that the compiler keeps in vector registers."""
    size = batch * (8 if real == "double" else 4)
    used = {node.kind for function in functions
            for node in (function.graph.nodes[k] for k in function.graph.live(function.values))}
    lines = [*_types(name, real, size), "",
             f"static inline {name}_vector {name}_all({real} x)", "{",
             f"  const {name}_vector zero = {{0}};", "  return zero + x;", "}", ""]
    if used & {"sin", "cos"}:
        lines += _sincos(name, real)
    for function, lane in _LANES.items():
        if function in used:
            count = 3 if function == "where" else 2 if "y[k]" in lane else 1
            arguments = ", ".join(f"{name}_vector {one}" for one in "xyz"[:count])
            body = lane.format(real=real, f="f" if real == "float" else "")
            lines += [f"static inline {name}_vector {name}_v{function}({arguments})", "{", f"  {name}_vector r;",
                      f"  for (int k = 0; k < {batch}; ++k) r[k] = {body};", "  return r;", "}", ""]
    return "\n".join(lines)


def _sincos(name: str, real: str) -> list[str]:
    """Return sine and cosine by x = j pi/2 + r with |r| <= pi/4, and Taylor series in r, exchanged and signed by j."""
    bits, parts, sine, cosine, sign = (33, 3, 15, 16, 62) if real == "double" else (12, 3, 9, 10, 30)
    magic = exact(1.5 * 2.0 ** (52 if real == "double" else 23))
    f = "f" if real == "float" else ""
    lines = [f"static inline void {name}_sincos({name}_vector x, {name}_vector *s, {name}_vector *c)", "{",
             f"  const {name}_vector t = x * {exact(float(2 / _PI_FRACTION))}{f} + {magic}{f};",
             f"  const {name}_vector j = t - {magic}{f};", f"  const {name}_whole n = ({name}_whole)t;",
             f"  const {name}_whole odd = -(n & 1);"]
    lines.append(f"  {name}_vector r = x - j * {_split(bits, parts)[0]}{f};")
    lines += [f"  r -= j * {part}{f};" for part in _split(bits, parts)[1:]]
    lines.append(f"  const {name}_vector r2 = r * r;")
    lines.append(f"  const {name}_vector a = r + r * r2 * ({_series(range(3, sine + 1, 2), f)});")
    lines.append(f"  const {name}_vector b = 1.0{f} - 0.5{f} * r2 + r2 * r2 * ({_series(range(4, cosine + 1, 2), f)});")
    lines.append(f"  const {name}_whole u = (({name}_whole)a & ~odd) | (({name}_whole)b & odd);")
    lines.append(f"  const {name}_whole v = (({name}_whole)b & ~odd) | (({name}_whole)a & odd);")
    lines.append(f"  *s = ({name}_vector)(u ^ ((n & 2) << {sign}));")
    lines.append(f"  *c = ({name}_vector)(v ^ (((n + 1) & 2) << {sign}));")
    return [*lines, "}", ""]


def _split(bits: int, parts: int) -> list[str]:
    """Return pi/2 as a sum whose terms, except the last, have few enough bits for an exact product with j."""
    rest, found = _PI_FRACTION / 2, []
    for _ in range(parts - 1):
        value = float(rest)
        scale = 2.0 ** (bits - 1 - int(np.floor(np.log2(value))))
        value = float(np.floor(value * scale) / scale)
        found.append(value)
        rest -= Fraction(value)
    return [value.hex() for value in [*found, float(rest)]]


def _series(powers: range, f: str) -> str:
    """Return the nested coefficients of a Taylor series in r2, the lowest power first."""
    text = ""
    for power in reversed(powers):
        coefficient = (1 if power % 4 in (0, 1) else -1) / factorial(power)
        text = f"{exact(coefficient)}{f}" if not text else f"{exact(coefficient)}{f} + r2 * ({text})"
    return text
