"""Search for an exciting motion as a job with live numbers."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from dynid.errors import DynidError
from dynid.excitation import Search, Standing
from dynid.excitation.information import nominal_base_values
from dynid.excitation.limits.workspace import upward
from dynid.excitation.search.experiment_design import BestSoFar
from dynid.excitation.trajectories.families import family_named
from dynid.files import write_json
from dynid.model.registry import FRICTION
from dynid.progress import Progress
from dynid.report.pages.motion import MotionData, write_motion
from dynid.runs.models import make_robot
from dynid.runs.motion_design import MotionRequest, design_motion, motion_facts
from dynid.runs.safe_motion import Safety, height_words, safety_sentences
from dynid.runs.settings import RunSettings
from dynid.studio.confinement import Confinement
from dynid.studio.tasks.log import replay
from dynid.studio.tasks.numbers import plain
from dynid.studio.tasks.robot import tree_positions
from dynid.studio.tasks.run import keep_meta
from dynid.studio.tasks.settings import run_settings
from dynid.studio.voice import ProgressChannel
from dynid.studio.workspace import MOTION_FILES

_PLOT_HZ, _PLOT_POINTS, _PLOT_DIGITS, _MAX_SECONDS, _PROGRESS_SECONDS = 100.0, 2000, 6, 3600.0, 0.5
_MAX_METRES = 100.0  # m: largest coordinate of the surroundings of a robot
# Numbers of standing feet: field of the page -> field of `Standing`, smallest and largest value.
_STANDING: Mapping[str, tuple[str, float, float]] = {
    "friction_cone": ("friction", 0.0, 10.0), "support_margin": ("margin", 0.0, 1.0), "sway": ("sway", 0.0, 10.0),
    "tilt": ("tilt", 0.0, 3.0)}


def motion_job(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Design a motion for the robot of the run, inside its limits. Return the id of the result."""
    settings = run_settings(bounds, logs=False)
    request, gravity = _request(params, settings, bounds)
    live = _Live(voice, request.search.budget or _MAX_SECONDS)
    with bounds.trusting(settings.robot):
        robot = make_robot(settings, allows_free_base=True)
        robot = robot if gravity is None else robot.with_gravity(gravity)
        with live:
            listened = replace(request, search=replace(request.search, best=live.take))
            data = design_motion(robot, listened, live.progress)
    folder = Path("results") / str(params["id"])
    folder.mkdir(parents=True)
    for name in MOTION_FILES:
        data.excitation.save(folder / name)
    write_motion(data, folder / "report.html")
    write_json(folder / "results.json", motion_facts(data))
    write_json(folder / "motion.json", {**_curves(data), "history": live.history, "command": request.command,
                                        "standard_errors": live.standard_errors})
    keep_meta(folder, "motion", data.excitation.criterion, robot.name, None, warnings=list(data.warnings))
    return {"result": folder.name, "grade": "fair" if data.warnings else "good",
            "sentence": " ".join([*data.warnings, f"condition number {data.excitation.condition:.4g}"]),
            "data": {"condition": plain(data.excitation.condition), "history": live.history,
                     "standard_errors": live.standard_errors}}


def _number(params: Mapping[str, Any], name: str, low: float, high: float) -> float | None:
    """Return a number of the page between two bounds, or None if its field is empty."""
    value = params.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise DynidError(f"{name.replace('_', ' ')} must be a number from {low:g} to {high:g}", where=f"motion.{name}")
    return float(value)


def _numbers(params: Mapping[str, Any], name: str, count: int | None = None) -> tuple[float, ...] | None:
    """Return numbers separated by commas, or None if the field is empty. count: how many numbers there must be."""
    parts = [part.strip() for part in str(params.get(name) or "").split(",")]
    if parts == [""]:
        return None
    try:
        values = tuple(map(float, parts))
    except ValueError:
        values = ()
    if not values or not np.isfinite(values).all() or count not in (None, len(values)):
        raise DynidError(f"{name.replace('_', ' ')} must be {count or 'finite'} numbers, separated by commas",
                         where=f"motion.{name}")
    return values


def _request(params: Mapping[str, Any], settings: RunSettings, bounds: Confinement
             ) -> tuple[MotionRequest, tuple[float, ...] | None]:
    """Return the checked request of the page with the equivalent command line, and gravity (3,), m/s^2, or None for
    that of the robot file."""
    def number(name: str, default: float, low: float, high: float) -> float:
        value = _number(params, name, low, high)
        return default if value is None else value

    duration, harmonics = number("duration", 10.0, 0.5, 600.0), int(number("harmonics", 5, 1, 50))
    seconds, seed = number("seconds", 20.0, 0.5, _MAX_SECONDS), int(number("seed", 0, 0, 2 ** 31))
    safety = Safety(_numbers(params, "box", 6), _number(params, "floor", -_MAX_METRES, _MAX_METRES),
                    _number(params, "radius", 0.0, _MAX_METRES), _number(params, "speed", 0.0, 1.0),
                    bool(params.get("full_range")))
    margin, home = _number(params, "margin", 0.0, 0.49), _numbers(params, "home")
    gravity = _numbers(params, "gravity", 3) or (settings.gravity if isinstance(settings.gravity, tuple) else None)
    kinds = params.get("friction") or []
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    unknown = next((kind for kind in kinds if kind not in FRICTION), None)
    if unknown is not None:
        raise DynidError(f"there is no friction term '{str(unknown)[:40]}'", f"there are "
                         f"{', '.join(FRICTION)}", where="motion.friction")
    family, criterion = str(params.get("family") or "fourier"), params.get("criterion") or None
    limits, standing = params.get("limits") or None, _standing(params)
    if limits is not None:
        limits = bounds.uploaded(str(limits), "limits file", "motion.limits")
    options = {
        "kind": family, "duration": duration, "harmonics": harmonics, "budget": seconds, "seed": seed,
        "friction": ",".join(kinds) or None, "rotor": bool(params.get("rotor")), "criterion": criterion,
        "limits": limits, "margin": margin, "floor": safety.floor, "box": safety.box, "radius": safety.radius,
        "speed": safety.speed, "full-range": safety.full_range, "home": home, "gravity": gravity,
        **({} if standing is None else {
            "standing": ",".join(standing.feet), "sole": standing.sole,
            **{name.replace("_", "-"): _number(params, name, *span) for name, (_, *span) in _STANDING.items()}})}
    command = shlex.join(["dynid", "excite", settings.robot, "-o", MOTION_FILES[0], *(
        word for name, value in options.items() for word in _option_words(name, value))])
    return MotionRequest(
        friction=tuple(kinds), rotor=bool(params.get("rotor")), limits=limits, margin=margin, criterion=criterion,
        home=home, family=family_named(family, duration, harmonics), search=Search(seconds, None, seed), rate=_PLOT_HZ,
        command=command, safety=safety, standing=standing), gravity


def _option_words(name: str, value: Any) -> list[str]:
    """Return an option and its value as words of a command line; none without a value."""
    if value is None or value is False:
        return []
    if value is True:
        return [f"--{name}"]
    values = value if isinstance(value, tuple) else (value,)
    return [f"--{name}", ",".join(f"{one:.12g}" if isinstance(one, float) else str(one) for one in values)]


def _standing(params: Mapping[str, Any]) -> Standing | None:
    """Return the standing feet of a robot with a free base, from frames and sole sizes separated by commas."""
    feet = tuple(part.strip() for part in str(params.get("standing") or "").split(",") if part.strip())
    if not feet:
        return None
    sole = cast("tuple[float, float] | None", _numbers(params, "sole", 2))
    given = {name: _number(params, field, *span) for field, (name, *span) in _STANDING.items()}
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return Standing(feet, sole, **values)


class _Live:
    """Progress of a search: best condition number so far over time, and expected standard errors."""

    def __init__(self, voice: ProgressChannel, budget: float) -> None:
        self._voice, self._budget = voice, budget
        self._sentence, self._share = "building the model", 0.0
        self.progress = Progress(self._say)
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)
        self.history: list[list[float]] = []
        self.standard_errors: list[dict[str, Any]] = []

    def __enter__(self) -> _Live:
        self._clock.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._over.set()
        self._clock.join()

    def _tick(self) -> None:
        """Report progress regularly, even without an improvement."""
        began = time.monotonic()
        while not self._over.wait(_PROGRESS_SECONDS):
            self.progress(self._sentence, min(0.99, (time.monotonic() - began) / self._budget))

    def _say(self, sentence: str, share: float) -> None:
        self._sentence, self._share = sentence, share
        self._voice.progress(sentence, share)

    def take(self, best: BestSoFar) -> None:
        """Report a better motion that the search has found."""
        self.history.append([round(best.seconds, 3), float(best.condition)])
        values = nominal_base_values(best.base)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = 100.0 * best.std / np.abs(values)
        self.standard_errors = [{"name": name, "unit": unit, "std": plain(std, 4), "relative": plain(share, 4)}
                           for name, unit, std, share in zip(best.base.names, best.base.units, best.std,
                                                             relative, strict=True)]
        self._voice.progress(self._sentence, self._share, {
            "condition": plain(best.condition), "history": self.history, "standard_errors": self.standard_errors})


def _curves(data: MotionData) -> dict[str, Any]:
    """Return the motion sampled for plots and replay."""
    path = data.excitation.trajectory
    t = np.linspace(0.0, path.duration, min(_PLOT_POINTS, max(2, round(path.duration * _PLOT_HZ))))
    at = path.at(t)
    base = data.excitation.configurations(t)[:, :7] if data.robot.has_free_base else None
    return {"surroundings": _surroundings(data), "warnings": list(data.warnings),
            "sentences": list(safety_sentences(data)), "t": plain(t, 9), "q": plain(at.q.T, _PLOT_DIGITS),
            "dq": plain(at.dq.T, _PLOT_DIGITS), "ddq": plain(at.ddq.T, _PLOT_DIGITS),
            "joints": list(data.excitation.limits.names), **replay(data.robot, t, at.q, base),
            "condition": plain(data.excitation.condition), "limits": motion_facts(data)["limits"],
            "notes": list(data.notes)}


def _surroundings(data: MotionData) -> dict[str, Any]:
    """Return floor, box, walls and obstacles of a motion for the 3-D scene, m, and its lowest posture.

    Half-spaces along the axes are given as one box `lower`, `upper` (3,), without a number for an open side.
    """
    space = data.excitation.limits.space
    lower, upper, walls = [-np.inf] * 3, [np.inf] * 3, []
    for plane in () if space is None else space.planes:
        axis = int(np.argmax(np.abs(plane.normal)))
        if abs(plane.normal[axis]) < 1.0 - 1e-9:
            walls.append({"normal": plain(plane.normal), "offset": plane.offset})
        elif plane.normal[axis] > 0:
            lower[axis] = max(lower[axis], plane.offset)
        else:
            upper[axis] = min(upper[axis], -plane.offset)
    obstacles = [{"a": plain(one.a), "b": plain(one.b), "radius": one.radius}
                 for one in (() if space is None else space.obstacles)]
    low = data.lowest
    lowest = None if low is None else {
        **low.to_dict(), "foot": plain(np.array(low.point) - (low.height - (low.floor or 0.0)) * upward(data.robot)),
        "words": f"lowest point: {height_words(low)}", "q_tree": plain(
        tree_positions(data.robot, data.excitation.configurations(np.array([low.time])))[0])}
    return {"lower": plain(lower), "upper": plain(upper), "walls": walls, "obstacles": obstacles, "lowest": lowest}
