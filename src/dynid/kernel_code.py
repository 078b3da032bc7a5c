"""LLVM code for compiled kernels that run without numba: allocation, packed calls, and user functions in C form."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

FIRST_ARGUMENT = 3  # words of 8 bytes before the arguments of a packed call: two for the result, one for the error
# A packed call has one pointer to a block of words: result, error, then the arguments. Passing some hundred arguments
# separately by ctypes would take 12 us longer.
_PACKED_WRAPPER = """
declare i32 @"{symbol}"(ptr, ptr{types})
define i32 @"{name}"(ptr %block) {{
  %error = getelementptr i64, ptr %block, i64 2
{loads}
  %status = call i32 @"{symbol}"(ptr %block, ptr %error{values})
  ret i32 %status
}}
"""
# Numba's reference-counted memory by malloc and free: a header (count, destructor and its data, address, size,
# allocator), then the aligned data.
_ALLOCATION = """
declare ptr @malloc(i64)
declare void @free(ptr)
define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %wide = zext i32 %align to i64
  %room = add i64 %wide, 64
  %total = add i64 %size, %room
  %header = call ptr @malloc(i64 %total)
  %none = icmp eq ptr %header, null
  br i1 %none, label %end, label %fill
fill:
  %start = ptrtoint ptr %header to i64
  %beyond = add i64 %start, %room
  %mask = sub i64 0, %wide
  %aligned = and i64 %beyond, %mask
  %data = inttoptr i64 %aligned to ptr
  store {i64, ptr, ptr, ptr, i64, ptr} {i64 1, ptr null, ptr null, ptr null, i64 0, ptr null}, ptr %header
  %address = getelementptr {i64, ptr, ptr, ptr, i64, ptr}, ptr %header, i32 0, i32 3
  store ptr %data, ptr %address
  br label %end
end:
  ret ptr %header
}
define void @NRT_MemInfo_call_dtor(ptr %header) {
  call void @free(ptr %header)
  ret void
}
"""
_ALLOCATORS = ("NRT_MemInfo_alloc_aligned", "NRT_MemInfo_call_dtor")  # functions that it defines
# A compiled curve f(q, dq, values) as a C function; nan if it raises an error.
CURVE_WRAPPER = """
declare i32 @"{symbol}"(ptr, ptr, double, double, ptr)
define double @"{name}"(double %q, double %dq, ptr %values) {{
  %result = alloca double
  %error = alloca ptr
  %status = call i32 @"{symbol}"(ptr %result, ptr %error, double %q, double %dq, ptr %values)
  %is_good = icmp eq i32 %status, 0
  %found = load double, ptr %result
  %value = select i1 %is_good, double %found, double 0x7FF8000000000000
  ret double %value
}}
"""
HEADER_OF_NUMBA = "{i64, i8*, i8*, i8*, i64}"  # header that `_ALLOCATION` reproduces, as numba prints it


def _packed_wrapper(types: Sequence[str], name: str, symbol: str) -> str:
    """Return LLVM code of a function `name` that unpacks its arguments, of the given LLVM types, and calls `symbol`."""
    loads = "\n".join(f"  %p{k} = getelementptr i64, ptr %block, i64 {FIRST_ARGUMENT + k}\n"
                      f"  %a{k} = load {one}, ptr %p{k}" for k, one in enumerate(types))
    return _PACKED_WRAPPER.format(name=name, symbol=symbol, loads=loads, types="".join(f", {one}" for one in types),
                                 values="".join(f", {one} %a{k}" for k, one in enumerate(types)))


def declared(module: Any) -> list[str]:
    """Return the names of the functions that an LLVM module calls but does not define, except LLVM's own."""
    return [function.name for function in module.functions
            if function.is_declaration and not function.name.startswith("llvm.")]


def need_numba(calls: Sequence[str]) -> bool:
    """Return whether one of the named functions exists only in numba or Python."""
    return any(name.startswith(("Py", "_Py", "numba", "NRT")) and name not in _ALLOCATORS for name in calls)


def make_independent(module: Any, machine: Any, symbol: str, name: str, wrapper: str = "") -> None:
    """Link a module with its allocation of memory and a wrapper, and remove code that the wrapper does not need.

    Args:
        module: LLVM code of a kernel and its functions.
        machine: LLVM's description of the processor.
        symbol: Name of the kernel in the module.
        name: Name of the wrapper, the only function that remains visible.
        wrapper: LLVM code of a function {name} that calls {symbol}; a packed call if empty.
    """
    import llvmlite.binding as llvm

    types = [str(one.type) for one in module.get_function(symbol).arguments][2:]
    text = wrapper.format(name=name, symbol=symbol) if wrapper else _packed_wrapper(types, name, symbol)
    for part in (_ALLOCATION, text):
        module.link_in(llvm.parse_assembly(part))
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name == name else "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.PipelineTuningOptions()))


@lru_cache(maxsize=1)
def loader() -> Any:
    """Return LLVM's loader of machine code, which exists as long as the process."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


@lru_cache(maxsize=1)
def processor() -> str:
    """Return name and features of the processor."""
    import llvmlite.binding as llvm

    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


@lru_cache(maxsize=1)
def loaded_libraries() -> Any:
    """Return a handle of all libraries loaded in this process, including the C library."""
    return ctypes.CDLL(None)
