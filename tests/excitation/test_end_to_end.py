"""From the design of a motion to the parameters identified on the virtual robot that ran it."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimate import Estimate
from dynid.estimate.problem import Problem, identify
from dynid.excitation import (
    Fourier,
    FourierSeries,
    Limits,
    Measurement,
    Search,
    Trajectory,
    check_limits,
    excite,
    magnitudes,
)
from dynid.model import Model, make_terms
from dynid.recording.sample_preparation import prepare
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.simulation import ComputedTorque, Reference, VirtualRobot


@pytest.mark.slow
def test_twenty_seconds_of_the_lwr_beat_random_series() -> None:
    """Against random series as in Simionato, eq. 5.1 and table 5.1, of the same length, on the same machine."""
    robot = Robot.builtin("kuka-lwr4")
    model = Model(robot, make_terms(robot, defaults=True))
    base, theta = base_parameters(model), model.parameters.nominal
    noise = np.array([0.5, 0.5, 0.3, 0.3, 0.1, 0.1, 0.05])
    machine = VirtualRobot(model, theta, ComputedTorque(model, theta, 400.0, 40.0), encoder=1e-5, torque_noise=noise)

    def identified(trajectory: Trajectory) -> Estimate:
        q, dq, ddq, _ = trajectory.at(np.arange(10001) / 500.0)
        log = machine.record(Reference.from_arrays(q, dq, ddq, rate=500.0), seed=1)
        return identify(Problem.from_model(model, prepare(log), base=base), method="wls")

    found = excite(model, family=Fourier(20.0, 8), criterion="a", measurement=Measurement(noise=noise),
                   search=Search(budget=None, rounds=1))
    ours = identified(found.core)
    rng, theirs = np.random.default_rng(2), []
    while len(theirs) < 3:
        a, b, q0 = rng.uniform(-0.5, 0.5, (7, 5)), rng.uniform(-0.5, 0.5, (7, 5)), rng.uniform(-0.5, 0.5, 7)
        series = FourierSeries(a, b, q0, 2.0 / 0.15, 1.5)
        if check_limits(series, Limits.from_robot(robot)).ok:
            theirs.append(identified(series))
    scale = magnitudes(base, robot)
    typical = np.median([one.std for one in theirs], axis=0)
    assert np.median(typical / ours.std) > 2.0
    assert (typical / scale).max() > 2.0 * (ours.std / scale).max()
    # The truth is where the deviations say; the simulated dry friction of the light joint 7 is a smooth one.
    kept = [k for k, name in enumerate(base.names) if name not in ("Fc7", "Fv7")]
    off = ((ours.values - base.reduce(theta)) / ours.std)[kept]
    assert np.sqrt(np.mean(off ** 2)) < 2.0
