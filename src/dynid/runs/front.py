"""Main entry points: identify a robot from a log, and open a result."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from dynid.datasets.dataset import Dataset
from dynid.errors import ModelError, require_type
from dynid.estimate import Estimate, Problem
from dynid.estimate import identify as identify_model
from dynid.estimate.problem import Data
from dynid.model import LinearModel
from dynid.recording import Recording, Samples
from dynid.robot import Robot
from dynid.runs.arguments import run_settings
from dynid.runs.identification import Run, run
from dynid.runs.results import load as load_result

PathLike = str | os.PathLike[str]


@overload
def identify(source: PathLike, data: PathLike | Sequence[PathLike] | None = None, method: str = "auto",
             **options: Any) -> Run: ...


@overload
def identify(source: Problem | LinearModel, data: Data | None = None, method: str = "auto",
             **options: Any) -> Estimate: ...


def identify(source: Any = None, data: Any = None, method: str = "auto", **options: Any) -> Run | Estimate:
    """Identify a robot from logs, or a model from data.

    With files it works like `dynid identify` and returns the result of `dynid.run`: estimate, validation, verdict. With
    a model and samples it returns the estimate alone, see `dynid.estimate.identify`.

    Args:
        source: a robot (URDF, MJCF, TOML, built-in name), a run file, a model, or a problem.
        data: one or several logs if the source is a robot; samples if it is a model.
        method: by default chosen by cross-validation.
        options: for files: friction, such as "viscous,coulomb"; validate, logs to test the result on; settings by their
            name in a run file, such as `prepare={"cutoff": 8.0}`. For a model: options of the method.

    Raises:
        ModelError: an argument has another type.

    >>> model = dynid.Model(dynid.Robot.load("arm3r"))
    >>> q, dq, ddq = np.random.default_rng(0).normal(size=(3, 200, 3))
    >>> tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    >>> samples = dynid.Samples.from_arrays(q, dq, ddq, tau, rate=100.0)
    >>> estimate = dynid.identify(model, samples, method="ols")
    >>> bool(np.allclose(estimate.values, estimate.base.reduce(model.parameters.nominal)))
    True
    """
    if isinstance(source, str | os.PathLike):
        return _identify_files(source, data, method, options)
    if isinstance(source, Robot):
        raise ModelError("identify takes a model, not a robot", "call identify(dynid.Model(robot), samples), or "
                         "identify('robot.urdf', 'log.csv') for a complete identification", code="robot-for-model")
    if not isinstance(source, Problem) and not hasattr(source, "parameters"):
        given = "" if source is None else f", not {type(source).__name__}"
        raise ModelError(f"identify takes the path of a robot, a model or a problem{given}",
                         "call identify('robot.urdf', 'log.csv'), or identify(model, samples)")
    if not isinstance(source, Problem):
        for one in data if isinstance(data, list | tuple) else [data]:
            if one is not None and not isinstance(one, Samples | Recording | Dataset):
                raise ModelError(f"a model is identified from samples or recordings, not from {_kind(one)}",
                                 _in_memory_advice(one, recording=True), code="not-samples")
    return identify_model(source, data, method, **options)


def _identify_files(source: PathLike, data: Any, method: str, options: dict[str, Any]) -> Run:
    logs = [] if data is None else list(data) if isinstance(data, list | tuple) else [data]
    for one in logs:
        if not isinstance(one, str | os.PathLike):
            raise ModelError(f"a robot file is identified from log files, not from {_kind(one)}",
                             _in_memory_advice(one), code="file-with-samples")
    friction, validate = options.pop("friction", None), options.pop("validate", None)
    for one in validate if isinstance(validate, list | tuple) else [validate]:
        if one is not None and not isinstance(one, str | os.PathLike):
            raise ModelError(f"validate takes log files, not {_kind(one)}", _in_memory_advice(one),
                             code="file-with-samples")
    if isinstance(options.get("output"), str | os.PathLike):
        raise ModelError("the option output is a table of settings, not a folder",
                         "write the result folder with dynid.runs.results.save(run, 'out')", code="folder-as-output")
    words = [friction] if isinstance(friction, str) else friction
    given = {"method": None if method == "auto" else method,
             "validate_on": None if validate is None else [os.fspath(one) for one in (
                 [validate] if isinstance(validate, str | os.PathLike) else validate)],
             "model": {"friction": None if words is None else [word.strip() for one in words for word in
                                                               one.split(",")]}, **options}
    return run(run_settings(os.fspath(source), [os.fspath(one) for one in logs], given))


def _kind(value: Any) -> str:
    """Return the type of an argument with its article, for messages."""
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' or name == 'ndarray' else 'a'} {name}"


def _in_memory_advice(data: Any, *, recording: bool = False) -> str:
    """Return advice on how to convert data in memory to an argument that `identify` accepts.

    recording: whether the source is a model, which takes a recording; otherwise it is a robot, which takes a file.
    """
    if hasattr(data, "to_csv") and hasattr(data, "columns"):
        return ("make a recording: dynid.Recording.from_frame(frame, robot=robot)" if recording else
                "save it with frame.to_csv('log.csv'), and call identify('robot.urdf', 'log.csv')")
    if isinstance(data, Mapping):
        return ("make a recording: dynid.Recording(time, positions, torques)" if recording else
                "save it with numpy.savez('log.npz', **arrays), with keys such as time, q and tau, and call "
                "identify('robot.urdf', 'log.npz')")
    if isinstance(data, Recording | Samples):
        return "make a model of the robot: dynid.Model(dynid.Robot.load(path))"
    if hasattr(data, "__array__"):
        return ("make a recording: dynid.Recording(time, positions, torques)" if recording else
                "save the arrays with numpy.savez('log.npz', time=t, q=positions, tau=torques), and call "
                "identify('robot.urdf', 'log.npz')")
    return "read a log with dynid.read(path, robot=robot)" if recording else "give the path of the log"


def load(folder: str | Path, *, trust: bool = False) -> Estimate:
    """Open a result folder of `dynid identify -o`: return the estimate with its covariance.

    trust: whether a Python file that the result names as its model may be run; without it such a result is refused.
    """
    require_type(folder, (str, Path), "load", "load('out')")
    return load_result(folder, trust=trust)[0]
