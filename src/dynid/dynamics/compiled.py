"""Options of numba for compiling the kernels."""

from __future__ import annotations

from typing import Any

OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy",
                           "fastmath": {"contract", "nsz", "arcp"}, "no_cfunc_wrapper": True}
# For kernels that allocate no arrays: without reference counts, which take a third of the time of a single state.
BORROWING = {**OPTIONS, "_nrt": False}
# For kernels that allocate arrays but are called by a kernel that does not, whose options they would inherit.
ALLOCATING = {**OPTIONS, "_nrt": True}
# For functions that only kernels call: no Python wrapper, which takes a third of the compilation time. A call from
# Python would crash.
INNER = {**OPTIONS, "no_cpython_wrapper": True}
# For functions that mainly call others: part of the code of each kernel. Compiled alone, they would contain what they
# call, so that it would be compiled once more at each level of calls.
PASSING_ON = {**INNER, "inline": "always"}
INNER_BORROWING = {**INNER, "_nrt": False}
# For formulas of few numbers: always inlined, so that the compiler can vectorise the calling loop.
INLINED = {**INNER_BORROWING, "forceinline": True}
