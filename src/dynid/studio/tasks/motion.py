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
from dynid.excitation.search.experiment_design import BestSoFar
from dynid.excitation.trajectories.families import family_named
from dynid.files import write_json
from dynid.model.registry import FRICTION
from dynid.progress import Progress
from dynid.report.pages.motion import MotionData, write_motion
from dynid.runs.models import make_robot
from dynid.runs.motion_design import MotionRequest, design_motion, motion_facts
from dynid.studio.confinement import Confinement
from dynid.studio.tasks.log import replay
from dynid.studio.tasks.numbers import plain
from dynid.studio.tasks.run import keep_meta
from dynid.studio.tasks.settings import run_settings
from dynid.studio.voice import ProgressChannel

_PLOT_HZ, _PLOT_POINTS, _PLOT_DIGITS, _MAX_SECONDS, _PROGRESS_SECONDS = 100.0, 2000, 6, 3600.0, 0.5


def motion_job(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Design a motion for the robot of the run, inside its limits. Return the id of the result."""
    settings = run_settings(bounds, logs=False)
    request, command = _request(params, settings.robot, bounds)
    live = _Live(voice, request.search.budget or _MAX_SECONDS)
    with bounds.trusting(settings.robot):
        robot = make_robot(settings, allows_free_base=True)
        with live:
            listened = replace(request, search=replace(request.search, best=live.take))
            data = design_motion(robot, listened, live.progress)
    folder = Path("results") / str(params["id"])
    folder.mkdir(parents=True)
    data.excitation.save(folder / "motion.csv")
    data.excitation.save(folder / "motion.yaml")
    write_motion(data, folder / "report.html")
    write_json(folder / "results.json", motion_facts(data))
    write_json(folder / "motion.json", {**_curves(data), "history": live.history, "command": command,
                                        "standard_errors": live.standard_errors})
    keep_meta(folder, "motion", data.excitation.criterion, robot.name, None)
    return {"result": folder.name, "sentence": f"condition number {data.excitation.condition:.4g}",
            "data": {"condition": plain(data.excitation.condition), "history": live.history,
                     "standard_errors": live.standard_errors}}


def _request(params: Mapping[str, Any], robot: str, bounds: Confinement) -> tuple[MotionRequest, str]:
    """Return the checked request of the page, and the equivalent command line."""
    def number(name: str, default: float, low: float, high: float) -> float:
        value = params.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise DynidError(f"{name} must be a number from {low:g} to {high:g}", where=f"motion.{name}")
        return float(value)

    duration, harmonics = number("duration", 10.0, 0.5, 600.0), int(number("harmonics", 5, 1, 50))
    seconds, seed = number("seconds", 20.0, 0.5, _MAX_SECONDS), int(number("seed", 0, 0, 2 ** 31))
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
    words = ["dynid", "excite", robot, "-o", "motion.csv", "--kind", family, "--duration", f"{duration:g}",
             "--harmonics", str(harmonics), "--budget", f"{seconds:g}", "--seed", str(seed),
             *(["--friction", ",".join(kinds)] if kinds else []), *(["--rotor"] if params.get("rotor") else []),
             *(["--criterion", str(criterion)] if criterion else []),
             *(["--limits", str(limits)] if limits else []),
             *(["--standing", ",".join(standing.feet)] if standing else []),
             *(["--sole", ",".join(f"{edge:g}" for edge in standing.sole)] if standing and standing.sole else [])]
    command = shlex.join(words)
    return MotionRequest(friction=tuple(kinds), rotor=bool(params.get("rotor")), limits=limits, criterion=criterion,
                         family=family_named(family, duration, harmonics), rate=_PLOT_HZ,
                         search=Search(seconds, None, seed), command=command, standing=standing), command


def _standing(params: Mapping[str, Any]) -> Standing | None:
    """Return the standing feet of a robot with a free base, from frames and sole sizes separated by commas."""
    feet, sizes = (tuple(part.strip() for part in str(params.get(name) or "").split(",") if part.strip())
                   for name in ("standing", "sole"))
    if not feet:
        return None
    try:
        sole = tuple(map(float, sizes))
    except ValueError:
        raise DynidError("the size of the soles must be two numbers, length and width in m",
                         "give for example 0.2, 0.1", where="motion.sole") from None
    return Standing(feet, cast("tuple[float, float]", sole) if sole else None)


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
    return {"t": plain(t, 9), "q": plain(at.q.T, _PLOT_DIGITS), "dq": plain(at.dq.T, _PLOT_DIGITS),
            "ddq": plain(at.ddq.T, _PLOT_DIGITS), "joints": list(data.excitation.limits.names),
            **replay(data.robot, t, at.q, base), "condition": plain(data.excitation.condition),
            "limits": motion_facts(data)["limits"], "notes": list(data.notes)}
