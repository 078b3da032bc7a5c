"""CUDA: a header with device functions, kernels over many states, host functions that launch them, and a self-test.

Arrays are joint-major: entry k of state i is at [k * count + i], so that neighbouring threads read neighbouring
numbers. Compiled without CUDA, the same header is C++, and the wrappers loop over the states.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.escape import c_comment
from dynid.symbolic.functions import Function
from dynid.symbolic.languages.c_text import (
    about_comment,
    c_number,
    function_text,
    number_table,
    paired_angles,
    parameter_tables,
    scalar_function,
)
from dynid.symbolic.languages.cuda_rollout import LAW, rollout
from dynid.symbolic.languages.stored_states import ROLLOUT_STEPS, STATE_COUNT, has_rollout, stored, stored_rollout
from dynid.symbolic.languages.text import Spelling, Statements, identifier

if TYPE_CHECKING:
    from dynid.symbolic.program import Program


# Threads of a block: functions of an arm take 60 to 255 registers a thread, so that small blocks fill a multiprocessor
# best.
THREADS_PER_BLOCK = 128

_HEAD = """\
#ifndef __CUDACC_RTC__
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#endif
#ifdef __CUDACC__
#ifdef __CUDACC_RTC__
#define {N}_KERNEL extern "C" __global__ void __launch_bounds__({threads})
#else
#include <cuda_runtime.h>
#define {N}_KERNEL static __global__ void __launch_bounds__({threads})
#define {N}_LAUNCH(kernel, count, stream, ...) \\
  kernel<<<(unsigned)(((count) + {threads} - 1) / {threads}), {threads}, 0, stream>>>(__VA_ARGS__)
typedef cudaStream_t {name}_stream;
#endif
#define {N}_DEVICE static __device__ __forceinline__ void
#define {N}_RESTRICT __restrict__
#define {N}_UNROLL _Pragma("unroll")
#define {N}_LOOP _Pragma("unroll 1")
/* One state a thread. */
#define {N}_EACH(i, count) \\
  for (size_t i = blockIdx.x * (size_t){threads} + threadIdx.x; i < (count); i = (count))
#else /* C++ without CUDA: kernels are loops over the states */
#define {N}_KERNEL static inline void
#define {N}_LAUNCH(kernel, count, stream, ...) kernel(__VA_ARGS__)
typedef void *{name}_stream;
#define {N}_DEVICE static inline void
#define {N}_RESTRICT
#define {N}_UNROLL
#define {N}_LOOP
#define {N}_EACH(i, count) for (size_t i = 0; i < (count); ++i)
#endif

{N}_DEVICE {name}_sincos({real} x, {real} *s, {real} *c)
{{
#ifdef __CUDACC__
  sincos{f}(x, s, c);
#else
  *s = sin{f}(x);
  *c = cos{f}(x);
#endif
}}
"""

_WRAPPED = """\
/* Status of the last launch: 0, or CUDA's error code. */
static inline int {name}_launched(void)
{{
#ifdef __CUDACC__
  return (int)cudaGetLastError();
#else
  return 0;
#endif
}}
"""
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

/* Fill memory that a kernel must overwrite with invalid numbers; return 0, or an error code. */
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


def header(program: Program, real: Literal["double", "float"] = "double") -> str:
    """Return the text of the CUDA header."""
    if real not in ("double", "float"):
        raise ModelError(f"the number type in CUDA is 'double' or 'float', not '{real}'")
    name = identifier(program.name)
    guard = f"{name.upper()}_{real.upper()}_CUH"
    roll = has_rollout(program)
    notes = ["Arrays are joint-major: entry k of state i is at [k * count + i].",
             *(["p: one set of numbers (p_count) with p_each = 0, or one for every state (p_count x count) with "
                "p_each = 1."] if program.mode != "fixed" else []),
             "Pointers are to memory of the device. Functions named _batch launch a kernel and return CUDA's status.",
             "Without CUDA the header is C++, and _batch functions loop over the states on the processor."]
    parts = [about_comment(program, name, real, notes), f"#ifndef {guard}\n#define {guard}\n",
             _HEAD.format(name=name, N=name.upper(), threads=THREADS_PER_BLOCK, real=real,
                          f="f" if real == "float" else "")]
    parts += [_device(function, name, real) for function in program.functions]
    parts += [_kernel(function, name, real) for function in program.functions]
    kernels, wrappers = rollout(program, name, real) if roll else ("", "")
    parts += [kernels, "#ifndef __CUDACC_RTC__", parameter_tables(program, name, real), _WRAPPED.format(name=name)]
    parts += [_wrapper(function, name, real) for function in program.functions]
    parts += [wrappers, self_test(program, name, real, roll), "#endif /* __CUDACC_RTC__ */"]
    parts.append(f"#endif /* {guard} */\n")
    return "\n".join(part for part in parts if part)


def _device(function: Function, name: str, real: str) -> str:
    """Return a generated function as a device function for one state."""
    return function_text(function, Statements(function, _spelling(name, real)),
                         f"{name.upper()}_DEVICE {name}_{function.name}", real)


def _spelling(name: str, real: str) -> Spelling:
    return Spelling(lambda value: c_number(value, real), lambda symbol: symbol, scalar_function(real),
                    lambda left, right: f"const {real} {left} = {right};", partial(paired_angles, name, real),
                    always=True)


def kernel_arguments(function: Function, real: str, restrict: str = "") -> list[str]:
    """Return declarations of a kernel's arguments: inputs, whether p is per state, outputs, number of states."""
    found = []
    for one, _ in function.inputs:
        found.append(f"const {real} *{restrict}{one}")
        if one == "p":
            found.append("int p_each")
    return [*found, *(f"{real} *{restrict}{output.name}" for output in function.outputs), "size_t count"]


def load(N: str, one: str, size: int) -> str:
    """Return the line that reads an input of state i into an array of the thread."""
    at = "p_each ? k * count + i : k" if one == "p" else "k * count + i"
    return f"    {N}_UNROLL for (size_t k = 0; k < {size}; ++k) {one}_i[k] = {one}[{at}];"


def _kernel(function: Function, name: str, real: str) -> str:
    N = name.upper()
    arguments = kernel_arguments(function, real, f"{N}_RESTRICT ")
    lines = [f"{N}_KERNEL {name}_{function.name}_kernel({', '.join(arguments)})", "{", f"  {N}_EACH(i, count) {{"]
    arrays = [*function.inputs, *((output.name, len(output.values)) for output in function.outputs)]
    lines += [f"    {real} {', '.join(f'{one}_i[{size}]' for one, size in arrays)};"]
    lines += [load(N, one, size) for one, size in function.inputs]
    lines.append(f"    {name}_{function.name}({', '.join(f'{one}_i' for one, _ in arrays)});")
    lines += [f"    {N}_UNROLL for (size_t k = 0; k < {len(output.values)}; ++k) "
              f"{output.name}[k * count + i] = {output.name}_i[k];" for output in function.outputs]
    return "\n".join([*lines, "  }", "}"]) + "\n"


def _wrapper(function: Function, name: str, real: str) -> str:
    arguments = kernel_arguments(function, real)
    names = ", ".join(one.split()[-1].lstrip("*") for one in arguments)
    sizes = ", ".join(f"{one} ({size} x count)" for one, size in (
        *((one, size) for one, size in function.inputs if one != "p"),
        *((output.name, len(output.values)) for output in function.outputs)))
    return "\n".join([
        f"/* {c_comment(f'{function.about} {sizes}.')} */",
        f"static inline int {name}_{function.name}_batch({', '.join(arguments)}, {name}_stream stream)", "{",
        "  (void)stream;", "  if (count == 0) return 0;",
        f"  {name.upper()}_LAUNCH({name}_{function.name}_kernel, count, stream, {names});",
        f"  return {name}_launched();", "}"]) + "\n"


def self_test(program: Program, name: str, real: str, roll: bool) -> str:
    """Return the text of the self-test in CUDA with its helper functions; roll: whether to test rollouts."""
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
    """Return the lines of a call with stored inputs and of the comparison with its expected results.

    given, results: names and values of inputs and outputs. ends: inputs that contain a result after the call.
    """
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
