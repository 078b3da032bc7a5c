"""JAX and PyTorch: modules of functions on joint-major arrays (n, ...), for one state or many.

A row of an array is the signal of one joint, so every statement is one operation on whole rows. Nothing is assigned in
place, and results are stacked at the end. Types follow the inputs: float or double.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from dynid.escape import python_text
from dynid.symbolic.functions import Function, split
from dynid.symbolic.languages.stored_states import ROLLOUT_STEPS, has_rollout, stored, stored_rollout
from dynid.symbolic.languages.text import Spelling, Statements, exact, identifier

if TYPE_CHECKING:
    from dynid.symbolic.program import Program

Package = Literal["jax", "torch"]

_JAX = {"abs": "jnp.abs", "atan": "jnp.arctan", "atan2": "jnp.arctan2", "pow": "jnp.power", "max": "jnp.maximum",
        "min": "jnp.minimum", "greater": "_greater", "where": "_where"}
_TORCH = {"atan2": "_atan2", "max": "_max", "min": "_min", "greater": "_greater", "where": "_where"}

_JAX_HEAD = '''\
import jax
import jax.numpy as jnp
from jax import lax
'''

_JAX_HELPERS = '''

def _greater(x, y):
    return jnp.where(x > y, 1.0, 0.0)


def _where(condition, x, y):
    return jnp.where(condition != 0.0, x, y)


def _stacked(shape, rows, *inputs):
    """Rows as one array (*shape, ...), constant ones for every state."""
    states = jnp.broadcast_shapes(*(one.shape[1:] for one in inputs))
    kind = jnp.result_type(*inputs)
    return jnp.stack([jnp.broadcast_to(jnp.asarray(row, kind), states) for row in rows]).reshape(shape + states)
'''

_TORCH_HEAD = '''\
import math

import torch
'''

_TORCH_HELPERS = '''

def _lifted(x, like):
    return x if isinstance(x, torch.Tensor) else torch.full_like(like, x)


def _both(x, y):
    return _lifted(x, y), _lifted(y, x)


def _max(x, y):
    return torch.maximum(*_both(x, y))


def _min(x, y):
    return torch.minimum(*_both(x, y))


def _atan2(x, y):
    return torch.atan2(*_both(x, y))


def _greater(x, y):
    x, y = _both(x, y)
    return (x > y).to(x.dtype)


def _where(condition, x, y):
    return torch.where(condition != 0.0, _lifted(x, condition), _lifted(y, condition))


def _stacked(shape, rows, *inputs):
    """Rows as one tensor (*shape, ...), constant ones for every state."""
    states = torch.broadcast_shapes(*(one.shape[1:] for one in inputs))
    whole = inputs[0].new_zeros(states)
    return torch.stack([row.expand(states) if isinstance(row, torch.Tensor) else whole + row
                        for row in rows]).reshape(shape + tuple(states))
'''

_ADVANCE = '''

def advance(q, dq, tau, h{memory}{p}, *, method="euler"):
    """q and dq ({n}, ...){of_memory} after a step of h seconds under constant torques tau.

    method: "euler", which is semi-implicit, or "rk4"."""
    if method == "euler":
        dq_end = dq + h * forward_dynamics({at})
        q_end = q + h * dq_end
    elif method == "rk4":
        a1 = forward_dynamics({at})
        v2 = dq + 0.5 * h * a1
        a2 = forward_dynamics({at2})
        v3 = dq + 0.5 * h * a2
        a3 = forward_dynamics({at3})
        v4 = dq + h * a3
        a4 = forward_dynamics({at4})
        q_end = q + h / 6.0 * (dq + 2.0 * (v2 + v3) + v4)
        dq_end = dq + h / 6.0 * (a1 + 2.0 * (a2 + a3) + a4)
    else:
        raise ValueError(f"method must be 'euler' or 'rk4', got {{method!r}}")
    return q_end, dq_end{step}


def pd_torques(q, dq, q_ref, dq_ref, kp, kd, limit=None):
    """Torques kp (q_ref - q) + kd (dq_ref - dq) within +-limit; kp, kd, limit: numbers or ({n},)."""
    tau = _law(kp, q) * (_law(q_ref, q) - q) + _law(kd, q) * (_law(dq_ref, q) - dq)
    return tau if limit is None else {clip}


def _law(values, like):
    """({n},) as ({n}, 1, ..), as many axes as the states have."""
    values = {asarray}
    missing = like.ndim - values.ndim if values.ndim else 0
    return values.reshape(tuple(values.shape) + (1,) * missing)


def rollout(q, dq, q_ref, dq_ref, kp, kd, h, steps, *, {memory_first}{p_first}limit=None, method="euler", every=0):
    """Final q and dq ({n}, ...){of_memory} after `steps` steps of h seconds under `pd_torques`, and their path.

    Torques of a step are those at its start. q_ref, dq_ref: (rows, {n}) for all states or (rows, {n}, ...), one row per
    step; the last one is kept. every: steps between the states of the path, (steps // every, {n}, ...) of q and of
    dq; 0: none.
    """
'''

_JAX_ROLLOUT = '''\
    q_ref, dq_ref = jnp.asarray(q_ref), jnp.asarray(dq_ref)
    state = (jnp.asarray(q), jnp.asarray(dq){memory_start})

    def one(k, state):
        row = jnp.minimum(k, q_ref.shape[0] - 1)
        tau = pd_torques(state[0], state[1], q_ref[row], dq_ref[row], kp, kd, limit)
        return advance(state[0], state[1], tau, h{memory_state}{p}, method=method)

    if not every:
        return lax.fori_loop(0, steps, one, state)

    def some(state, start):
        state = lax.fori_loop(0, every, lambda k, inner: one(start + k, inner), state)
        return state, state[:2]

    state, path = lax.scan(some, state, jnp.arange(steps // every) * every)
    return (*lax.fori_loop(steps - steps % every, steps, one, state), path)
'''

_TORCH_ROLLOUT = '''\
    state, path = (q, dq{memory_start}), []
    for k in range(steps):
        row = min(k, q_ref.shape[0] - 1)
        tau = pd_torques(state[0], state[1], q_ref[row], dq_ref[row], kp, kd, limit)
        state = advance(state[0], state[1], tau, h{memory_state}{p}, method=method)
        if every and (k + 1) % every == 0:
            path.append(state[:2])
    return (*state, tuple(torch.stack(one) for one in zip(*path))) if every else state
'''

_SELF_TEST = '''

def self_test(dtype={dtype}{device}):
    """Largest error at stored states, relative to the largest value of each result."""
    worst = 0.0
    for name, inputs, outputs in STORED:
        found = {jit}(globals()[name])(*({array} for values in inputs))
        worst = max(worst, *_errors(found if isinstance(found, tuple) else (found,), outputs))
{rollout}    return worst


def _errors(found, outputs):
    for one, wanted in zip(found, outputs):
        flat = [float(x) for x in one.reshape(-1)]
        error = max(abs(a - b) if a == a else {inf} for a, b in zip(flat, (x for row in wanted for x in row)))
        largest = max(abs(x) for row in wanted for x in row)
        yield error / largest if largest > 0 else error
'''

_SELF_TEST_ROLLOUT = '''\
    for method, ends in ROLLOUT_ENDS.items():
        q, dq, q_ref, dq_ref, kp, kd, limit{p} = ({array} for values in ROLLOUT_GIVEN)
        found = rollout(q, dq, q_ref[None], dq_ref[None], kp, kd, {h}, {steps}, limit=limit, method=method{p_named})
        worst = max(worst, *_errors(found[:2], ends))
'''


def module(program: Program, package: Package) -> str:
    """Return the text of the Python module for JAX or PyTorch."""
    name, model = identifier(program.name), program.plan.model
    about = f"{name}: dynamics of a robot with {model.dof} joints, in SI units. {program.provenance}".rstrip()
    many = ("`jax.vmap(function)` takes states in the first axis." if package == "jax" else
            "`torch.compile(function)` makes one kernel of each.")
    lines = [f'"""{python_text(about)}', "", python_text(f"Joints: {', '.join(model.joint_names)}."),
             f"Arrays are joint-major: ({model.dof},) for one state, ({model.dof}, ...) for many. {many}",
             *(["p: (numbers,) for all states, or (numbers, ...) for each."] if program.mode != "fixed" else []),
             "Functions named _rows take and return a tuple of rows instead of one array.",
             '"""', "", *(_JAX_HEAD if package == "jax" else _TORCH_HEAD).splitlines(), "", f"JOINTS = {model.dof}", "",
             *parameter_lines(program)]
    text = "\n".join(lines) + (_JAX_HELPERS if package == "jax" else _TORCH_HELPERS)
    text += "".join(_function(function, package) for function in program.functions)
    roll = has_rollout(program)
    if roll:
        text += _rollout(program, package)
    return text + "\n".join(stored_lines(program, "double")) + "\n" + _self_test(program, package, roll)


def parameter_lines(program: Program) -> list[str]:
    """Return the lines of Python with the names of the generated functions' parameters p, those of the model, and a
    function that computes p."""
    if program.mode == "fixed":
        return []
    lines = [f"P_NAMES = {list(program.parameter_names)!r}", "",
             f"PARAMETER_NAMES = {list(program.plan.model.parameters.names)!r}", "",
             "# p of the model's parameters theta: entries (row, column, value) of the matrix.", "P_MATRIX = ["]
    entries = zip(*np.nonzero(program.matrix), strict=True)
    lines += [f"    ({i}, {j}, {exact(program.matrix[i, j])})," for i, j in entries]
    return [*lines, "]", "", "", "def prepare(theta):",
            '    """Return the parameters p of the functions (P_NAMES) from theta (PARAMETER_NAMES)."""',
            "    p = [0.0] * len(P_NAMES)", "    for i, j, value in P_MATRIX:",
            "        p[i] = p[i] + value * theta[j]", "    return p", ""]


def stored_lines(program: Program, real: str) -> list[str]:
    """Return the lines of Python with stored inputs and outputs of functions; parameters p are equal for all states."""
    lines = ["", "", "# Name, inputs and outputs of each function, joint-major.", "STORED = ["]
    for function, (inputs, outputs) in zip(program.functions, stored(program, real), strict=True):
        given = [_text(values[0] if one == "p" else values.T)
                 for (one, _), values in zip(function.inputs, inputs, strict=True)]
        lines += [f'    ("{function.name}", [', *(f"        {one}," for one in given), "    ], [",
                  *(f"        {_text(values.T)}," for values in outputs), "    ]),"]
    return [*lines, "]"]


def _text(values: np.ndarray) -> str:
    return repr(np.asarray(values, dtype=float).tolist())


def _function(function: Function, package: Package) -> str:
    statements = Statements(function, _spelling(package))
    names = ", ".join(one for one, _ in function.inputs)
    about = python_text(f"{function.about} {function.operations}.")
    shapes = "; ".join(f"{output.name} ({', '.join(map(str, output.shape))}, ...)" for output in function.outputs)
    rows = [f"({', '.join(own)},)" for own in split(function.outputs, statements.outputs)]
    lines = ["", "", f"def {function.name}_rows({names}):", f'    """Rows of {function.name}."""',
             *(f"    {line}" for line in statements.lines), f"    return {', '.join(rows)}", "", "",
             f"def {function.name}({names}):", f'    """{about} {shapes}."""']
    if package == "jax":
        lines += [f"    {one} = jnp.asarray({one})" for one, _ in function.inputs]
    lines.append(f"    rows = {function.name}_rows({names})")
    stacks = []
    for k, output in enumerate(function.outputs):
        shape = f"({', '.join(map(str, output.shape))}{',' if len(output.shape) == 1 else ''})"
        stacks.append(f"_stacked({shape}, rows{f'[{k}]' if len(function.outputs) > 1 else ''}, {names})")
    return "\n".join([*lines, f"    return {', '.join(stacks)}"]) + "\n"


def _spelling(package: Package) -> Spelling:
    own, prefix = (_JAX, "jnp.") if package == "jax" else (_TORCH, "torch.")
    return Spelling(exact, lambda symbol: symbol,
                    lambda function, of: f"{own.get(function, prefix + function)}({', '.join(of)})",
                    lambda left, right: f"{left} = {right}")


def _rollout(program: Program, package: Package) -> str:
    size, given = program.plan.remembers, program.mode != "fixed"
    inputs = [one for one, _ in program.function("forward_dynamics").inputs]

    def call(q: str, dq: str) -> str:
        return ", ".join({"q": q, "dq": dq}.get(one, one) for one in inputs)

    jax = package == "jax"
    zeros = (f"jnp.zeros(({size}, *jnp.shape(q)[1:]), jnp.result_type(q))" if jax else
             f"q.new_zeros(({size}, *q.shape[1:]))")
    words = {
        "n": program.plan.dof, "memory": ", memory" if size else "", "p": ", p" if given else "",
        "memory_first": "memory=None, " if size else "", "p_first": "p, " if given else "",
        "of_memory": f" and the memory ({size}, ...)" if size else "", "memory_state": ", state[2]" if size else "",
        "memory_start": f", {zeros} if memory is None else memory" if size else "",
        "at": call("q", "dq"), "at2": call("q + 0.5 * h * dq", "v2"), "at3": call("q + 0.5 * h * v2", "v3"),
        "at4": call("q + h * v3", "v4"), "step": ", step(q, dq, memory, q_end, dq_end)" if size else "",
        "asarray": "jnp.asarray(values)" if jax else "torch.as_tensor(values, dtype=like.dtype, device=like.device)",
        "clip": ("jnp.clip(tau, -_law(limit, q), _law(limit, q))" if jax else
                 "torch.minimum(torch.maximum(tau, -_law(limit, q)), _law(limit, q))")}
    return (_ADVANCE + (_JAX_ROLLOUT if jax else _TORCH_ROLLOUT)).format(**words)


def rollout_test(program: Program, real: str, array: str) -> tuple[str, str]:
    """Return the data of the stored rollout as Python, and the lines of the self-test that repeat the rollout.

    array: Python expression that converts a list `values` to an array.
    """
    rollout, given = stored_rollout(program, real), program.mode != "fixed"
    values = [*(part.T for part in rollout.start), np.zeros_like(rollout.start[2].T), *rollout.gains]
    values += [] if rollout.p is None else [rollout.p]
    text = "\n\nROLLOUT_GIVEN = [\n" + "".join(f"    {_text(one)},\n" for one in values) + "]\nROLLOUT_ENDS = {\n"
    text += "".join(f'    "{method}": [{_text(ends[0].T)}, {_text(ends[1].T)}],\n'
                    for method, ends in rollout.ends.items()) + "}\n"
    return text, _SELF_TEST_ROLLOUT.format(array=array, h=exact(rollout.time_step), steps=ROLLOUT_STEPS,
                                           p=", p" if given else "", p_named=", p=p" if given else "")


def _self_test(program: Program, package: Package, roll: bool) -> str:
    jax = package == "jax"
    array = "jnp.asarray(values, dtype)" if jax else "torch.tensor(values, dtype=dtype, device=device)"
    text = inner = ""
    if roll:
        text, inner = rollout_test(program, "double", array)
    return text + _SELF_TEST.format(
        jit="jax.jit" if jax else "", dtype="None" if jax else "torch.float64",
        device="" if jax else ', device="cpu"', array=array, rollout=inner, inf='float("inf")')
