"""A robot's model as functions that can be written in several languages, and called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model import Model, required_robot_model
from dynid.regression.base import BaseParameters
from dynid.robot import Robot
from dynid.symbolic.functions import OF_BODIES, OF_FRAME, RECIPES, Function, make
from dynid.symbolic.graph import Operations
from dynid.symbolic.numbers import Following, ModelLayout, kept_numbers, layout

Mode = Literal["fixed", "base", "full"]
ONLINE, OBSERVER = "online", "observer"
WHAT = ("inverse_dynamics", "regressor", "inertia", "coriolis", "gravity", "friction", "forward_dynamics")


@dataclass(frozen=True, eq=False)
class Program:
    """Generated functions of a model, each on its own expression graph.

    Attributes:
        name: name of the program.
        mode: "fixed" inserts the parameters' values, "base" takes the identifiable parameters p as an input, "full"
            adds a function `prepare` that computes p from the model's parameters.
        functions: the functions.
        plan: the model for code generation.
        numbers: the parameters p as combinations of the parameters of bodies and terms.
        values: values of the model's parameters (parameters,) for self-tests, or None.
        provenance: origin of the values in words, written into the code.
        online, observer: whether functions that estimate p and external torques are added in C.
    """

    name: str
    mode: Mode
    functions: tuple[Function, ...]
    plan: ModelLayout
    numbers: BaseParameters
    values: Array | None = None
    provenance: str = ""
    online: bool = False
    observer: bool = False

    @cached_property
    def matrix(self) -> Array:
        """Matrix of p = matrix theta, from the model's parameters theta to those of the generated functions."""
        return np.asarray(self.numbers.matrix @ self.plan.matrix)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters p of the generated functions."""
        return self.numbers.names

    @property
    def ops(self) -> dict[str, Operations]:
        """Number of arithmetic operations of each generated function."""
        return {function.name: function.operations for function in self.functions}

    def function(self, name: str) -> Function:
        for function in self.functions:
            if function.name == name:
                return function
        raise ModelError(f"the generated program has no function '{name}'; it has "
                         f"{', '.join(f.name for f in self.functions)}")

    def numbers_of(self, theta: ArrayLike | Mapping[str, float]) -> Array:
        """Return the parameters p (numbers,) of the functions for the model's parameters theta (parameters,)."""
        return np.asarray(self.matrix @ self.plan.model.parameters.vector(theta))

    def __call__(self, name: str, **inputs: ArrayLike) -> Any:
        """Return the output of a function, or a tuple of several outputs, for one sample (n,) or many samples (samples,
        n) of each input."""
        from dynid.symbolic.languages.python import compiled
        function = self.function(name)
        wanted = [signal for signal, _ in function.inputs]
        if sorted(inputs) != sorted(wanted):
            raise ModelError(f"{name} takes {', '.join(wanted)}; got {', '.join(inputs) or 'nothing'}")
        arrays = []
        for signal, size in function.inputs:
            array = np.asarray(inputs[signal], dtype=float)
            if array.ndim not in (1, 2) or array.shape[-1] != size:
                raise ModelError(f"{signal} of {name} must be ({size},) or (samples, {size}), got shape {array.shape}")
            arrays.append(array)
        outputs = compiled(self)[name](*arrays)
        return outputs[0] if len(outputs) == 1 else outputs

    def c(self, real: Literal["double", "float"] = "double", batch: int = 1) -> str:
        """Return the text of a C99 header with all functions, for 1, 4 or 8 samples per call (`batch`)."""
        from dynid.symbolic.languages.c import header
        return header(self, real, batch)

    def cuda(self, real: Literal["double", "float"] = "double") -> str:
        """Return the text of a CUDA header: device functions, kernels over states, rollouts, and host functions."""
        from dynid.symbolic.languages.cuda import header
        return header(self._without_online("CUDA"), real)

    def cuda_loader(self, real: Literal["double", "float"] = "double") -> str:
        """Return the text of a Python module that compiles the CUDA header in its folder and calls it through CuPy."""
        from dynid.symbolic.languages.cuda_loader import loader
        return loader(self._without_online("CUDA"), real)

    def jax(self) -> str:
        """Return the text of a Python module with JAX, for joint-major arrays."""
        from dynid.symbolic.languages.array_modules import module
        return module(self._without_online("JAX"), "jax")

    def torch(self) -> str:
        """Return the text of a Python module with PyTorch, for joint-major arrays."""
        from dynid.symbolic.languages.array_modules import module
        return module(self._without_online("PyTorch"), "torch")

    def rust(self, real: Literal["double", "float"] = "double") -> str:
        """Return the functions as the text of a Rust module without the standard library."""
        from dynid.symbolic.languages.rust import module
        return module(self._without_online("Rust"), real)

    def python(self, plain: bool = False) -> str:
        """Return the text of a Python module: with NumPy for one or many samples, or plain, with only `math`."""
        from dynid.symbolic.languages.python import module
        return module(self._without_online("Python"), plain)

    def julia(self) -> str:
        """Return the functions as the text of a Julia module."""
        from dynid.symbolic.languages.julia import module
        return module(self._without_online("Julia"))

    def latex(self) -> str:
        """Return the equations as LaTeX, in full for up to three joints, otherwise with intermediate variables."""
        from dynid.symbolic.languages.latex import equations
        return equations(self._without_online("LaTeX"))

    def _without_online(self, language: str) -> Program:
        if self.online or self.observer:
            what, instead = (ONLINE, "dynid.Online") if self.online else (OBSERVER, "dynid.ExternalWrench")
            raise ModelError(f"the functions of '{what}' are written in C, not in {language}",
                             f"leave out '{what}', or use {instead}", code="only-in-c")
        return self

    def casadi(self) -> dict[str, Any]:
        """Return CasADi functions by name; needs the package `casadi`."""
        from dynid.symbolic.languages.replay import casadi_functions
        return casadi_functions(self)

    def sympy(self) -> dict[str, Any]:
        """Return SymPy matrices by function and output; needs the package `sympy`."""
        from dynid.symbolic.languages.replay import sympy_matrices
        return sympy_matrices(self)


def generate(model: Model | Robot, what: Sequence[str] = WHAT, *, parameters: Mode = "base",
             values: ArrayLike | Mapping[str, float] | None = None, frame: str = "", name: str = "",
             following: Following = "auto") -> Program:
    """Generate code for functions of a model.

    Args:
        model: a model or a robot.
        what: names of the functions. "online" adds functions in C that estimate the parameters from samples,
            "observer" those that estimate external torques from the momentum.
        parameters: "fixed" inserts `values` as constants, "base" takes the identifiable parameters p as an input,
            "full" adds a function `prepare` that computes p from all parameters.
        values: values of all parameters, by name or in order. Default: those of the robot. They also determine the
            torques of the bodies for load-dependent friction.
        frame: frame of kinematics and Jacobian.
        name: name of the program. Default: the name of the robot.
        following: how dependent joints are computed: "given" as an input q_follow, "solved" in closed form, or "auto"
            for the closed form if there is one.

    Returns:
        The program. The memory of terms is an input of functions, and `step` advances this memory by one sample.

    >>> program = dynid.generate(dynid.Robot.load("arm3r"), ["gravity"])
    >>> "gravity(" in program.c()
    True
    """
    model = Model(model) if isinstance(model, Robot) else required_robot_model(model, "generated code")
    if following not in ("auto", "given", "solved"):
        raise ModelError(f"positions of dependent joints are 'auto', 'given' or 'solved', not '{following}'",
                         code="bad-following")
    if parameters not in ("fixed", "base", "full"):
        raise ModelError(f"parameters of generated code are 'fixed', 'base' or 'full', not '{parameters}'")
    _check(what, parameters, frame)
    theta = _theta(model, values, needed=parameters == "fixed")
    plan = layout(model if theta is None else model.with_bodies_if_unset(theta), following)
    online, observer = ONLINE in what, OBSERVER in what
    what = [*(one for one in what if one not in (ONLINE, OBSERVER)), *(["regressor"] if online else []),
            *(["momentum", "friction"] if observer else []), *(["step"] if plan.remembers else [])]
    every = BaseParameters(plan.numbers, np.arange(len(plan.numbers)), np.eye(len(plan.numbers)))
    # Wrenches depend on numbers that torques do not show; where p is an input, all functions take the same.
    numbers = every if parameters == "full" and set(what) & set(OF_BODIES) else kept_numbers(
        plan, lambda base: make("inverse_dynamics", plan, base).operations.total)

    def made(one: str) -> Function:
        own, p = every if one in OF_BODIES else numbers, None
        if parameters == "fixed":
            assert theta is not None
            p = own.matrix @ plan.matrix @ theta
            p[np.abs(p) < 1e-15 * np.max(np.abs(p), initial=0.0)] = 0.0
        try:
            return make(one, plan, own, p, frame)
        except ModelError as error:
            if error.code != "division-by-zero":
                raise
            raise ModelError(f"function '{one}' divides by an inertia that is zero for the parameters of robot "
                             f"'{model.robot.name}'", "add masses and inertias to the robot file, generate with "
                             "parameters 'base' or 'full' (--parameters), or name other functions with --what",
                             code=error.code) from None

    functions = tuple(made(one) for one in dict.fromkeys(what))
    return Program(name or model.robot.name, parameters, functions, plan, numbers, theta, online=online,
                   observer=observer)


def _check(what: Sequence[str], parameters: Mode, frame: str) -> None:
    """Raise an error if the functions named in `what` cannot be generated with the given settings."""
    known = [*RECIPES, *OF_FRAME, ONLINE, OBSERVER]
    for one in what:
        if one not in known:
            raise ModelError(f"there is no function '{one}' to generate; there are {', '.join(known)}",
                             code="unknown-function")
        if one in OF_FRAME and not frame:
            raise ModelError(f"'{one}' needs a frame of the robot; name it with --frame, or frame=... in Python",
                             code="no-frame")
        if one in OF_BODIES and parameters == "base":
            raise ModelError(f"'{one}' depends on body parameters that are not base parameters",
                             "generate with parameters 'fixed' or 'full' (--parameters)", code="not-base-parameters")
        if one == ONLINE and parameters == "fixed":
            raise ModelError(f"'{ONLINE}' estimates base parameters, but parameters of this code are fixed",
                             "generate with parameters 'base' or 'full'", code="parameters-fixed")


def _theta(model: Model, values: ArrayLike | Mapping[str, float] | None, needed: bool) -> Array | None:
    if values is not None:
        return model.parameters.vector(values)
    nominal = model.parameters.nominal
    if nominal is None and needed:
        missing = next(item.name for item in model.parameters if item.nominal is None)
        raise ModelError(f"parameters of generated code are 'fixed', but robot '{model.robot.name}' gives no value of "
                         f"'{missing}'",
                         "identify the robot and give the result, or generate with parameters 'base'", code="no-value")
    return nominal
