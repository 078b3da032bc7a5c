"""The self-test of a CUDA header: stored states through every kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynid.arrays import Array
from dynid.symbolic.languages.c_text import c_number, number_table
from dynid.symbolic.languages.cuda_rollout import LAW
from dynid.symbolic.languages.stored_states import ROLLOUT_STEPS, STATE_COUNT, stored, stored_rollout

if TYPE_CHECKING:
    from dynid.symbolic.program import Program

_HELPERS = """\
/* Copy numbers to memory of the device; null if it cannot be allocated. */
static inline {real} *{name}_to_device(const {real} *values, size_t size)
{{
  {real} *found = 0;
#ifdef __CUDACC__
  if (cudaMalloc((void **)&found, size * sizeof({real})) != cudaSuccess) return 0;
  if (cudaMemcpy(found, values, size * sizeof({real}), cudaMemcpyHostToDevice) != cudaSuccess) return 0;
#else
  found = ({real} *)std::malloc(size * sizeof({real}));
  if (found) std::memcpy(found, values, size * sizeof({real}));
#endif
  return found;
}}

/* Largest difference between numbers of the device and `wanted`, relative to the largest of these. It waits until all
   launches have ended. An error of CUDA gives infinity. */
static inline {real} {name}_error(const {real} *device, const {real} *wanted, size_t size, int status)
{{
  {real} largest = 0, error = 0;
  {real} *found = ({real} *)std::malloc(size * sizeof({real}));
  if (status != 0 || !device || !found) return ({real})INFINITY;
#ifdef __CUDACC__
  if (cudaMemcpy(found, device, size * sizeof({real}), cudaMemcpyDeviceToHost) != cudaSuccess) return ({real})INFINITY;
#else
  std::memcpy(found, device, size * sizeof({real}));
#endif
  for (size_t k = 0; k < size; ++k) {{
    const {real} difference = fabs{f}(found[k] - wanted[k]);
    largest = fmax{f}(largest, fabs{f}(wanted[k]));
    error = difference <= error ? error : difference;
  }}
  std::free(found);
  return largest > 0 ? error / largest : error;
}}

/* Poison what a kernel must write: 0, or an error code. */
static inline int {name}_cleared({real} *device, size_t size)
{{
  if (!device) return 1;
#ifdef __CUDACC__
  return (int)cudaMemset(device, 0xff, size * sizeof({real}));
#else
  std::memset(device, 0xff, size * sizeof({real}));
  return 0;
#endif
}}

static inline void {name}_release({real} *device)
{{
#ifdef __CUDACC__
  cudaFree(device);
#else
  std::free(device);
#endif
}}

/* Largest error at stored states, relative to the largest value of each result, computed by the kernels. */
static inline {real} {name}_self_test(void)
{{
  {real} worst = 0;
"""


def self_test(program: Program, name: str, real: str, roll: bool) -> str:
    """Return the self-test function in CUDA with its helpers. roll: whether there are rollouts to test."""
    f = "f" if real == "float" else ""
    lines = [_HELPERS.format(name=name, real=real, f=f).rstrip("\n")]
    for function, (inputs, outputs) in zip(program.functions, stored(program, real), strict=True):
        # p is tested as one set for all states; a rollout tests it state by state
        given = [(one, values[0] if one == "p" else values.T) for (one, _), values in zip(
            function.inputs, inputs, strict=True)]
        results = [(output.name, values.T) for output, values in zip(function.outputs, outputs, strict=True)]
        call = [f"{one}{', 0' if one == 'p' else ''}" for one, _ in given] + [one for one, _ in results]
        lines += _block(name, real, given, results,
                        f"{name}_{function.name}_batch({', '.join(call)}, {STATE_COUNT}, 0)")
    if roll:
        lines += _rollouts(program, name, real)
    return "\n".join([*lines, "  return worst;", "}"]) + "\n"


def _block(name: str, real: str, given: list[tuple[str, Array]], results: list[tuple[str, Array]], call: str,
           ends: dict[str, str] | None = None) -> list[str]:
    """Return a call with stored inputs. results: expected outputs; ends: inputs that contain results after the call."""
    ends = ends or {}
    lines = ["  {"]
    for one, values in given:
        lines.append(f"    static const {real} {one}_at[{values.size}] = {_flat(values, real)};")
    for one, values in results:
        lines.append(f"    static const {real} {one}_is[{values.size}] = {_flat(values, real)};")
    moved = [(one, values) for one, values in given if one not in LAW]  # gains stay on the host
    for one, values in moved:
        lines.append(f"    {real} *{one} = {name}_to_device({one}_at, {values.size});")
    outputs = [(one, values) for one, values in results if one not in ends]
    lines += [f"    {real} *{one} = {name}_to_device({one}_is, {values.size});" for one, values in outputs]
    if outputs:  # what the kernel must overwrite
        lines.append(f"    int status = {' || '.join(f'{name}_cleared({one}, {v.size})' for one, v in outputs)};")
        lines.append(f"    status = status ? status : {call};")
    else:
        lines.append(f"    const int status = {call};")
    for one, values in results:
        found = f"{name}_error({ends.get(one, one)}, {one}_is, {values.size}, status)"
        lines.append(f"    const {real} {one}_error = {found};")
        lines.append(f"    worst = {one}_error <= worst ? worst : {one}_error;")
    lines += [f"    {name}_release({one});" for one in [*(one for one, _ in moved), *(one for one, _ in outputs)]]
    return [*lines, "  }"]


def _flat(values: Array, real: str) -> str:
    return number_table(np.ravel(values)[None, :], real).replace("{\n      {", "{\n      ", 1)[:-1]


def _rollouts(program: Program, name: str, real: str) -> list[str]:
    rollout = stored_rollout(program, real)
    q, dq, reference = (part.T for part in rollout.start)
    given = [("q", q), ("dq", dq), ("q_ref", reference), ("dq_ref", np.zeros_like(reference))]
    given += list(zip(LAW, rollout.gains, strict=True))
    if program.plan.remembers:
        given.insert(2, ("memory", np.zeros((program.plan.remembers, STATE_COUNT))))
    each = ""
    if rollout.p is not None:
        given.append(("p", np.tile(rollout.p[:, None], (1, STATE_COUNT))))
        each = "p, 1, "
    memory = "memory, " if program.plan.remembers else ""
    lines = []
    for method, (q_end, dq_end) in rollout.ends.items():
        call = (f"{name}_rollout_{method}_batch(q, dq, {memory}q_ref, dq_ref, 1, 1, kp_at, kd_at, limit_at, {each}"
                f"{c_number(rollout.time_step, real)}, {ROLLOUT_STEPS}, 0, 1, {STATE_COUNT}, 0)")
        lines += _block(name, real, given, [("q_end", q_end.T), ("dq_end", dq_end.T)], call,
                        {"q_end": "q", "dq_end": "dq"})
    return lines
