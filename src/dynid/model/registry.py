"""Kinds of terms by name, as used in robot files, run files and on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from dynid.errors import ModelError, did_you_mean, require_type
from dynid.model.delay import Delay
from dynid.model.friction import (
    AsymmetricCoulomb,
    AsymmetricViscous,
    Coulomb,
    CoupledWrist,
    MotorSide,
    Offset,
    Stribeck,
    Viscous,
)
from dynid.model.friction_curve import FrictionCurve, ViscousDifference
from dynid.model.load_friction import LoadFriction
from dynid.model.lugre_friction import Dahl, Hysteresis, LuGreFriction
from dynid.model.shaped_friction import BreakawayFriction, ExponentialStribeck, PolynomialFriction
from dynid.model.sign import Sign
from dynid.model.springs import Cable, Counterbalance, GasSpring, PolynomialSpring, RippleTorque
from dynid.model.temperature import Drift, TemperatureFriction
from dynid.model.term import Term
from dynid.model.terms import Payload, RigidBodies, RotorInertia, Spring
from dynid.plugins import load_plugin, plugin_names
from dynid.robot import Robot

KINDS: dict[str, Any] = {term.kind: term for term in (RigidBodies, RotorInertia, Payload, Spring, PolynomialSpring,
                                                      GasSpring, Counterbalance, MotorSide, CoupledWrist)}
FRICTION: dict[str, Any] = {}  # kinds that need no options
AnyTerm = TypeVar("AnyTerm", bound=type)


def register_term(term: AnyTerm) -> AnyTerm:
    """Register a dataclass of a term by its `kind` for robot files, run files and `make_terms` (decorator)."""
    kind = getattr(term, "kind", None)
    if not isinstance(kind, str) or not kind:
        raise ModelError(f"the term {term.__name__} needs a `kind`, its name in files", code="missing-term-kind")
    if KINDS.get(kind, term).__qualname__ != term.__qualname__:
        raise ModelError(f"a term of kind '{kind}' exists already: {KINDS[kind].__qualname__}",
                         code="repeated-term-kind")
    KINDS[kind] = FRICTION[kind] = term
    return term


for _term in (Viscous, Coulomb, Offset, AsymmetricCoulomb, AsymmetricViscous, ViscousDifference, Stribeck,
              FrictionCurve, LoadFriction, RippleTorque, Cable, Delay, Dahl, LuGreFriction, Hysteresis,
              PolynomialFriction, ExponentialStribeck, Drift, TemperatureFriction, BreakawayFriction):
    register_term(_term)


def _plugin_term(kind: str) -> None:
    """Register the term of the given kind if a plugin provides it."""
    if kind not in plugin_names("dynid.terms"):
        return
    term = load_plugin("dynid.terms", kind)
    if getattr(term, "kind", None) != kind:
        raise ModelError(f"a plugin provides a term '{kind}' whose `kind` is {getattr(term, 'kind', None)!r}",
                         "its entry point must have the name of its kind", code="misnamed-plugin")
    if kind not in KINDS:  # its module may have registered it
        register_term(term)


def term_from_table(table: Mapping[str, Any]) -> Term:
    """Return a term from its table in a robot file or run file, such as {kind = "coulomb", sign = "tanh"}: the kind of
    the term and its options."""
    options = dict(table)
    kind = options.pop("kind", None)
    if kind not in KINDS:
        _plugin_term(str(kind))
    if kind not in KINDS:
        raise ModelError(f"there is no term of kind '{kind}'; there are {', '.join(KINDS)}")
    if "sign" in options:
        options["sign"] = Sign(**options["sign"]) if isinstance(options["sign"], Mapping) else Sign(options["sign"])
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    try:
        return KINDS[kind](**options)
    except TypeError:
        known = ", ".join(f.name for f in fields(KINDS[kind]))
        raise ModelError(f"term '{kind}' was given {', '.join(options) or 'nothing'}; it takes {known}") from None


def make_terms(robot: Robot, friction: Iterable[str] = (), rotor: bool = False, defaults: bool = False,
               extra: Sequence[Mapping[str, Any] | Term] = ()) -> tuple[Term, ...]:
    """Return the terms of a standard model: rigid bodies, rotor inertias, friction by kind, then the `extra` terms.

    With `defaults`, terms of the robot file are added, except for kinds that are also named in the call.
    """
    require_type(robot, Robot, "make_terms", "make_terms(dynid.Robot.load('robot.urdf'), friction=['viscous'])")
    wanted: list[Term] = [RigidBodies()]
    if rotor:
        wanted.append(RotorInertia())
    for kind in friction.split(",") if isinstance(friction, str) else friction:
        if kind not in FRICTION:
            _plugin_term(kind)
        if kind not in FRICTION:
            raise ModelError(f"there is no friction term '{kind}'; {did_you_mean(kind, FRICTION)}")
        wanted.append(FRICTION[kind]())
    if defaults:
        present = {getattr(term, "kind", "") for term in wanted}
        wanted += [term_from_table(table) for table in robot.terms if table.get("kind") not in present]
    wanted += [term_from_table(item) if isinstance(item, Mapping) else item for item in extra]
    return tuple(wanted)
