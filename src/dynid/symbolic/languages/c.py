"""C: one header of `static inline` functions without allocation, for one sample or several in vector registers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from math import factorial
from typing import TYPE_CHECKING, Literal

import numpy as np

from dynid.errors import ModelError
from dynid.symbolic.functions import Function
from dynid.symbolic.languages.c_online import online_update
from dynid.symbolic.languages.c_text import (
    about_comment,
    c_number,
    function_text,
    number_table,
    paired_angles,
    parameter_tables,
    scalar_function,
)
from dynid.symbolic.languages.stored_states import STATE_COUNT, stored
from dynid.symbolic.languages.text import Spelling, Statements, exact, identifier

if TYPE_CHECKING:
    from dynid.symbolic.program import Program


_OBSERVER_TEXT = """\
/* State of the momentum observer. external: estimated external torques. integral: integral of known and external
   torques. known: known torques of the previous sample. */
typedef struct {{
  {real} external[{n}], integral[{n}], known[{n}];
  int started;
}} {name}_observer;

/* Reset the observer before the first sample and after a gap. */
static inline void {name}_observer_start({name}_observer *state)
{{
  for (int j = 0; j < {n}; ++j) state->external[j] = state->integral[j] = state->known[j] = 0;
  state->started = 0;
}}

/* Process a sample: motion and motor torques tau. gain: 1/s of each joint, h: seconds since the previous sample.
   external: estimated external joint torques after a low-pass filter with the time constant 1 / gain. */
static inline void {name}_observer_update({name}_observer *state, {arguments}, const {real} tau[{n}],
                                          const {real} gain[{n}], {real} h, {real} external[{n}])
{{
  {real} p_m[{n}], beta[{n}], f[{n}];
  {name}_momentum({momentum}, p_m, beta);
  {name}_friction({friction}, f);
  for (int j = 0; j < {n}; ++j) {{
    const {real} known = tau[j] - f[j] + beta[j];
    if (state->started) {{
      const {real} middle = h * ({half} * (known + state->known[j]));
      state->external[j] = gain[j] * (p_m[j] - state->integral[j] - middle) / (1 + gain[j] * h);
      state->integral[j] += middle + h * state->external[j];
    }} else {{
      state->integral[j] = p_m[j];
    }}
    state->known[j] = known;
    external[j] = state->external[j];
  }}
  state->started = 1;
}}
"""
LARGEST = {"double": "1e5", "float": "5e3"}  # rad: beyond it the reduction by multiples of pi/2 loses digits
_PI_FRACTION = Fraction(3141592653589793238462643383279502884197169399375105820974944592, 10 ** 63)
_LANES = {"sign": "({real})((x[k] > 0) - (x[k] < 0))", "abs": "fabs{f}(x[k])", "tanh": "tanh{f}(x[k])",
          "atan": "atan{f}(x[k])", "exp": "exp{f}(x[k])", "sqrt": "sqrt{f}(x[k])", "pow": "pow{f}(x[k], y[k])",
          "atan2": "atan2{f}(x[k], y[k])", "max": "fmax{f}(x[k], y[k])",
          "min": "fmin{f}(x[k], y[k])", "greater": "({real})(x[k] > y[k])",
          "where": "x[k] != 0 ? y[k] : z[k]"}


def header(program: Program, real: Literal["double", "float"] = "double", batch: int = 1) -> str:
    """Return the text of the C header."""
    if real not in ("double", "float"):
        raise ModelError(f"the number type in C is 'double' or 'float', not '{real}'")
    if batch not in (1, 4, 8):
        raise ModelError(f"the batch size of generated C code is 1, 4 or 8 samples, not {batch}", code="wrong-batch")
    if batch > 1 and (program.online or program.observer):
        what = "online update" if program.online else "momentum observer"
        raise ModelError(f"the {what} processes one sample at a time, not {batch}", code="one-sample-at-a-time")
    name = identifier(program.name)
    guard = f"{name.upper()}_{real.upper()}{batch if batch > 1 else ''}_H"
    parts = [_about(program, name, real, batch), f"#ifndef {guard}\n#define {guard}\n\n#include <math.h>\n"]
    kind: str = real
    if batch > 1:
        kind = f"{name}_vector"
        parts.append(vectors(program.functions, name, real, batch))
    parts.append(parameter_tables(program, name, real))
    functions = [_function(function, name, kind, real, batch) for function in program.functions]
    if any(f"{name}_sines(" in text for text in functions):
        parts.append(sines(name, real))
    parts += functions
    if program.online:
        parts.append(online_update(program.function("regressor"), name, real, program.plan.dof, len(program.numbers)))
    if program.observer:
        parts.append(momentum_observer(program.functions, name, real, program.plan.dof))
    parts.append(_self_test(program, name, kind, real, batch))
    parts.append(f"#endif /* {guard} */\n")
    return "\n".join(parts)


def _about(program: Program, name: str, real: str, batch: int) -> str:
    lines = []
    if batch > 1:
        lines.append(f"Every value is a vector of {batch} samples. Angles up to {LARGEST[real]} rad.")
        lines += _flags(batch * (8 if real == "double" else 4))
    return about_comment(program, name, real, [*lines, "No function allocates, keeps state or can fail. sign(0) is 0."])


def _flags(size: int) -> list[str]:
    """Return compiler options for x86-64 that enable vector registers of `size` bytes; 16 is the compilers' default."""
    wanted = {32: "-mavx2 -mfma", 64: "-mavx512f"}.get(size)
    return [] if wanted is None else [f"On x86-64 compile with {wanted} (or -march=native) for wide registers: -O2 "
                                      "alone uses those of 16 bytes, which contain fewer samples."]


def _function(function: Function, name: str, kind: str, real: str, batch: int) -> str:
    """Return a generated function in C, for one state or for `batch` states in vector registers."""
    def output(text: str, is_number: bool) -> str:
        return f"{name}_all({text})" if batch > 1 and is_number else text

    return function_text(function, Statements(function, _spelling(name, kind, real, batch)),
                         f"static inline void {name}_{function.name}", kind, output)


def _spelling(name: str, kind: str, real: str, batch: int) -> Spelling:
    def number(value: float) -> str:
        return c_number(value, real)

    def vector(function: str, of: Sequence[str]) -> str:
        lifted = [f"{name}_all({x})" if re.fullmatch(r"-?[0-9.]+(e[-+]?[0-9]+)?f?", x) else x for x in of]
        return f"{name}_v{function}({', '.join(lifted)})"

    def angles(of: Sequence[str], first: int) -> tuple[list[str], list[tuple[str, str]]]:
        if batch > 1:
            return paired_angles(name, kind, of, first)
        size = -(-len(of) // lanes(real)) * lanes(real)
        lines = [f"const {real} angle[{size}] = {{{', '.join(of)}}};", f"{real} sine[{size}], cosine[{size}];",
                 f"{name}_sines(angle, sine, cosine, {size});"]
        return lines, [(f"sine[{k}]", f"cosine[{k}]") for k in range(len(of))]

    return Spelling(number, lambda symbol: symbol, scalar_function(real) if batch == 1 else vector,
                    lambda left, right: f"const {kind} {left} = {right};", angles, always=batch > 1)


# -- self-test -----------------------------------------------------------------------------------
def _self_test(program: Program, name: str, kind: str, real: str, batch: int) -> str:
    """Return a C function that computes the largest relative error of all outputs at stored states."""
    lines = ["/* Largest error at stored states, relative to the largest value of each result. */",
             f"static inline {real} {name}_self_test(void)", "{", f"  {real} worst = 0;"]
    for function, (inputs, outputs) in zip(program.functions, stored(program, real), strict=True):
        lines.append("  {")
        for (one, size), values in zip(function.inputs, inputs, strict=True):
            lines.append(f"    static const {real} {one}_at[{STATE_COUNT}][{size}] = {number_table(values, real)};")
        for output, values in zip(function.outputs, outputs, strict=True):
            stored_type = f"static const {real} {output.name}_is[{STATE_COUNT}][{len(output.values)}]"
            lines.append(f"    {stored_type} = {number_table(values, real)};")
        lines += [f"    {real} {output.name}_largest = 0, {output.name}_error = 0;" for output in function.outputs]
        lines.append(f"    for (int i = 0; i < {STATE_COUNT}; ++i) {{")
        lines += [f"      {kind} {one}[{size}];" for one, size in function.inputs]
        lines += [f"      {kind} {output.name}[{len(output.values)}];" for output in function.outputs]
        spread = f"{name}_all({{0}})" if batch > 1 else "{0}"
        for one, size in function.inputs:
            lines.append(f"      for (int k = 0; k < {size}; ++k) {one}[k] = {spread.format(f'{one}_at[i][k]')};")
        names = [one for one, _ in function.inputs] + [output.name for output in function.outputs]
        lines.append(f"      {name}_{function.name}({', '.join(names)});")
        lane = f"[{batch - 1}]" if batch > 1 else ""
        f = "f" if real == "float" else ""
        for output in function.outputs:
            one = output.name
            lines += [f"      for (int k = 0; k < {len(output.values)}; ++k) {{",
                      f"        {one}_largest = fmax{f}({one}_largest, fabs{f}({one}_is[i][k]));",
                      f"        const {real} error = fabs{f}({one}[k]{lane} - {one}_is[i][k]);",
                      f"        {one}_error = error <= {one}_error ? {one}_error : error;", "      }"]
        lines.append("    }")
        for one in (output.name for output in function.outputs):
            lines += [f"    if ({one}_largest > 0) {one}_error /= {one}_largest;",
                      f"    worst = {one}_error <= worst ? worst : {one}_error;"]
        lines.append("  }")
    return "\n".join([*lines, "  return worst;", "}"]) + "\n"


def momentum_observer(functions: Sequence[Function], name: str, real: str, joints: int) -> str:
    """Return the C functions of the momentum observer; functions: must include momentum and friction."""
    momentum, friction = (next(f for f in functions if f.name == one) for one in ("momentum", "friction"))
    sizes = dict([*momentum.inputs, *friction.inputs])
    if "ddq" in sizes:
        raise ModelError("the momentum observer has no accelerations as input, but load-dependent friction needs them",
                         "leave out 'observer', or use a model without load-dependent friction",
                         code="load-dependent-friction")
    order = [one for one in ("q", "q_follow", "dq", "memory", "p") if one in sizes]
    return _OBSERVER_TEXT.format(name=name, real=real, n=joints, half="0.5f" if real == "float" else "0.5",
                        arguments=", ".join(f"const {real} {one}[{sizes[one]}]" for one in order),
                        momentum=", ".join(one for one, _ in momentum.inputs),
                        friction=", ".join(one for one, _ in friction.inputs))


def _types(name: str, real: str, size: int) -> list[str]:
    """Return the C declarations of vector types of `size` bytes, of real numbers and of integers of the same width."""
    whole = "long long" if real == "double" else "int"
    return [f"typedef {real} {name}_vector __attribute__((vector_size({size})));",
            f"typedef {whole} {name}_whole __attribute__((vector_size({size})));"]


def lanes(real: str) -> int:
    """Return how many real numbers a vector register of 16 bytes holds."""
    return 2 if real == "double" else 4


def sines(name: str, real: str) -> str:
    """Return a C function that computes sines and cosines of an array of angles. It uses vector registers if the
    processor has them, and the standard library otherwise and for large angles."""
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
    """Return the C vector type of several samples and its functions, which the compiler keeps in vector registers."""
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
    """Return the lines of a C function for sine and cosine of x = j pi/2 + r, |r| <= pi/4, by Taylor series in r."""
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
    """Return pi/2 as a sum of terms, all but the last with few enough bits for an exact product with an integer."""
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
