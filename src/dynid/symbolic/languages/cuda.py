"""CUDA: one header with device functions, kernels over many states, and wrappers that launch them.

Arrays are joint-major: entry k of state i is at [k * count + i], so that neighbouring threads read neighbouring
numbers. Compiled without CUDA, the same header is C++, and the wrappers loop over the states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from dynid.errors import ModelError
from dynid.escape import c_comment
from dynid.symbolic.functions import Function
from dynid.symbolic.languages.c_text import about_comment, c_number, function_text, parameter_tables, scalar_function
from dynid.symbolic.languages.cuda_rollout import rollout
from dynid.symbolic.languages.cuda_self_test import self_test
from dynid.symbolic.languages.stored_states import has_rollout
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
    """Return the function of one state, as in a C header except for the pairs of sine and cosine."""
    return function_text(function, Statements(function, _spelling(name, real)),
                         f"{name.upper()}_DEVICE {name}_{function.name}", real)


def _spelling(name: str, real: str) -> Spelling:
    def angles(of: Sequence[str], first: int) -> tuple[list[str], list[tuple[str, str]]]:
        pairs = [(f"s{k}", f"c{k}") for k in range(first, first + len(of))]
        return [f"{real} {s}, {c}; {name}_sincos({angle}, &{s}, &{c});"
                for angle, (s, c) in zip(of, pairs, strict=True)], pairs

    return Spelling(lambda value: c_number(value, real), lambda symbol: symbol, scalar_function(real),
                    lambda left, right: f"const {real} {left} = {right};", angles, always=True)


def kernel_arguments(function: Function, real: str, restrict: str = "") -> list[str]:
    """Return declarations of a kernel's arguments: inputs, whether p is given for each state, outputs, number of
    states."""
    found = []
    for one, _ in function.inputs:
        found.append(f"const {real} *{restrict}{one}")
        if one == "p":
            found.append("int p_each")
    return [*found, *(f"{real} *{restrict}{output.name}" for output in function.outputs), "size_t count"]


def load(N: str, one: str, size: int) -> str:
    """Return lines that read an input of state i into an array of the thread."""
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
