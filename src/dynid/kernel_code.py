"""LLVM code around kernels that are loaded without numba: memory, packed calls, and curves as functions of C."""

from __future__ import annotations

from collections.abc import Sequence

FIRST_ARGUMENT = 3  # words of 8 bytes before the arguments of a packed call: two of the result, one of the error
# A packed call: a kernel and a block of words that has room for its result and error, then holds its arguments. One
# pointer is passed: a call by ctypes with each argument of its own, some hundred, would take 12 us longer.
_PACKED_WRAPPER = """
declare i32 @"{symbol}"(ptr, ptr{types})
define i32 @"{name}"(ptr %block) {{
  %error = getelementptr i64, ptr %block, i64 2
{loads}
  %status = call i32 @"{symbol}"(ptr %block, ptr %error{values})
  ret i32 %status
}}
"""
# Numba's reference-counted memory by malloc and free: a header of count, destructor and its data, address, size and
# allocator, then the aligned data.
ALLOCATION = """
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
# A curve f(q, dq, values) that numba has compiled, as a function of C; not a number where it raises an error.
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
HEADER_OF_NUMBA = "{i64, i8*, i8*, i8*, i64}"  # what `ALLOCATION` imitates, as numba prints it


def packed_wrapper(types: Sequence[str], name: str, symbol: str) -> str:
    """Return the code of a packed call `name` of a function `symbol` whose arguments have these types of LLVM."""
    loads = "\n".join(f"  %p{k} = getelementptr i64, ptr %block, i64 {FIRST_ARGUMENT + k}\n"
                      f"  %a{k} = load {one}, ptr %p{k}" for k, one in enumerate(types))
    return _PACKED_WRAPPER.format(name=name, symbol=symbol, loads=loads, types="".join(f", {one}" for one in types),
                                 values="".join(f", {one} %a{k}" for k, one in enumerate(types)))
