"""Record of the optional methods of a term, beyond its parameters and entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from dynid.arrays import Array, Ints
from dynid.errors import ModelError
from dynid.model.data_context import DataContext, learned_fields
from dynid.model.elements import Element
from dynid.model.term import Entries, MotionSegment, Term, TorqueModel, probing_motion
from dynid.robot import Robot


class ShapeParameters(Protocol):
    """Methods of a term that is nonlinear in its shape parameters (see `Stribeck`)."""

    def shape_names(self, robot: Robot) -> tuple[str, ...]: ...

    def shape(self, robot: Robot) -> Array: ...

    def with_shape(self, robot: Robot, values: Array) -> Term: ...


class History(Protocol):
    """Methods of a term that needs times or the order of samples."""

    def channels(self, robot: Robot) -> int: ...

    def memory(self, model: TorqueModel, motion: MotionSegment) -> Array: ...

    def remembered(self, robot: Robot, q: Array, dq: Array, ddq: Array, memory: Array) -> Entries: ...


class UnderLoad(Protocol):
    """Methods of a term that is a function of the torques of the bodies."""

    def link_numbers(self, robot: Robot) -> Array: ...

    def under_load(self, robot: Robot, torques: Array, dq: Array) -> Entries: ...


class Kernels(Protocol):
    """Methods of a term with kernels for torques (samples, dof) and inertia matrices (samples, dof, dof)."""

    def torques(self, robot: Robot, values: Array, q: Array, dq: Array, ddq: Array) -> Array: ...

    def inertia(self, robot: Robot, values: Array, q: Array) -> Array: ...


class SingleSample(Protocol):
    """Methods of a term that computes its entries for one sample (dof,)."""

    def instant(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Array | float: ...

    def instant_entries(self, robot: Robot) -> tuple[Ints, Ints]: ...


@dataclass(frozen=True, eq=False)
class SampleFromEntries:
    """Single-sample evaluation of a term by its `entries`, for a term without a single-sample method."""

    term: Term

    def instant(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
        entries = self.term.entries(robot, q[None], dq[None], ddq[None])
        return np.array([np.ravel(values)[0] for _, _, values in entries])

    def instant_entries(self, robot: Robot) -> tuple[Ints, Ints]:
        pairs = [(joint, parameter) for joint, parameter, _ in self.term.entries(robot, *probing_motion(robot, 1))]
        joints, parameters = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return joints, parameters


Step = Callable[[Robot, tuple[Array, Array, Array], Array, Array], Iterator[Array]]
# The last method of a group has a name that is unlikely for a field, so its presence shows the intention.
GROUPS: dict[str, tuple[str, ...]] = {
    "shape": ("shape_names", "shape", "with_shape"), "history": ("channels", "memory", "remembered"),
    "load": ("link_numbers", "under_load"), "kernels": ("torques", "inertia"),
    "single_sample": ("instant", "instant_entries")}


@dataclass(frozen=True, eq=False)
class Capabilities:
    """Optional capabilities of a term; None for each capability that the term does not have.

    The value is the term itself for a capability with several methods, or the method if there is only one.
    `dynid.model.term` describes the methods.

    Attributes:
        shape: parameters in which the term is nonlinear.
        history: entries that need times or the order of samples.
        load: entries as a function of the torques of the bodies.
        kernels: torques and inertia matrices at once.
        single_sample: entries of one sample; by default derived for a term without history or kernel.
        step: update of its memory from sample to sample, for generated code; only with `history`.
        elements: elements of a compiled simulation.
        momentum: momentum and force without accelerations.
        slow_joints: joints whose samples at low speed the term needs.
        dissipating: linear conditions for dissipation.
    """

    shape: ShapeParameters | None
    history: History | None
    load: UnderLoad | None
    kernels: Kernels | None
    single_sample: SingleSample | None
    step: Step | None
    elements: Callable[[Robot, Array], Iterable[Element]] | None
    momentum: Callable[..., None] | None
    slow_joints: Callable[[Robot], Iterable[int]] | None
    dissipating: Callable[[Robot, Array], Array] | None


def term_name(term: object) -> str:
    """Return the name of a term for messages: its kind, or its class."""
    return str(getattr(term, "kind", type(term).__name__))


def capabilities(term: Term) -> Capabilities:
    """Return the optional capabilities of a term.

    Raises:
        ModelError: for a term with some but not all methods of a capability, or with an unknown entry in `learned`.
    """
    found: dict[str, Any] = {}
    for name in _CAPABILITY_NAMES:
        methods = GROUPS.get(name, (name,))
        missing = [one for one in methods if not callable(getattr(term, one, None))]
        if missing and methods[-1] not in missing:
            raise _incomplete(term, methods[-1], missing)
        found[name] = None if missing else term if name in GROUPS else getattr(term, name)
    if found["single_sample"] is None and found["history"] is None and not hasattr(term, "fill"):
        found["single_sample"] = SampleFromEntries(term)
    if found["step"] is not None and found["history"] is None:
        raise _incomplete(term, "step", list(GROUPS["history"]))
    unknown = [entry for entry in learned_fields(term).values() if entry not in _CONTEXT_ENTRIES]
    if unknown:
        raise ModelError(f"term '{term_name(term)}' takes '{unknown[0]}' from data, which is not one of "
                         f"{', '.join(_CONTEXT_ENTRIES)}", code="incomplete-term")
    return Capabilities(**found)


def _incomplete(term: Term, present: str, missing: list[str]) -> ModelError:
    return ModelError(f"term '{term_name(term)}' has a method `{present}` but not `{'`, `'.join(missing)}`",
                      f"define {'it' if len(missing) == 1 else 'them'} too, or remove `{present}`",
                      code="incomplete-term")


_CAPABILITY_NAMES = tuple(one.name for one in fields(Capabilities))
_CONTEXT_ENTRIES = tuple(one.name for one in fields(DataContext))
