"""Options with which the kernels are compiled."""

from __future__ import annotations

OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy", "fastmath": {"contract", "nsz", "arcp"},
           "no_cfunc_wrapper": True}
# For kernels that only read and write arrays that they are given: without reference counts, whose atomic additions at
# every view and call take a third of the time of a single state.
BORROWING = {**OPTIONS, "_nrt": False}
# For kernels that make arrays although one above calls them that does not, whose options they would take over.
ALLOCATING = {**OPTIONS, "_nrt": True}
# For what only kernels call: without the way in from Python, which takes a third of the time to compile. A call from
# Python would crash.
INNER = {**OPTIONS, "no_cpython_wrapper": True}
INNER_BORROWING = {**INNER, "_nrt": False}
# For formulas on a few numbers: always part of the loop that calls them, which the compiler then turns into SIMD.
INLINED = {**INNER_BORROWING, "forceinline": True}
