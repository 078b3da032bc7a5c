"""The Python module that accompanies a CUDA header: kernels are compiled at first use and called through CuPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynid.escape import python_text
from dynid.symbolic.languages.array_modules import parameter_lines, rollout_test, stored_lines
from dynid.symbolic.languages.cuda import THREADS_PER_BLOCK
from dynid.symbolic.languages.cuda_rollout import ROLLOUT_METHODS
from dynid.symbolic.languages.stored_states import has_rollout
from dynid.symbolic.languages.text import identifier

if TYPE_CHECKING:
    from dynid.symbolic.functions import Function
    from dynid.symbolic.program import Program

_HEAD = '''\
from functools import lru_cache
from pathlib import Path

import cupy
import numpy

SOURCE = Path(__file__).with_name("{name}.cuh")
DTYPE = cupy.{dtype}
JOINTS = {n}
FAST_MATH = False  # set before the first call: faster and less exact sines, divisions and roots
{tables}

@lru_cache(maxsize=None)
def kernel(name):
    """The kernel of a function, compiled at the first call."""
    return _module(FAST_MATH).get_function(f"{name}_{{name}}_kernel")


@lru_cache(maxsize=None)
def _module(fast):
    if not SOURCE.is_file():
        raise FileNotFoundError(f"{{SOURCE}} is missing: the header is written beside this module")
    options = ("-std=c++17", *(("--use_fast_math",) if fast else ()))
    return cupy.RawModule(code=SOURCE.read_text(encoding="utf-8"), options=options)


def _array(name, values, rows):
    """An array (rows, ...) in memory of the device, with rows one behind the other."""
    array = cupy.ascontiguousarray(values, dtype=DTYPE)
    if array.shape[:len(rows)] != rows:
        raise ValueError(f"{{name}} must be {{rows}} and then states, got shape {{array.shape}}")
    return array


def _launch(name, count, arguments):
    if count:
        kernel(name)(((count + {threads} - 1) // {threads},), ({threads},), (*arguments, cupy.uint64(count)))


def _call(name, inputs, outputs, p=None):
    """Outputs of a function for inputs [(name, array, rows)], which have the same states."""
    arrays = [_array(one, values, (rows,)) for one, values, rows in inputs]
    states = arrays[0].shape[1:]
    if any(array.shape[1:] != states for array in arrays):
        raise ValueError(f"inputs of {{name}} differ in states: {{[array.shape for array in arrays]}}")
    found = [cupy.empty(shape + states, dtype=DTYPE) for shape in outputs]
    given = [*arrays, *_numbers(p, states)]
    _launch(name, int(arrays[0].size // arrays[0].shape[0]), (*given, *found))
    return found[0] if len(found) == 1 else tuple(found)


def _numbers(p, states):
    """The arguments for p: (numbers,) for all states, or (numbers, ...) for each."""
    if p is None:
        return ()
    p = _array("p", p, (len(P_NAMES),))
    if p.ndim > 1 and p.shape[1:] != states:
        raise ValueError(f"p must be ({{len(P_NAMES)}},) or have the states {{states}}, got shape {{p.shape}}")
    return p, cupy.int32(p.ndim > 1)

'''

_ROLLOUT = '''

def rollout(q, dq, q_ref, dq_ref, kp, kd, h, steps, *, {memory}{p}limit=None, method="euler", every=0):
    """Final q and dq ({n}, ...){of_memory} after `steps` steps of h seconds under a PD law, and their path.

    Torques of a step are constant: kp (q_ref - q) + kd (dq_ref - dq) at its start, within +-limit. q_ref, dq_ref:
    (rows, {n}) for all states or (rows, {n}, ...), one row per step; the last one is kept.
    method: {methods}. every: steps between the states of the path (steps // every, 2, {n}, ...); 0: none.
    """
    if method not in {methods_tuple}:
        raise ValueError(f"method must be one of {methods_tuple}, got {{method!r}}")
    if h <= 0 or steps < 0 or every < 0:
        raise ValueError(f"h must be above zero, steps and every not below, got {{h}}, {{steps}}, {{every}}")
    q, dq = _array("q", q, ({n},)).copy(), _array("dq", dq, ({n},)).copy()
    states, count = q.shape[1:], int(q.size // {n})
    references = [cupy.ascontiguousarray(one, dtype=DTYPE) for one in (q_ref, dq_ref)]
    shape = references[0].shape
    if (shape != references[1].shape or len(shape) < 2 or not shape[0] or shape[1] != {n}
            or shape[2:] not in ((), states)):
        raise ValueError(f"q_ref and dq_ref must be (rows, {n}) or (rows, {n}, states), got "
                         f"{{[one.shape for one in references]}}")
    law = [DTYPE(value) for one in (kp, kd, cupy.inf if limit is None else limit)
           for value in numpy.broadcast_to(cupy.asnumpy(one), ({n},))]
    path = cupy.empty((steps // every if every else 0, 2, {n}, *states), dtype=DTYPE)
{start}    _launch(f"rollout_{{method}}", count, (
        q, dq, {memory_argument}*references, cupy.int32(shape[0]), cupy.int32(len(shape) > 2), *law,
        {p_argument}DTYPE(h), cupy.int32(steps), path if every else cupy.uint64(0), cupy.int32(every or 1)))
    found = (q, dq{memory_result})
    return (*found, path) if every else found
'''

_SELF_TEST = '''

def self_test():
    """Largest error at stored states, relative to the largest value of each result."""
    worst = 0.0
    for name, inputs, outputs in STORED:
        found = globals()[name](*(cupy.asarray(values, dtype=DTYPE) for values in inputs))
        worst = max(worst, *_errors(found if isinstance(found, tuple) else (found,), outputs))
{rollout}    return worst


def _errors(found, outputs):
    for one, wanted in zip(found, outputs):
        error = abs(cupy.asnumpy(one).reshape(len(wanted), -1) - wanted).max()
        largest = max(max(map(abs, row)) for row in wanted)
        yield float(error / largest if largest > 0 else error) if error == error else float("inf")
'''


def loader(program: Program, real: str) -> str:
    """Return the text of the Python module that loads a CUDA header."""
    name, n = identifier(program.name), program.plan.dof
    about = f"{name}: dynamics of a robot with {n} joints on a GPU, in SI units. {program.provenance}".rstrip()
    dtype = "float32" if real == "float" else "float64"
    lines = [f'"""{python_text(about)}', "", python_text(f"Joints: {', '.join(program.plan.model.joint_names)}."),
             f"Arrays are joint-major: ({n}, ...) of CuPy, of type {dtype}.", '"""', ""]
    text = "\n".join(lines) + "\n" + _HEAD.format(
        name=name, n=n, dtype=dtype, threads=THREADS_PER_BLOCK,
        tables="\n".join(["", *parameter_lines(program)]))
    text += "".join(_function(function) for function in program.functions)
    data = inner = ""
    if has_rollout(program):
        text += _ROLLOUT.format(**_rollout_words(program))
        data, inner = rollout_test(program, real, "cupy.asarray(values, dtype=DTYPE)")
    return text + "\n".join(stored_lines(program, real)) + "\n" + data + _SELF_TEST.format(rollout=inner)


def _function(function: Function) -> str:
    names = [one for one, _ in function.inputs]
    inputs = ", ".join(f'("{one}", {one}, {size})' for one, size in function.inputs if one != "p")
    outputs = ", ".join(f"({', '.join(map(str, output.shape))},)" for output in function.outputs)
    p = ", p" if "p" in names else ""
    about = python_text(function.about)
    return (f'\n\ndef {function.name}({", ".join(names)}):\n    """{about}"""\n'
            f'    return _call("{function.name}", [{inputs}], [{outputs}]{p})\n')


def _rollout_words(program: Program) -> dict[str, Any]:
    size, given = program.plan.remembers, program.mode != "fixed"
    return {"n": program.plan.dof, "methods": " or ".join(f"'{one}'" for one in ROLLOUT_METHODS),
            "methods_tuple": tuple(ROLLOUT_METHODS), "p": "p, " if given else "",
            "p_argument": "*_numbers(p, states), " if given else "",
            "memory": "memory=None, " if size else "", "memory_argument": "memory, " if size else "",
            "memory_result": ", memory" if size else "", "of_memory": f" and the memory ({size}, ...)" if size else "",
            "start": (f"    memory = (cupy.zeros(({size}, *states), dtype=DTYPE) if memory is None\n"
                      f'              else _array("memory", memory, ({size},)).copy())\n') if size else ""}
