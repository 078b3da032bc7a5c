"""Main entry points: identify a robot from a log, and open a result."""

from __future__ import annotations

import os
from collections.abc import Sequence
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
                raise ModelError(f"a model is identified from samples or recordings, not from a {type(one).__name__}",
                                 "read a log with dynid.read(path, robot=robot)", code="not-samples")
    return identify_model(source, data, method, **options)


def _identify_files(source: PathLike, data: Any, method: str, options: dict[str, Any]) -> Run:
    logs = [] if data is None else list(data) if isinstance(data, list | tuple) else [data]
    for one in logs:
        if not isinstance(one, str | os.PathLike):
            raise ModelError(f"a robot file is identified from log files, not from a {type(one).__name__}",
                             "make a model of the robot: dynid.Model(dynid.Robot.load(path))", code="file-with-samples")
    friction, validate = options.pop("friction", None), options.pop("validate", None)
    words = [friction] if isinstance(friction, str) else friction
    given = {"method": None if method == "auto" else method,
             "validate_on": None if validate is None else [os.fspath(one) for one in (
                 [validate] if isinstance(validate, str | os.PathLike) else validate)],
             "model": {"friction": None if words is None else [word.strip() for one in words for word in
                                                               one.split(",")]}, **options}
    return run(run_settings(os.fspath(source), [os.fspath(one) for one in logs], given))


def load(folder: str | Path, *, trust: bool = False) -> Estimate:
    """Open a result folder of `dynid identify -o`: return the estimate with its covariance.

    trust: whether a Python file that the result names as its model may be run; without it such a result is refused.
    """
    require_type(folder, (str, Path), "load", "load('out')")
    return load_result(folder, trust=trust)[0]
