"""Momentum form of a model: torques as the rate of a momentum plus a force, without accelerations.

A term with torque M(q) ddq + r(q, dq) has the momentum P = M dq. With D = dM/dt dq, the rate of P at constant velocity,

    tau = d/dt P + F,   F = r - D,        and if M is symmetric        tau . dq = d/dt (dq . P / 2) + G . dq,

with G = r - D/2, which is the gravity torque for bodies, and the friction torque itself for friction. The method
`momentum` of terms with kernels gives P and F. Terms whose M does not depend on the posture have D = 0; for all other
terms, D is a finite difference along the motion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from dynid.arrays import Array, Ints
from dynid.errors import ModelError
from dynid.model.completion import LinearModel, complete, robot_model
from dynid.model.data_context import depends_on_estimate
from dynid.model.model import Model
from dynid.model.term import Entries, MotionSegment, Term, fill_entries, probing_motion
from dynid.model.term_capabilities import Capabilities, History, capabilities, term_name
from dynid.robot.free_base import refuse_free_base

MOMENTUM_STEP = 1e-3  # rad or m, of sixth-order differences: rounding errors about 1e-13, truncation errors about 1e-16
_DIFFERENCE_WEIGHTS = ((1, 3.0 / 4.0), (2, -3.0 / 20.0), (3, 1.0 / 60.0))
TORQUE_AGREEMENT = 1e-9  # relative, of torques that should agree
_PROBED_STATES = 6

Fill = Callable[[Array, Array, Array, Ints, Array, Array | None], None]  # arguments: q, dq, ddq, place, out, memory
LoadEntries = Callable[[Array, Array], Entries]  # arguments: torques transmitted by the gears, dq
Own = Callable[..., None]  # momentum(robot, q, dq, place, momentum, force, changing) of a term


@dataclass(frozen=True, eq=False)
class TermShare:
    """A term of the model in momentum form.

    Attributes:
        columns: indices of the term's parameters in the model.
        channels: slice of the term's memory within the memory of the model.
        fill: function that writes the regressor entries of the term.
        own: the term's own function that writes its momentum, or None.
        accelerating: whether the term has a momentum.
        varying: whether the inertia of the term depends on the posture.
    """

    columns: Ints
    channels: slice
    fill: Fill
    own: Own | None
    accelerating: bool
    varying: bool


@dataclass(frozen=True, eq=False)
class MomentumForm:
    """The momentum form of a model, created once and evaluated for each batch of samples.

    Attributes:
        model: the model.
        parts: terms of the model in momentum form.
        under_load: load-dependent terms, each as a function of the transmitted torques, with indices of its parameters.
    """

    model: LinearModel
    parts: tuple[TermShare, ...]
    under_load: tuple[tuple[LoadEntries, Ints], ...] = ()

    @staticmethod
    def from_model(model: LinearModel, *, symmetric: bool = False, is_load_given: bool = False) -> MomentumForm:
        """Return the momentum form of a model; raise an error if a term has no momentum form.

        symmetric: whether to require a symmetric inertia, that is, a kinetic energy. is_load_given: whether `fill` will
        be called with the torques that the gears transmit, which load-dependent friction needs.
        """
        whole_robot = robot_model(model)
        if whole_robot is None:
            every = np.arange(len(model.parameters))
            postures = np.random.default_rng(0).normal(size=(_PROBED_STATES, model.dof))
            whole = _part(complete(model).fill, None, every, slice(0, 0), postures, "the model", symmetric)
            return MomentumForm(model, (whole,))
        robot = whole_robot.robot
        refuse_free_base(robot, "the momentum form of the equations")
        parts, loaded, first = list[TermShare](), list[tuple[LoadEntries, Ints]](), 0
        for term, columns in whole_robot.parts:
            own = capabilities(term)
            count = 0 if own.history is None else own.history.channels(robot)
            channels, first = slice(first, first + count), first + count
            if is_load_given and own.load is not None:
                loaded.append((partial(own.load.under_load, robot), columns))
            else:
                parts.append(_term_part(whole_robot, term, own, columns, channels, symmetric))
        return MomentumForm(model, tuple(parts), tuple(loaded))

    def fill(self, q: Array, dq: Array, place: Ints, momentum: Array, force: Array, memory: Array | None = None, *,
             changing: bool = True, load: Array | None = None) -> None:
        """Write momentum and force of selected regressor entries; see `Model.fill`.

        q, dq (samples, dof); place (dof, parameters): the row of momentum and force (rows, samples) of each entry, -1
        for none. changing: force F with tau = d/dt P + F; otherwise G with tau . dq = d/dt (dq . P / 2) + G . dq.
        load (samples, dof): torques transmitted by the gears, for load-dependent friction.
        """
        for entries, columns in self.under_load:
            assert load is not None
            own = place[:, columns]
            momentum[own[own >= 0]], force[own[own >= 0]] = 0.0, 0.0
            for joint, parameter, column in entries(load, dq):
                if own[joint, parameter] >= 0:
                    force[own[joint, parameter]] = column
        for part in self.parts:
            own = np.ascontiguousarray(place[:, part.columns])
            if not (own >= 0).any():
                continue
            remembered = None if memory is None or part.channels.start == part.channels.stop else memory[
                :, part.channels]
            if part.own is not None:
                part.own(q, dq, own, momentum, force, changing)
            else:
                _fill(part, q, dq, own, momentum, force, remembered, 1.0 if changing else 0.5)


def _fill(part: TermShare, q: Array, dq: Array, place: Ints, momentum: Array, force: Array, memory: Array | None,
          share: float) -> None:
    """Compute momentum P and force r - share D of a term without kernels; share: 1 for F, 0.5 for G."""
    still, rows = np.zeros_like(q), place[place >= 0]
    part.fill(q, dq, still, place, force, memory)
    if not part.accelerating:
        momentum[rows] = 0.0
        return
    dense = np.full_like(place, -1)
    dense[place >= 0] = np.arange(len(rows))
    momentum[rows] = _momentum(part, q, dq, dense, len(rows), memory)
    if not part.varying:
        return
    # Differences along the motion, with a constant step in position at any speed.
    step = MOMENTUM_STEP / np.maximum(np.abs(dq).max(axis=1), 1e-12)
    for k, weight in _DIFFERENCE_WEIGHTS:
        ahead, behind = (_momentum(part, q + sign * k * step[:, None] * dq, dq, dense, len(rows), memory)
                         for sign in (1.0, -1.0))
        force[rows] -= share * weight / step * (ahead - behind)


def _momentum(part: TermShare, q: Array, dq: Array, place: Ints, rows: int, memory: Array | None) -> Array:
    """Return the momentum P (rows, samples): the inertial regressor entries for accelerations equal to dq."""
    still, with_, without = np.zeros_like(q), np.zeros((rows, len(q))), np.zeros((rows, len(q)))
    part.fill(q, still, dq, place, with_, memory)
    part.fill(q, still, still, place, without, memory)
    return with_ - without


def _term_part(model: Model, term: Term, offers: Capabilities, columns: Ints, channels: slice,
               symmetric: bool) -> TermShare:
    robot = model.robot
    name = f"term '{term_name(term)}'"
    if depends_on_estimate(term):
        raise ModelError(f"{name} depends on torques and therefore on accelerations, so its momentum is undefined; "
                         "remove it, or use equations = 'torque' (--set prepare.equations=torque)", code="no-momentum")
    if offers.history is not None and _remembers_acceleration(model, offers.history):
        raise ModelError(f"the memory of {name} depends on accelerations, so its momentum is undefined; remove the "
                         "term, or use equations = 'torque' (--set prepare.equations=torque)")
    kernel = offers.momentum if robot.followers is None else None  # kernels exist only for trees
    own: Own | None = None if kernel is None else partial(kernel, robot)

    def fill(q: Array, dq: Array, ddq: Array, place: Ints, out: Array, memory: Array | None) -> None:
        out[place[place >= 0]] = 0.0
        fill_entries(term, robot, q, dq, ddq, place, out, memory)

    return _part(fill, own, columns, channels, probing_motion(robot, _PROBED_STATES)[0], name, symmetric)


def _remembers_acceleration(model: Model, term: History) -> bool:
    rng = np.random.default_rng(0)
    t = np.arange(4 * _PROBED_STATES) / 100.0
    q, dq, ddq = rng.normal(size=(3, len(t), model.dof))
    first, second = (term.memory(model, MotionSegment(t, q, dq, x)) for x in (ddq, np.zeros_like(ddq)))
    return not np.allclose(first, second, rtol=TORQUE_AGREEMENT, atol=TORQUE_AGREEMENT)


def _part(fill: Fill, own: Own | None, columns: Ints, channels: slice, q: Array, name: str,
          symmetric: bool) -> TermShare:
    """Return a term in momentum form. Tests at postures q (probes, dof) determine whether its torque has the form
    M(q) ddq + r(q, dq), and whether M depends on q."""
    if own is not None:
        return TermShare(columns, channels, fill, own, True, True)
    memory = np.ones((_PROBED_STATES, channels.stop - channels.start)) if channels.stop > channels.start else None
    dof = q.shape[1]
    place = np.arange(dof * len(columns), dtype=np.int64).reshape(dof, len(columns))
    dq, a, b = np.random.default_rng(0).normal(size=(3, _PROBED_STATES, dof))
    still = np.zeros_like(q)

    def entries(q: Array, dq: Array, ddq: Array) -> Array:
        out = np.zeros((place.size, len(q)))
        fill(q, dq, ddq, place, out, memory)
        return out

    rest, at_rest = entries(q, dq, still), entries(q, still, still)
    by_a, by_b, by_both = (entries(q, dq, x) - rest for x in (a, b, a + b))
    size = max(float(np.abs(by_both).max(initial=0.0)), 1e-300)

    def differ(one: Array, other: Array) -> bool:
        return float(np.abs(one - other).max(initial=0.0)) > TORQUE_AGREEMENT * size

    if differ(by_a + by_b, by_both) or differ(entries(q, still, a) - at_rest, by_a):
        raise ModelError(f"the torque of {name} is not linear in the acceleration, so its momentum is undefined; "
                         "remove it, or use equations = 'torque' (--set prepare.equations=torque)", code="no-momentum")
    accelerating = bool(np.any(by_a))
    if symmetric and accelerating and differ(_work(by_a, b, dof), _work(by_b, a, dof)):
        raise ModelError(f"the inertia of {name} is not symmetric, so it has no kinetic energy; use equations = "
                         "'kernel' or 'torque'")
    elsewhere = np.roll(q, 1, axis=0)
    varying = accelerating and differ(entries(elsewhere, still, a) - entries(elsewhere, still, still), by_a)
    return TermShare(columns, channels, fill, None, accelerating, varying)


def _work(entries: Array, motion: Array, dof: int) -> Array:
    """Return the scalar products (columns, samples) of `motion` (samples, dof) with `entries` (dof columns,
    samples)."""
    return np.einsum("jcs,sj->cs", entries.reshape(dof, -1, len(motion)), motion)
