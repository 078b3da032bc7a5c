"""Writer of generated functions as a Rust module without the standard library, for `#![no_std]` crates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from dynid.errors import ModelError
from dynid.escape import comment, rust_string
from dynid.symbolic.functions import Function, split
from dynid.symbolic.languages.stored_states import STATE_COUNT, stored
from dynid.symbolic.languages.text import Spelling, Statements, exact, identifier, prepared_rows

if TYPE_CHECKING:
    from dynid.symbolic.program import Program

_LIBRARY = {"sin": 1, "cos": 1, "tanh": 1, "atan": 1, "exp": 1, "sqrt": 1, "pow": 2, "atan2": 2}  # of C, by arguments
_SELF_TEST = """\
/// Largest error at stored states, relative to the largest value of each result.
pub fn self_test() -> {real} {{
    let mut worst: {real} = 0.0;
{blocks}    worst
}}

fn error(found: &[{real}], wanted: &[{real}], largest: {real}) -> {real} {{
    let mut error: {real} = 0.0;
    for (a, b) in found.iter().zip(wanted) {{
        let difference = if a > b {{ a - b }} else {{ b - a }};
        if !(difference <= error) {{
            error = difference;
        }}
    }}
    if largest > 0.0 {{ error / largest }} else {{ error }}
}}
"""


def module(program: Program, real: Literal["double", "float"] = "double") -> str:
    """Return the text of the Rust module."""
    if real not in ("double", "float"):
        raise ModelError(f"the number type in Rust is 'double' or 'float', not '{real}'")
    kind = "f64" if real == "double" else "f32"
    name, model = identifier(program.name), program.plan.model
    about = f"{name}: dynamics of a robot with {model.dof} joints, in SI units. {program.provenance}".rstrip()
    used = sorted({node.kind for function in program.functions for node in (
        function.graph.nodes[k] for k in function.graph.live(function.values))} & set(_LIBRARY))
    lines = [f"// {comment(about)}", f"// {comment('Joints: ' + ', '.join(model.joint_names))}.",
             "// No function allocates, keeps state or can fail. sin, cos and the like are those of the C library.",
             "#![allow(clippy::all, dead_code, unused_parens)]", "", *_library(used, kind, real),
             f"pub const JOINTS: usize = {model.dof};"]
    if program.mode != "fixed":
        names = ", ".join(map(rust_string, program.parameter_names))
        lines += [f"pub const P_NAMES: [&str; {len(program.numbers)}] = [{names}];", "",
                  "/// The parameters p of the functions, from the parameters theta of the model.",
                  f"pub fn prepare(theta: &[{kind}; {len(model.parameters)}]) -> [{kind}; {len(program.numbers)}] {{",
                  "    [", *prepared_rows(program.matrix, "{} * theta[{}]"), "    ]", "}"]
    for function in program.functions:
        lines += ["", *_function(function, kind)]
    return "\n".join([*lines, "", *_self_test(program, real, kind)]) + "\n"


def _library(used: Sequence[str], kind: str, real: str) -> list[str]:
    """Return the lines that bind the used functions of the C library, which keep no state."""
    if not used:
        return []
    suffix = "f" if real == "float" else ""
    signs = {one: ", ".join(f"{x}: {kind}" for x in "xy"[:_LIBRARY[one]]) for one in used}
    lines = ["mod library {", "    #[allow(unused_unsafe)]", "    mod linked {", '        extern "C" {']
    lines += [f"            pub fn {one}{suffix}({signs[one]}) -> {kind};" for one in used]
    lines += ["        }", "    }"]
    lines += [f"    #[inline(always)]\n    pub fn {one}({signs[one]}) -> {kind} {{\n        unsafe {{ "
              f"linked::{one}{suffix}({', '.join('xy'[:_LIBRARY[one]])}) }}\n    }}" for one in used]
    return [*lines, "}", ""]


def _function(function: Function, kind: str) -> list[str]:
    statements = Statements(function, _spelling(kind))
    sizes = [len(output.values) for output in function.outputs]
    arguments = [f"{'' if one in statements.inputs else '_'}{one}: &[{kind}; {size}]" for one, size in function.inputs]
    results = [f"[{kind}; {size}]" for size in sizes]
    shapes = "; ".join(f"{output.name} ({' x '.join(map(str, output.shape))})" for output in function.outputs)
    found = [f"[{', '.join(own)}]" for own in split(function.outputs, statements.outputs)]
    result, value = (", ".join(x) if len(sizes) == 1 else f"({', '.join(x)})" for x in (results, found))
    return [f"/// {comment(f'{function.about} {shapes}. {function.operations}.')}",
            f"pub fn {function.name}({', '.join(arguments)}) -> {result} {{",
            *(f"    {line}" for line in statements.lines), f"    {value}", "}"]


def _spelling(kind: str) -> Spelling:
    def text(function: str, of: Sequence[str]) -> str:
        match function:
            case "sign":
                return f"(({of[0]} > 0.0) as i32 - ({of[0]} < 0.0) as i32) as {kind}".join("()")
            case "greater":
                return f"(if {of[0]} > {of[1]} {{ 1.0 }} else {{ 0.0 }})"
            case "where":
                return f"(if {of[0]} != 0.0 {{ {of[1]} }} else {{ {of[2]} }})"
            case "abs" | "max" | "min":
                rest = ", ".join(of[1:])
                return f"({of[0]} as {kind}).{function}({rest})"
            case _:
                return f"library::{function}({', '.join(of)})"

    return Spelling(exact, lambda symbol: symbol, text, lambda left, right: f"let {left}: {kind} = {right};")


def _self_test(program: Program, real: str, kind: str) -> list[str]:
    blocks = []
    for function, (inputs, outputs) in zip(program.functions, stored(program, real), strict=True):
        largest = [float(np.abs(values).max(initial=0.0)) for values in outputs]
        for i in range(STATE_COUNT):
            arguments = ", ".join(f"&[{_row(values[i])}]" for values in inputs)
            names = [f"{output.name.lower()}_found" for output in function.outputs]
            bound = names[0] if len(names) == 1 else f"({', '.join(names)})"
            blocks.append(f"    let {bound} = {function.name}({arguments});")
            for one, values, size in zip(names, outputs, largest, strict=True):
                blocks.append(f"    let e = error(&{one}, &[{_row(values[i])}], {exact(size)});")
                blocks.append("    worst = if e <= worst { worst } else { e };")
    return [_SELF_TEST.format(real=kind, blocks="".join(f"{line}\n" for line in blocks)).rstrip("\n")]


def _row(values: np.ndarray) -> str:
    return ", ".join(exact(float(x)) for x in values)
