"""Text common to C and CUDA headers: comments, numbers, tables, functions of the standard library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynid.arrays import Array
from dynid.escape import c_comment, c_string
from dynid.model.term_capabilities import term_name
from dynid.symbolic.functions import Function
from dynid.symbolic.languages.text import Statements, exact
from dynid.symbolic.numbers import of_the_log

if TYPE_CHECKING:
    from dynid.symbolic.program import Program

_MAX_LINE_LENGTH = 110  # characters of a line of numbers
_LIBRARY_NAMES = {"abs": "fabs", "max": "fmax", "min": "fmin"}


def about_comment(program: Program, name: str, real: str, notes: Sequence[str]) -> str:
    """Return the comment at the head of a C or CUDA file: robot, joints, units, parameters, and the given notes."""
    model = program.plan.model
    joints = ", ".join(f"{k} {joint}" for k, joint in enumerate(model.joint_names))
    what = {"fixed": "The parameter values are constants in the code.",
            "base": f"p: the {len(program.numbers)} numbers of {name}_p_names.",
            "full": f"p: {len(program.numbers)} numbers that {name}_prepare computes from the model's parameters."}
    lines = [f"{name}: dynamics of robot '{model.robot.name}', {model.dof} joints, in {real}.",
             f"Joints: {joints}.", "Units: rad, m, s, kg, N m, N.", what[program.mode]]
    if program.plan.follow:
        followers = model.robot.followers
        assert followers is not None
        names = ", ".join(f"{k} {one}" for k, one in enumerate(followers.following))
        lines.append(f"Joints that depend on loops: {names}; " + (
            "solved in closed form, on the branch of the robot's posture; where the loops cannot be closed, NaN."
            if program.plan.solved else "their positions are the input q_follow."))
    left_out = [term_name(term) for term in of_the_log(model)]
    if left_out:
        lines.append(f"Not included, because it belongs to a log and not to the robot: {', '.join(left_out)}.")
    if program.provenance:
        lines.append(program.provenance)
    return "/* " + "\n   ".join(map(c_comment, [*lines, *notes])) + " */"


def parameter_tables(program: Program, name: str, real: str) -> str:
    """Return the declarations of the number of joints, of the names of the parameters p of generated functions, and of
    the matrix or function that computes p from the model's parameters."""
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
        rows = ",\n".join("  {" + _wrapped([c_number(x, real) for x in row]).strip() + "}" for row in program.matrix)
        text.append(f"static const {real} {name}_p_matrix[{len(names)}][{len(own)}] = {{\n{rows}}};")
        return "\n".join(text) + "\n"
    lines = [f"/* p of the functions, from the parameters theta of the model: {c_comment(' '.join(own))} */",
             f"static inline void {name}_prepare(const {real} theta[{len(own)}], {real} p[{len(names)}])", "{"]
    for k, row in enumerate(program.matrix):
        terms: list[str] = []
        for c in np.flatnonzero(row):
            size_text = "" if abs(row[c]) == 1.0 else f"{c_number(abs(row[c]), real)}*"
            sign = "- " if row[c] < 0 else "+ "
            terms.append(f"{sign if terms else sign.strip().replace('+', '')}{size_text}theta[{c}]")
        lines.append(f"  p[{k}] = {' '.join(terms) or c_number(0.0, real)};")
    return "\n".join([*text, *lines, "}"]) + "\n"


def function_text(function: Function, statements: Statements, head: str, kind: str,
                  output_text: Callable[[str, bool], str] = lambda text, is_number: text) -> str:
    """Return a function in C.

    Args:
        function: the function to write.
        statements: its statements in C.
        head: type and name, before the arguments.
        kind: type of its arguments.
        output_text: returns the expression of an output, given its text and whether the output is a constant.
    """
    arguments = [f"const {kind} {one}[{size}]" for one, size in function.inputs]
    arguments += [f"{kind} {output.name}[{len(output.values)}]" for output in function.outputs]
    shapes = "; ".join(f"{output.name} ({' x '.join(map(str, output.shape))})" for output in function.outputs)
    lines = [f"/* {c_comment(f'{function.about} {shapes}. {function.operations}.')} */",
             f"{head}({', '.join(arguments)})", "{"]
    lines += [f"  (void){one};" for one, _ in function.inputs if one not in statements.inputs]
    lines += [f"  {line}" for line in statements.lines]
    texts = iter(statements.outputs)
    lines += [f"  {output.name}[{k}] = {output_text(next(texts), value.number is not None)};"
              for output in function.outputs for k, value in enumerate(output.values)]
    return "\n".join([*lines, "}"]) + "\n"


def _wrapped(items: list[str]) -> str:
    lines, line = [], " "
    for k, item in enumerate(items):
        piece = f" {item}{',' if k + 1 < len(items) else ''}"
        if len(line) + len(piece) > _MAX_LINE_LENGTH:
            lines.append(line)
            line = " "
        line += piece
    return "\n".join([*lines, line])


def c_number(value: float, real: str) -> str:
    """Return a number in C syntax, exact in double."""
    return exact(value) + ("f" if real == "float" else "")


def number_table(values: Array, real: str) -> str:
    """Return rows of numbers as a C array initialiser, in braces."""
    rows = ["{" + ", ".join(c_number(float(x), real) for x in row) + "}" for row in values]
    return "{\n      " + ",\n      ".join(rows) + "}"


def paired_angles(name: str, kind: str, of: Sequence[str], first: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Return lines that compute sine and cosine of each angle in one call, and the names of the two variables of each
    angle. kind: type of these variables. first: number of earlier angles."""
    pairs = [(f"s{k}", f"c{k}") for k in range(first, first + len(of))]
    calls = zip(of, pairs, strict=True)
    return [f"{kind} {s}, {c}; {name}_sincos({angle}, &{s}, &{c});" for angle, (s, c) in calls], pairs


def scalar_function(real: str) -> Callable[[str, Sequence[str]], str]:
    """Return a function that writes the call of a graph function in C, from its name and the texts of its arguments."""
    suffix, zero, one = "f" if real == "float" else "", c_number(0.0, real), c_number(1.0, real)

    def text(function: str, of: Sequence[str]) -> str:
        if function == "sign":
            return f"({real})(({of[0]} > {zero}) - ({of[0]} < {zero}))"
        if function == "greater":
            return f"({of[0]} > {of[1]} ? {one} : {zero})"
        if function == "where":
            return f"({of[0]} != {zero} ? {of[1]} : {of[2]})"
        return f"{_LIBRARY_NAMES.get(function, function)}{suffix}({', '.join(of)})"

    return text
