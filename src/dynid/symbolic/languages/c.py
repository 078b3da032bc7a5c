"""C: one header of `static inline` functions without allocation, for one sample a call or several side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from math import factorial
from typing import TYPE_CHECKING, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.symbolic.functions import Function
from dynid.symbolic.languages.text import Spelling, Statements, exact, identifier

if TYPE_CHECKING:
    from dynid.symbolic.program import Program

_WIDTH = 110  # characters of a line of numbers
_PI = Fraction(3141592653589793238462643383279502884197169399375105820974944592, 10 ** 63)
_STATES = 3  # of the self-test


def header(program: Program, real: Literal["double", "float"] = "double", batch: int = 1) -> str:
    """The text of the header."""
    if real not in ("double", "float"):
        raise ModelError(f"numbers in C are 'double' or 'float', not '{real}'")
    if batch not in (1, 4, 8):
        raise ModelError(f"samples are taken 1, 4 or 8 at a time, not {batch}")
    name = identifier(program.name)
    guard = f"{name.upper()}_{real.upper()}{batch if batch > 1 else ''}_H"
    parts = [_about(program, name, real, batch), f"#ifndef {guard}\n#define {guard}\n\n#include <math.h>\n"]
    kind: str = real
    if batch > 1:
        kind = f"{name}_vector"
        parts.append(_vectors(program, name, real, batch))
    parts.append(_tables(program, name, real))
    parts += [_function(function, name, kind, real, batch) for function in program.functions]
    parts.append(_self_test(program, name, kind, real, batch))
    parts.append(f"#endif /* {guard} */\n")
    return "\n".join(parts)


def _about(program: Program, name: str, real: str, batch: int) -> str:
    model = program.plan.model
    joints = ", ".join(f"{k} {joint}" for k, joint in enumerate(model.joint_names))
    what = {"fixed": "The parameters' values are folded in.",
            "base": f"p: the {len(program.numbers)} numbers of {name}_p_names.",
            "full": f"p: {len(program.numbers)} numbers that {name}_prepare makes of the model's parameters."}
    lines = [f"{name}: dynamics of robot '{model.robot.name}', {model.dof} joints, in {real}.",
             f"Joints: {joints}.", "Units: rad, m, s, kg, N m, N.", what[program.mode]]
    if batch > 1:
        lines.append(f"Every value is a vector of {batch} samples. Angles up to 1e5 rad.")
    if program.provenance:
        lines.append(program.provenance)
    lines.append("No function allocates, keeps state or can fail. sign(0) is 0.")
    return "/* " + "\n   ".join(line.replace("*/", "* /") for line in lines) + " */"


def _tables(program: Program, name: str, real: str) -> str:
    model, text = program.plan.model, [f"enum {{ {name}_joints = {program.plan.model.dof} }};"]
    if program.mode == "fixed":
        return text[0] + "\n"
    names = program.parameter_names
    size = max(map(len, names)) + 1
    text.append(f"enum {{ {name}_p_count = {len(names)} }};")
    text.append(f"static const char {name}_p_names[{len(names)}][{size}] = {{\n"
                + _wrapped([f'"{one}"' for one in names]) + "};")
    own = model.parameters.names
    text.append(f"enum {{ {name}_parameter_count = {len(own)} }};")
    if program.mode == "base":
        text.append(f"/* p = matrix theta, theta the model's parameters: {' '.join(own)} */")
        rows = ",\n".join("  {" + _wrapped([_number(x, real) for x in row]).strip() + "}" for row in program.matrix)
        text.append(f"static const {real} {name}_p_matrix[{len(names)}][{len(own)}] = {{\n{rows}}};")
        return "\n".join(text) + "\n"
    lines = [f"/* The numbers p of the model's parameters theta: {' '.join(own)} */",
             f"static inline void {name}_prepare(const {real} theta[{len(own)}], {real} p[{len(names)}])", "{"]
    for k, row in enumerate(program.matrix):
        terms: list[str] = []
        for c in np.flatnonzero(row):
            size_text = "" if abs(row[c]) == 1.0 else f"{_number(abs(row[c]), real)}*"
            sign = "- " if row[c] < 0 else "+ "
            terms.append(f"{sign if terms else sign.strip().replace('+', '')}{size_text}theta[{c}]")
        lines.append(f"  p[{k}] = {' '.join(terms) or _number(0.0, real)};")
    return "\n".join([*text, *lines, "}"]) + "\n"


def _wrapped(items: list[str]) -> str:
    lines, line = [], " "
    for k, item in enumerate(items):
        piece = f" {item}{',' if k + 1 < len(items) else ''}"
        if len(line) + len(piece) > _WIDTH:
            lines.append(line)
            line = " "
        line += piece
    return "\n".join([*lines, line])


def _number(value: float, real: str) -> str:
    return exact(value) + ("f" if real == "float" else "")


def _function(function: Function, name: str, kind: str, real: str, batch: int) -> str:
    statements = Statements(function, _spelling(name, kind, real, batch))
    arguments = [f"const {kind} {one}[{size}]" for one, size in function.inputs]
    arguments += [f"{kind} {output.name}[{int(np.prod(output.shape))}]" for output in function.outputs]
    shapes = "; ".join(f"{output.name} ({' x '.join(map(str, output.shape))})" for output in function.outputs)
    lines = [f"/* {function.about} {shapes}. {function.operations}. */",
             f"static inline void {name}_{function.name}({', '.join(arguments)})", "{"]
    lines += [f"  (void){one};" for one, _ in function.inputs if one not in statements.inputs]
    lines += [f"  {line}" for line in statements.lines]
    texts = iter(statements.outputs)
    for output in function.outputs:
        for k, value in enumerate(output.values):
            text = next(texts)
            if batch > 1 and value.number is not None:
                text = f"{name}_all({text})"
            lines.append(f"  {output.name}[{k}] = {text};")
    return "\n".join([*lines, "}"]) + "\n"


def _spelling(name: str, kind: str, real: str, batch: int) -> Spelling:
    suffix = "f" if real == "float" else ""
    plain = {"abs": "fabs", "max": "fmax", "min": "fmin"}

    def number(value: float) -> str:
        return _number(value, real)

    def scalar(function: str, of: Sequence[str]) -> str:
        zero, one = number(0.0), number(1.0)
        if function == "sign":
            return f"({real})(({of[0]} > {zero}) - ({of[0]} < {zero}))"
        if function == "greater":
            return f"({of[0]} > {of[1]} ? {one} : {zero})"
        if function == "where":
            return f"({of[0]} != {zero} ? {of[1]} : {of[2]})"
        return f"{plain.get(function, function)}{suffix}({', '.join(of)})"

    def vector(function: str, of: Sequence[str]) -> str:
        lifted = [f"{name}_all({x})" if _is_number(x) else x for x in of]
        return f"{name}_v{function}({', '.join(lifted)})"

    return Spelling(number, lambda symbol: symbol, scalar if batch == 1 else vector,
                    lambda left, right: f"const {kind} {left} = {right};",
                    None if batch == 1 else lambda angle, s, c: f"{kind} {s}, {c}; {name}_sincos({angle}, &{s}, &{c});")


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[0-9.]+(e[-+]?[0-9]+)?f?", text) is not None


# -- several samples side by side ----------------------------------------------------------------
_LANES = {"sign": "({real})((x[k] > 0) - (x[k] < 0))", "abs": "fabs{f}(x[k])", "tanh": "tanh{f}(x[k])",
          "atan": "atan{f}(x[k])", "exp": "exp{f}(x[k])", "sqrt": "sqrt{f}(x[k])", "pow": "pow{f}(x[k], y[k])",
          "max": "fmax{f}(x[k], y[k])", "min": "fmin{f}(x[k], y[k])", "greater": "({real})(x[k] > y[k])",
          "where": "x[k] != 0 ? y[k] : z[k]"}


def _vectors(program: Program, name: str, real: str, batch: int) -> str:
    """Types for several samples, with sine and cosine that the compiler keeps in vector registers."""
    size = batch * (8 if real == "double" else 4)
    whole = "long long" if real == "double" else "int"
    used = {node.kind for function in program.functions
            for node in (function.graph.nodes[k] for k in function.graph.live(function.values))}
    lines = [f"typedef {real} {name}_vector __attribute__((vector_size({size})));",
             f"typedef {whole} {name}_whole __attribute__((vector_size({size})));", "",
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
    """x = j pi/2 + r with |r| <= pi/4, then Taylor's series of both in r, exchanged and signed by j."""
    bits, parts, sine, cosine, sign = (33, 3, 15, 16, 62) if real == "double" else (12, 3, 9, 10, 30)
    magic = exact(1.5 * 2.0 ** (52 if real == "double" else 23))
    f = "f" if real == "float" else ""
    lines = [f"static inline void {name}_sincos({name}_vector x, {name}_vector *s, {name}_vector *c)", "{",
             f"  const {name}_vector t = x * {exact(float(2 / _PI))}{f} + {magic}{f};",
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
    """pi/2 as a sum, all but the last of few enough bits that a product with j is exact."""
    rest, found = _PI / 2, []
    for _ in range(parts - 1):
        value = float(rest)
        scale = 2.0 ** (bits - 1 - int(np.floor(np.log2(value))))
        value = float(np.floor(value * scale) / scale)
        found.append(value)
        rest -= Fraction(value)
    return [value.hex() for value in [*found, float(rest)]]


def _series(powers: range, f: str) -> str:
    """Coefficients of Taylor's series in r2, the lowest power first, nested."""
    text = ""
    for power in reversed(powers):
        coefficient = (1 if power % 4 in (0, 1) else -1) / factorial(power)
        text = f"{exact(coefficient)}{f}" if not text else f"{exact(coefficient)}{f} + r2 * ({text})"
    return text


# -- self-test -----------------------------------------------------------------------------------
def _self_test(program: Program, name: str, kind: str, real: str, batch: int) -> str:
    """A function that returns the largest error, relative to the largest entry of each output, at stored states."""
    lines = ["/* Largest error at stored states, relative to the largest value of each result. */",
             f"static inline {real} {name}_self_test(void)", "{", f"  {real} worst = 0;"]
    for function, (inputs, outputs) in zip(program.functions, _stored(program), strict=True):
        lines.append("  {")
        for (one, size), values in zip(function.inputs, inputs, strict=True):
            lines.append(f"    static const {real} {one}_at[{_STATES}][{size}] = {_table(values, real)};")
        for output, values in zip(function.outputs, outputs, strict=True):
            size = int(np.prod(output.shape))
            lines.append(f"    static const {real} {output.name}_is[{_STATES}][{size}] = {_table(values, real)};")
        lines.append(f"    for (int i = 0; i < {_STATES}; ++i) {{")
        lines += [f"      {kind} {one}[{size}];" for one, size in function.inputs]
        lines += [f"      {kind} {output.name}[{int(np.prod(output.shape))}];" for output in function.outputs]
        spread = f"{name}_all({{0}})" if batch > 1 else "{0}"
        for one, size in function.inputs:
            lines.append(f"      for (int k = 0; k < {size}; ++k) {one}[k] = {spread.format(f'{one}_at[i][k]')};")
        names = [one for one, _ in function.inputs] + [output.name for output in function.outputs]
        lines.append(f"      {name}_{function.name}({', '.join(names)});")
        lane = f"[{batch - 1}]" if batch > 1 else ""
        f = "f" if real == "float" else ""
        for output in function.outputs:
            one = output.name
            lines += [f"      {real} {one}_largest = 0, {one}_error = 0;",
                      f"      for (int k = 0; k < {int(np.prod(output.shape))}; ++k) {{",
                      f"        {one}_largest = fmax{f}({one}_largest, fabs{f}({one}_is[i][k]));",
                      f"        const {real} error = fabs{f}({one}[k]{lane} - {one}_is[i][k]);",
                      f"        {one}_error = error <= {one}_error ? {one}_error : error;", "      }",
                      f"      if ({one}_largest > 0) {one}_error /= {one}_largest;",
                      f"      worst = {one}_error <= worst ? worst : {one}_error;"]
        lines += ["    }", "  }"]
    return "\n".join([*lines, "  return worst;", "}"]) + "\n"


def _stored(program: Program) -> list[tuple[list[Array], list[Array]]]:
    """Inputs and outputs of each function at a few states, with the program's own numbers where it has such."""
    from dynid.symbolic.languages.python import compiled
    rng = np.random.default_rng(0)
    count = len(program.numbers)
    own = None if program.values is None else program.matrix @ program.values
    found = []
    for function in program.functions:
        inputs = []
        for one, size in function.inputs:
            values = rng.uniform(-1.0, 1.0, (_STATES, size))
            if one == "p":
                values = np.tile(own, (_STATES, 1)) if own is not None else _lively(rng, count)
            inputs.append(values)
        outputs = [values.reshape(_STATES, -1) for values in compiled(program)[function.name](*inputs)]
        found.append((inputs, outputs))
    return found


def _lively(rng: np.random.Generator, count: int) -> Array:
    return np.tile(rng.uniform(0.5, 1.5, count), (_STATES, 1))


def _table(values: Array, real: str) -> str:
    rows = ["{" + ", ".join(_number(float(x), real) for x in row) + "}" for row in values]
    return "{\n      " + ",\n      ".join(rows) + "}"
