"""Motions of robots with a free base whose feet stand still, for the command line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation import Measurement, Standing, excite
from dynid.excitation.limits.limits_file import space_notes
from dynid.excitation.standing.stance_design import home_limit, limits_with_base
from dynid.regression import base_parameters
from dynid.report.pages.motion import MotionData
from dynid.robot import FREE_COORDINATES as SIX
from dynid.robot import Robot
from dynid.runs.motion_design import INTERRUPTED, MotionRequest, limits_for, motion_data, speed_notes, terms_model
from dynid.runs.safe_motion import careful, checked, with_warnings


def standing_motion(robot: Robot, request: MotionRequest, standing: Standing) -> MotionData:
    """Return the motion with standing feet that determines a robot's parameters best, with the data of its page."""
    if request.improve is not None:
        raise DynidError("a motion with standing feet is not designed from an earlier result", "leave --improve out; "
                         "design a further motion with another --seed, other feet with --standing or a larger --sway "
                         "and --tilt, and identify both logs together: dynid identify ROBOT LOG1 LOG2",
                         code="free-base-unsupported")
    if request.safety.box is not None or request.safety.floor is not None:
        raise DynidError("--box and --floor are in the frame of a fixed base; with --standing the feet are on the "
                         "floor",
                         "leave them out", code="free-base-unsupported")
    standing.contacts(robot)  # checked before any long computation
    model = terms_model(robot, request.friction, request.rotor)
    limits, margin_note = limits_for(robot, request.limits, request.margin, request.safety)
    if request.home is not None:
        standing = replace(standing, home=tuple(map(float, np.asarray(request.home, dtype=float).ravel())))
    limit, home_notes = home_limit(model, standing, limits, seed=request.search.seed)
    home = limit.support.stance.home
    standing = replace(standing, home=tuple(home[7:].tolist()))
    limits = limits_with_base(limits, standing)
    ranges, care = careful(limits, robot, request.safety, np.concatenate([np.zeros(SIX), home[7:]]),
                           request.limits is not None)
    limits = replace(ranges, lower=_joined(limits.lower, ranges.lower), upper=_joined(limits.upper, ranges.upper))
    found = excite(model, limits, family=request.family, criterion=request.criterion or "a",
                   measurement=Measurement(request.rate, None if request.noise is None else np.asarray(request.noise)),
                   search=request.search, standing=standing)
    data = motion_data(robot, found, request.noise is not None, request.command)
    whole = len(base_parameters(model))
    fewer = () if len(found.base) >= whole else (
        f"{len(found.base)} of the robot's {whole} base parameters are excited while these feet stand; lift feet one "
        "after the other in another log for the rest",)
    needed = max(usage.value for usage in found.report.usages if usage.kind == "friction")
    ground = (f"the ground must have a friction coefficient of at least {needed:.2g} (the search allows "
              f"{standing.friction:g}, --friction-cone), and the centre of pressure stays {1000 * standing.margin:.0f} "
              "mm inside the support polygon (--support-margin), both with the masses of the robot file")
    notes = (*found.report.unchecked, *(INTERRUPTED if found.interrupted else ()), *space_notes(limits.space), ground,
             *home_notes, *fewer, *speed_notes(found), *data.notes, *care, *margin_note)
    itself = "" if limits.space is not None and limits.space.self_collision else "the robot itself and "
    return with_warnings(replace(data, notes=notes, checked=checked(limits),
                                 unchecked=f"NOT checked against {itself}objects around it"))


def _joined(base: Array, joints: Array) -> Array:
    """Return limits (6 + n,) of the base from one array and of the joints from another."""
    return np.concatenate([base[:SIX], joints[SIX:]])
