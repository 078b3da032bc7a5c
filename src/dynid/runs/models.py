"""The robot and the model of a run, including terms and models defined by the user."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np

from dynid.errors import DynidError, ModelError, NotPossibleError, RobotError
from dynid.estimate.friction_choice import REPLACED, FrictionChoice, choose_terms
from dynid.estimate.problem import find_method
from dynid.findings import Finding
from dynid.model import FlexibleModel, LinearModel, Model, make_terms
from dynid.model.registry import FRICTION
from dynid.recording import Samples
from dynid.robot import Robot, inertia_problems
from dynid.robot.check import absurd_inertias
from dynid.robot.free_base import refuse_free_base
from dynid.robot.inertia import InertiaProblem
from dynid.runs.settings import FlexibleSettings, ModelSettings, RunSettings
from dynid.validate.words import listed

MAX_FILE_FAULTS = 3  # faults of a robot file that one sentence names
AUTO, NONE = "auto", "none"  # values of friction: chosen from the data, and none at all
USUAL = ("viscous", "coulomb", "offset")
_CHOSEN_FRICTION_NOTE = ("no friction was specified, so it is chosen from the logs; specify it with --friction "
                         "viscous,coulomb or --friction none")
_DEFAULT_FRICTION_NOTE = ("no friction was specified; viscous friction, Coulomb friction and an offset are used, "
                          "because ")


def make_robot(settings: RunSettings, *, allows_free_base: bool = False,
               as_in_file: bool = False, add_finding: Callable[[Finding], None] | None = None) -> Robot:
    """Return the robot of a run, with the requested gravity and joints.

    If gravity is to be estimated, the robot has the gravity of its file. A file with absurd inertias, such as those in
    another unit, gives none: they would be the prior of links that the data do not determine.

    Args:
        settings: settings of the run.
        allows_free_base: whether a free base is supported.
        as_in_file: whether to keep absurd inertias, to show them.
        add_finding: receives the finding on the inertias of the file.
    """
    robot = Robot.load(settings.robot, fixed_base=settings.fixed_base)
    if not allows_free_base:
        refuse_free_base(robot, "this command")
    if robot.has_free_base and settings.gravity == "estimate":
        raise RobotError(f"robot '{robot.name}' has a free base with a measured orientation, so the direction of "
                         "gravity is known", "remove --gravity estimate", code="free-base-unsupported")
    if robot.has_free_base and settings.model.flexible is not None:
        refuse_free_base(robot, "a model with flexible joints")
    absurd = absurd_inertias(robot)
    if add_finding is not None and (finding := file_inertia(robot, absurd)) is not None:
        add_finding(finding)
    if absurd and not as_in_file:
        robot = robot.without_inertias()
    robot = reduced_robot(robot, settings.only, settings.lock).with_fixed_inertias(settings.fixed_inertias)
    given = settings.gravity
    return robot if given is None or given == "estimate" else robot.with_gravity(given)


def file_inertia(robot: Robot, absurd: Sequence[InertiaProblem]) -> Finding | None:
    """Return a finding on links of a robot file that are not physically consistent or do not fit its size; None if
    there are none. No inertia of the file is used if some are absurd. A link without inertia or mass is no fault."""
    wrong = [one for one in absurd or inertia_problems(robot)
             if one.kind in ("size", "triangle", "not-positive-definite") or (one.kind == "mass" and one.violation > 0)]
    if not wrong:
        return None
    links = tuple(dict.fromkeys(one.link for one in wrong))
    text = (f"The robot file is wrong: {listed([one.message for one in wrong], MAX_FILE_FAULTS)}. "
            + ("None of its inertias is used; correct the file and identify again" if absurd else
               "Values that the data do not determine follow the file; correct it") + ".")
    return Finding("file-inertia", "problem", "warning" if absurd else "info", text,
                   f"robot file ({listed(links, MAX_FILE_FAULTS)})",
                   evidence={"sizes": tuple(one.violation for one in wrong)})


def reduced_robot(robot: Robot, only: Sequence[str], lock: Mapping[str, float]) -> Robot:
    """Return the robot with only the named joints, if any are named, and with the locked joints fixed."""
    both = [name for name in only if name in lock]
    if both:
        raise RobotError(f"joint '{both[0]}' is named in `only` and in `lock`; remove it from one of them",
                         code="only-and-lock")
    return robot.only(only, lock) if only else robot.lock(lock)


def make_model(settings: RunSettings, robot: Robot | None = None) -> LinearModel:
    """Return the model of a run: a robot and terms, or that of the user's own file."""
    robot = make_robot(settings, allows_free_base=True) if robot is None else robot
    wanted = settings.model
    if wanted.python is not None:
        if not settings.trust:
            raise DynidError(f"the model is in the Python file {wanted.python}, which is not executed, because it is "
                             "named in a settings file or a result",
                             "read it, and if you trust it add --trust (in Python trust=True)", "not-trusted")
        own_model = getattr(_loaded(Path(wanted.python)), "model", None)
        if own_model is not None:
            return _checked(own_model(robot), robot, wanted.python)
    if NONE in wanted.friction:
        if len(wanted.friction) > 1:
            raise ModelError(f"friction '{NONE}' means no friction: give it alone, or give friction terms",
                             code="friction-none-and-others")
        wanted = wanted.model_copy(update={"friction": (), "own_terms": False})
    if AUTO in wanted.friction:
        raise ModelError(f"friction '{AUTO}' is chosen from logs, but no logs are given",
                         "specify the friction terms instead")
    if wanted.flexible is not None:
        return flexible_model(wanted, robot)
    own = wanted.own_terms
    if own is None:  # default: the terms of the robot file
        own = not (wanted.friction or wanted.rotor or wanted.terms)
    return Model(robot, make_terms(robot, friction=wanted.friction, rotor=wanted.rotor, defaults=own,
                                   extra=wanted.terms))


def flexible_model(wanted: ModelSettings, robot: Robot) -> FlexibleModel:
    """Return the model of a robot with flexible joints from a [model] table. Friction terms are those of the links, and
    only rigid joints have rotor inertias."""
    table = wanted.flexible or FlexibleSettings()
    asked = bool(wanted.friction or wanted.rotor or wanted.terms)
    own = [dict(item) for item in robot.terms if item.get("kind") != "rotor"
           and item.get("kind") not in wanted.friction] if wanted.own_terms or (
               wanted.own_terms is None and not asked) else []
    stiff = () if table.joints is None else tuple(name for name in robot.joint_names if name not in table.joints)
    rotors = [{"kind": "rotor", "joints": list(stiff)}] if wanted.rotor and stiff else []
    links = Model(robot, make_terms(robot, friction=wanted.friction, extra=(*rotors, *own, *wanted.terms)))
    return FlexibleModel(links, table.joints, table.friction, table.skew)


def names_friction(settings: RunSettings, robot: Robot) -> bool:
    """Return whether a run specifies friction, including "auto" and "none".

    Friction terms of the robot file count only if their kind is not among the candidates of the automatic choice.
    """
    wanted = settings.model
    if wanted.friction or wanted.python is not None or wanted.flexible is not None or wanted.own_terms is not None:
        return True
    return any(table.get("kind") in FRICTION for table in wanted.terms) or any(
        table.get("kind") in FRICTION and table.get("kind") not in REPLACED for table in robot.terms)


def first_model(settings: RunSettings, robot: Robot) -> LinearModel:
    """Return the model for the first pass over the logs, with default friction if friction is to be chosen."""
    if AUTO not in settings.model.friction and names_friction(settings, robot):
        return make_model(settings, robot)
    return make_model(with_usual_friction(settings), robot)


def with_usual_friction(settings: RunSettings) -> RunSettings:
    """Return the settings with viscous and Coulomb friction, offsets and rotor inertia in place of "auto", or in
    addition to the robot file if friction is not specified."""
    wanted = settings.model
    usual = wanted.model_copy(update={"friction": USUAL, "own_terms": AUTO not in wanted.friction, "rotor": True})
    return settings.model_copy(update={"model": usual})


def friction_of_run(settings: RunSettings, robot: Robot, samples: Sequence[Samples]
                    ) -> tuple[RunSettings, FrictionChoice | None, str]:
    """Return the settings with friction chosen from the samples if requested or not named, the choice, and a note."""
    plain = [one if one.filtered is None else replace(one, filtered=None) for one in samples]
    if AUTO in settings.model.friction:
        return *choose_friction(settings, robot, plain), ""
    if names_friction(settings, robot):
        return settings, None, ""
    why = _not_chosen(settings, robot, samples)
    if not why:
        try:
            return *choose_friction(settings, robot, plain), _CHOSEN_FRICTION_NOTE
        except NotPossibleError as problem:
            why = problem.reason
    return with_usual_friction(settings), None, _DEFAULT_FRICTION_NOTE + why


def _not_chosen(settings: RunSettings, robot: Robot, samples: Sequence[Samples]) -> str:
    """Return why unspecified friction cannot be chosen from the data; empty if it can."""
    if robot.has_free_base and not any(np.any(one.keep[:, robot.free_coordinates:]) for one in samples):
        return "the equations of the base alone do not contain friction"
    if robot.followers is not None:
        return "friction cannot be chosen for robots with dependent joints"
    if settings.gravity == "estimate":
        return "the direction of gravity is to be estimated"
    if any(one.filtered is not None for one in samples):
        return "the equations have no accelerations"
    if "torques" in find_method(settings.method).needs:
        return f"method '{settings.method}' generates its own equations"
    return ""


def choose_friction(settings: RunSettings, robot: Robot,
                    samples: Sequence[Samples]) -> tuple[RunSettings, FrictionChoice]:
    """Return the settings with the friction chosen from the samples, and the choice."""
    wanted = settings.model
    if len(wanted.friction) > 1 or wanted.python is not None or wanted.flexible is not None:
        raise ModelError(f"friction '{AUTO}' chooses all terms: give it alone, without [model] python and "
                         "[model.flexible]")
    own = [] if wanted.own_terms is False else [dict(table) for table in robot.terms]
    certain = [table for table in (*own, *wanted.terms) if table.get("kind") not in REPLACED]
    choice = choose_terms(Model(robot, make_terms(robot, rotor=wanted.rotor, extra=certain)), samples,
                          known=settings.known)
    model = wanted.model_copy(update={"friction": (), "own_terms": False, "terms": (*certain, *choice.tables)})
    return settings.model_copy(update={"model": model}), choice


def _checked(model: LinearModel, robot: Robot, source: str) -> LinearModel:
    """Return the model; raise if it is no `LinearModel` or has other joints than the robot."""
    for name in ("dof", "parameters", "regressor"):
        if not hasattr(model, name):
            raise ModelError(f"{source}: model(robot) returned a {type(model).__name__} without '{name}'; a model has "
                             "dof, parameters and regressor(q, dq, ddq)")
    if model.dof != robot.dof:
        raise ModelError(f"{source}: the model has {model.dof} joints, but robot '{robot.name}' has {robot.dof}")
    return model


def _loaded(path: Path) -> ModuleType:
    """Run a Python file of the user and return it as a module."""
    spec = spec_from_file_location(f"dynid_user_{path.stem}", path)
    if not os.path.isfile(path) or spec is None or spec.loader is None:
        raise DynidError(f"[model] python names the file {path}, which does not exist; correct its path")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except DynidError:
        raise
    except Exception as problem:  # any exception of the user's code
        raise DynidError(f"{path} could not be executed: {type(problem).__name__}: {problem}") from problem
    return module
