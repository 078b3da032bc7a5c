"""C: one header of `static inline` functions without allocation, for one sample a call or several side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.escape import c_comment, c_string
from dynid.symbolic.functions import Function
from dynid.symbolic.languages.c_online import online_update
from dynid.symbolic.languages.c_vectors import LARGEST, lanes, sines, vectors
from dynid.symbolic.languages.text import Spelling, Statements, exact, identifier
from dynid.symbolic.numbers import of_the_log

if TYPE_CHECKING:
    from dynid.symbolic.program import Program

_WIDTH = 110  # characters of a line of numbers
_SELF_TEST_STATES = 3  # of the self-test


def header(program: Program, real: Literal["double", "float"] = "double", batch: int = 1) -> str:
    """The text of the header."""
    if real not in ("double", "float"):
        raise ModelError(f"the number type in C is 'double' or 'float', not '{real}'")
    if batch not in (1, 4, 8):
        raise ModelError(f"the batch size is 1, 4 or 8 samples, not {batch}")
    if batch > 1 and program.online:
        raise ModelError(f"the online update processes one sample at a time, not {batch}")
    name = identifier(program.name)
    guard = f"{name.upper()}_{real.upper()}{batch if batch > 1 else ''}_H"
    parts = [_about(program, name, real, batch), f"#ifndef {guard}\n#define {guard}\n\n#include <math.h>\n"]
    kind: str = real
    if batch > 1:
        kind = f"{name}_vector"
        parts.append(vectors(program.functions, name, real, batch))
    parts.append(_tables(program, name, real))
    functions = [_function(function, name, kind, real, batch) for function in program.functions]
    if any(f"{name}_sines(" in text for text in functions):
        parts.append(sines(name, real))
    parts += functions
    if program.online:
        parts.append(online_update(program.function("regressor"), name, real, program.plan.dof, len(program.numbers)))
    parts.append(_self_test(program, name, kind, real, batch))
    parts.append(f"#endif /* {guard} */\n")
    return "\n".join(parts)


def _about(program: Program, name: str, real: str, batch: int) -> str:
    model = program.plan.model
    joints = ", ".join(f"{k} {joint}" for k, joint in enumerate(model.joint_names))
    what = {"fixed": "The parameter values are constants in the code.",
            "base": f"p: the {len(program.numbers)} numbers of {name}_p_names.",
            "full": f"p: {len(program.numbers)} numbers that {name}_prepare computes from the model's parameters."}
    lines = [f"{name}: dynamics of robot '{model.robot.name}', {model.dof} joints, in {real}.",
             f"Joints: {joints}.", "Units: rad, m, s, kg, N m, N.", what[program.mode]]
    if batch > 1:
        lines.append(f"Every value is a vector of {batch} samples. Angles up to {LARGEST[real]} rad.")
        lines += _flags(batch * (8 if real == "double" else 4))
    if program.plan.follow:
        followers = model.robot.followers
        assert followers is not None
        names = ", ".join(f"{k} {one}" for k, one in enumerate(followers.following))
        lines.append(f"Joints that depend on loops: {names}; " + (
            "solved in closed form, on the branch of the robot's posture; where the loops cannot be closed, NaN."
            if program.plan.solved else "their positions are the input q_follow."))
    left_out = [getattr(term, "kind", type(term).__name__) for term in of_the_log(model)]
    if left_out:
        lines.append(f"Not included, because it belongs to a log and not to the robot: {', '.join(left_out)}.")
    if program.provenance:
        lines.append(program.provenance)
    lines.append("No function allocates, keeps state or can fail. sign(0) is 0.")
    return "/* " + "\n   ".join(map(c_comment, lines)) + " */"


def _flags(size: int) -> list[str]:
    """What a compiler for x86-64 wants for registers of `size` bytes: without it takes those of 16."""
    wanted = {32: "-mavx2 -mfma", 64: "-mavx512f"}.get(size)
    return [] if wanted is None else [f"On x86-64 compile with {wanted} (or -march=native) for wide registers: -O2 "
                                      "alone uses those of 16 bytes, which contain fewer samples."]


def _tables(program: Program, name: str, real: str) -> str:
    model, text = program.plan.model, [f"enum {{ {name}_joints = {program.plan.model.dof} }};"]
    if program.mode == "fixed":
        return text[0] + "\n"
    names = program.parameter_names
    size = max(len(one.encode(errors="surrogatepass")) for one in names) + 1
    text.append(f"enum {{ {name}_p_count = {len(names)} }};")
    text.append(f"static const char {name}_p_names[{len(names)}][{size}] = {{\n"
                + _wrapped(list(map(c_string, names))) + "};")
    own = model.parameters.names
    text.append(f"enum {{ {name}_parameter_count = {len(own)} }};")
    if program.mode == "base":
        text.append(f"/* p = matrix theta, theta the model's parameters: {c_comment(' '.join(own))} */")
        rows = ",\n".join("  {" + _wrapped([_number(x, real) for x in row]).strip() + "}" for row in program.matrix)
        text.append(f"static const {real} {name}_p_matrix[{len(names)}][{len(own)}] = {{\n{rows}}};")
        return "\n".join(text) + "\n"
    lines = [f"/* The numbers p of the model's parameters theta: {c_comment(' '.join(own))} */",
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
    lines = [f"/* {c_comment(f'{function.about} {shapes}. {function.operations}.')} */",
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

    def angles(of: Sequence[str], first: int) -> tuple[list[str], list[tuple[str, str]]]:
        if batch > 1:
            pairs = [(f"s{k}", f"c{k}") for k in range(first, first + len(of))]
            return [f"{kind} {s}, {c}; {name}_sincos({angle}, &{s}, &{c});"
                    for angle, (s, c) in zip(of, pairs, strict=True)], pairs
        size = -(-len(of) // lanes(real)) * lanes(real)
        lines = [f"const {real} angle[{size}] = {{{', '.join(of)}}};", f"{real} sine[{size}], cosine[{size}];",
                 f"{name}_sines(angle, sine, cosine, {size});"]
        return lines, [(f"sine[{k}]", f"cosine[{k}]") for k in range(len(of))]

    return Spelling(number, lambda symbol: symbol, scalar if batch == 1 else vector,
                    lambda left, right: f"const {kind} {left} = {right};", angles, always=batch > 1)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[0-9.]+(e[-+]?[0-9]+)?f?", text) is not None


# -- self-test -----------------------------------------------------------------------------------
def _self_test(program: Program, name: str, kind: str, real: str, batch: int) -> str:
    """A function that returns the largest error, relative to the largest entry of each output, at stored states."""
    lines = ["/* Largest error at stored states, relative to the largest value of each result. */",
             f"static inline {real} {name}_self_test(void)", "{", f"  {real} worst = 0;"]
    for function, (inputs, outputs) in zip(program.functions, _stored(program, real), strict=True):
        lines.append("  {")
        for (one, size), values in zip(function.inputs, inputs, strict=True):
            lines.append(f"    static const {real} {one}_at[{_SELF_TEST_STATES}][{size}] = {_table(values, real)};")
        for output, values in zip(function.outputs, outputs, strict=True):
            size = int(np.prod(output.shape))
            lines.append(
                f"    static const {real} {output.name}_is[{_SELF_TEST_STATES}][{size}] = {_table(values, real)};"
            )
        lines += [f"    {real} {output.name}_largest = 0, {output.name}_error = 0;" for output in function.outputs]
        lines.append(f"    for (int i = 0; i < {_SELF_TEST_STATES}; ++i) {{")
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
            lines += [f"      for (int k = 0; k < {int(np.prod(output.shape))}; ++k) {{",
                      f"        {one}_largest = fmax{f}({one}_largest, fabs{f}({one}_is[i][k]));",
                      f"        const {real} error = fabs{f}({one}[k]{lane} - {one}_is[i][k]);",
                      f"        {one}_error = error <= {one}_error ? {one}_error : error;", "      }"]
        lines.append("    }")
        for one in (output.name for output in function.outputs):
            lines += [f"    if ({one}_largest > 0) {one}_error /= {one}_largest;",
                      f"    worst = {one}_error <= worst ? worst : {one}_error;"]
        lines.append("  }")
    return "\n".join([*lines, "  return worst;", "}"]) + "\n"


def _stored(program: Program, real: str) -> list[tuple[list[Array], list[Array]]]:
    """Inputs and outputs of each function at a few states, with the program's own numbers where it has such. Inputs are
    numbers that `real` has, so that only the function's own rounding counts."""
    from dynid.symbolic.languages.python import compiled
    rng = np.random.default_rng(0)
    count = len(program.numbers)
    own = None if program.values is None else program.matrix @ program.values
    found = []
    for function in program.functions:
        inputs = []
        for one, size in function.inputs:
            values = rng.uniform(-1.0, 1.0, (_SELF_TEST_STATES, size))
            if one == "p":
                values = np.tile(own, (_SELF_TEST_STATES, 1)) if own is not None else _lively(rng, count)
            elif program.plan.follow and one in ("q", "q_follow"):
                dof = program.plan.dof
                at = program.plan.closed_postures[:_SELF_TEST_STATES]
                values = at[:, :dof] if one == "q" else at[:, dof:]
            inputs.append(values.astype(np.float32).astype(float) if real == "float" else values)
        outputs = [values.reshape(_SELF_TEST_STATES, -1) for values in compiled(program)[function.name](*inputs)]
        found.append((inputs, outputs))
    return found


def _lively(rng: np.random.Generator, count: int) -> Array:
    return np.tile(rng.uniform(0.5, 1.5, count), (_SELF_TEST_STATES, 1))


def _table(values: Array, real: str) -> str:
    rows = ["{" + ", ".join(_number(float(x), real) for x in row) + "}" for row in values]
    return "{\n      " + ",\n      ".join(rows) + "}"
