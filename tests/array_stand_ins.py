"""Stand-ins for CuPy and PyTorch on the processor, with those of their functions that generated modules call."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest


def torch_on_numpy() -> Any:
    """PyTorch's functions on arrays of NumPy that know the methods `new_zeros`, `expand`, `to` and `new_tensor`."""

    class Tensor(np.ndarray):
        def new_zeros(self, shape: Any) -> Any:
            return np.zeros(tuple(shape), dtype=self.dtype).view(Tensor)

        def expand(self, shape: Any) -> Any:
            return np.broadcast_to(self, tuple(shape)).view(Tensor)

        def to(self, dtype: Any) -> Any:
            return self.astype(dtype)

        def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
            return np.asarray(array).view(Tensor)  # numbers stay tensors, as in PyTorch

        def __getitem__(self, key: Any) -> Any:
            return np.asarray(np.asarray(self)[key]).view(Tensor)

    def tensor(values: Any, dtype: Any = None, device: str = "cpu") -> Any:
        assert device == "cpu" or device is None
        return np.asarray(values, dtype=dtype).view(Tensor)

    def wrapped(function: Any) -> Any:
        return lambda *of: np.asarray(function(*of)).view(Tensor)

    names = {"sin": np.sin, "cos": np.cos, "tanh": np.tanh, "atan": np.arctan, "exp": np.exp, "sqrt": np.sqrt,
             "abs": np.abs, "sign": np.sign, "pow": np.power, "maximum": np.maximum, "minimum": np.minimum,
             "atan2": np.arctan2, "where": np.where, "stack": lambda rows: np.stack(list(rows))}
    Tensor.device = None  # type: ignore[attr-defined]
    return SimpleNamespace(Tensor=Tensor, tensor=tensor, as_tensor=tensor, float64=np.float64, float32=np.float32,
                           full_like=lambda like, x: np.full(like.shape, x, dtype=like.dtype).view(Tensor),
                           broadcast_shapes=np.broadcast_shapes,
                           **{one: wrapped(function) for one, function in names.items()})


class HostModule:
    """A CUDA header compiled as C++: its kernels are loops over the states, called as CuPy calls them."""

    def __init__(self, code: str, options: tuple[str, ...], folder: Path) -> None:
        compiler = shutil.which("g++") or shutil.which("c++")
        if compiler is None:
            pytest.skip("no C++ compiler here")
        assert "-std=c++17" in options
        exported = re.sub(r"(#define \w+_KERNEL) static inline void", r'\1 extern "C" void', code)
        (folder / "kernels.cpp").write_text(exported)
        subprocess.run([compiler, "-std=c++17", "-O0", "-shared", "-fPIC", "kernels.cpp", "-o", "kernels.so"],
                       cwd=folder, check=True, capture_output=True, text=True)
        self._library = ctypes.CDLL(str(folder / "kernels.so"))
        self._heads = dict(re.findall(r"_KERNEL (\w+)\(([^)]*)\)", code))

    def get_function(self, name: str) -> Any:
        declared = [one.strip() for one in self._heads[name].split(",")]
        function = getattr(self._library, name)

        def call(grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
            assert len(arguments) == len(declared), (declared, arguments)
            assert grid[0] * block[0] >= int(arguments[-1])
            function(*(_argument(one, kind) for one, kind in zip(arguments, declared, strict=True)))

        return call


def _argument(one: Any, kind: str) -> Any:
    """An argument as C takes it; one of another type than declared is a mistake of the caller."""
    if isinstance(one, np.ndarray):
        assert "*" in kind and one.flags.c_contiguous and one.dtype == (np.float32 if "float" in kind else np.float64)
        return ctypes.c_void_p(one.ctypes.data)
    if "*" in kind:
        assert isinstance(one, np.uint64) and int(one) == 0
        return ctypes.c_void_p(0)
    types = {np.int32: ("int ", ctypes.c_int), np.uint64: ("size_t ", ctypes.c_size_t),
             np.float32: ("float ", ctypes.c_float), np.float64: ("double ", ctypes.c_double)}
    start, made = types[type(one)]
    assert kind.startswith(start), (kind, type(one))
    return made(one.item())


def cupy_on_host(folder: Path) -> Any:
    """CuPy's functions by NumPy, kernels compiled as C++."""
    return SimpleNamespace(
        float32=np.float32, float64=np.float64, int32=np.int32, uint64=np.uint64, inf=np.inf, asarray=np.asarray,
        asnumpy=np.asarray, ascontiguousarray=np.ascontiguousarray, zeros=np.zeros,
        empty=lambda shape, dtype: np.full(shape, np.nan, dtype),
        RawModule=lambda code, options: HostModule(code, options, folder))
