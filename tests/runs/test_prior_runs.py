"""A new robot that starts from its fleet: no worse than alone, and said so where it is not like its fleet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fleets import RATE, Fleet, pool
from motions import fourier, low_passed
from refusals import refused

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.earlier import with_prior
from dynid.estimate.whole_body import with_facts
from dynid.fleet.run import FleetOptions, run_fleet
from dynid.fleet.save import FOLDS, save_fleet, type_estimate
from dynid.fleet.settings import FleetSettings
from dynid.recording import Recording, Samples
from dynid.recording.write import write_npz
from dynid.regression import Regression
from dynid.runs import RunSettings, run
from dynid.workers import Workers


@pytest.fixture(scope="module")
def known_type() -> tuple[Fleet, Estimate]:
    """Twelve robots with two logs each, as the prior of others."""
    fleet, rng = Fleet.of_arms(), np.random.default_rng(3)
    robots = fleet.robots([[fleet.log(fleet.own(rng), 10.0, 100 * k + i, f"robot {k}") for i in range(2)]
                           for k in range(12)])
    total = Regression.from_blocks(fleet.base, [one.regression.joined(1).blocks[0] for one in robots],
                                   robots[0].regression.joints)
    return fleet, type_estimate(pool(robots), fleet.model, total)


def problem(fleet: Fleet, theta: Array, seconds: float, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    q, dq, ddq = fourier(3, seconds=seconds, seed=seed, rate=RATE, period=max(2.0, min(seconds, 10.0)))
    tau = fleet.model.inverse_dynamics(theta, q, dq, ddq)
    samples = Samples.from_arrays(q, dq, ddq, tau + low_passed(rng, tau.shape, fleet.noise, 10.0, RATE), rate=RATE)
    return Problem.from_model(fleet.model, samples, base=fleet.base)


def test_facts_on_standard_parameters_keep_their_weight(known_type: tuple[Fleet, Estimate]) -> None:
    """A known sum of masses keeps its weight as an equation when an earlier estimate becomes the prior."""
    fleet, prior = known_type
    names = fleet.model.parameters.names
    fact = np.array([[50.0 if name in ("M2", "M3") else 0.0 for name in names]]), np.array([40.0])
    own = with_facts(problem(fleet, fleet.own(np.random.default_rng(5)), 5.0, 5), [fact])
    together, _ = with_prior(own, prior)
    before, after = own.regression.prior, together.regression.prior
    assert before is not None and after is not None and after.strength > 1.5
    for one, other in zip(before.standard_rows(own.base), after.standard_rows(own.base), strict=True):
        np.testing.assert_allclose(after.strength * other, before.strength * one, rtol=1e-12)


def test_new_robots_are_no_worse_than_alone(known_type: tuple[Fleet, Estimate]) -> None:
    """Error of torques on a new motion, 20 robots each with 2 s and with 60 s."""
    (fleet, prior), rng = known_type, np.random.default_rng(17)
    for seconds, most in ((2.0, 0.5), (60.0, 1.0)):
        errors, held = [], []
        for _ in range(20):
            theta = fleet.own(rng)
            own = problem(fleet, theta, seconds, int(rng.integers(1 << 31)))
            together, _ = with_prior(own, prior)
            found = identify(together, method="wls")
            errors.append([fleet.new_errors(one.values, theta) for one in (identify(own, method="wls"), found)])
            held.append(np.abs(found.values - fleet.base.reduce(theta)) < 2.0 * found.std)
        alone, with_fleet = np.sqrt(np.mean(np.array(errors) ** 2, axis=0))
        assert with_fleet < most * alone
        assert np.all(np.array(errors)[:, 1] < 1.05 * np.array(errors)[:, 0])
        assert np.mean(held) > 0.85


def test_a_robot_that_is_not_like_its_fleet_leans_on_it_less(known_type: tuple[Fleet, Estimate]) -> None:
    fleet, prior = known_type
    theta = fleet.theta.copy()
    theta[fleet.model.parameters.bodies["link3"]] *= 1.8
    own = problem(fleet, theta, 60.0, 5)
    together, weight = with_prior(own, prior)
    usual = with_prior(problem(fleet, fleet.theta, 60.0, 5), prior)[1]
    assert weight.scale > 5.0 > 2.0 > usual.scale
    alone, found = (fleet.new_errors(identify(one, method="wls").values, theta) for one in (own, together))
    assert found < 1.05 * alone


def test_a_run_takes_the_folder_of_a_fleet(tmp_path: Path) -> None:
    fleet, rng = Fleet.of_arms(), np.random.default_rng(2)

    def write(path: Path, theta: Array, seconds: float, seed: int) -> None:
        q, dq, ddq = fourier(3, seconds=seconds, seed=seed, rate=200.0, period=4.0)
        noise = np.random.default_rng(seed).normal(size=q.shape)
        tau = fleet.model.inverse_dynamics(theta, q, dq, ddq) + 0.05 * noise
        path.parent.mkdir(parents=True, exist_ok=True)
        write_npz(Recording(np.arange(len(q)) / 200.0, q, tau, joints=fleet.model.robot.joint_names), path)

    for k in range(3):
        theta = fleet.own(rng)
        for i in range(2):
            write(tmp_path / "logs" / f"robot=R{k}" / f"{i}.npz", theta, 4.0, 10 * k + i)
    table = {"robot": "arm3r", "logs": [str(tmp_path / "logs")], "prepare": {"cutoff": 20.0}}
    save_fleet(run_fleet(FleetSettings.from_values(table), FleetOptions(tmp_path / "fleet" / FOLDS)),
               tmp_path / "fleet")
    new = fleet.own(rng)
    write(tmp_path / "new.npz", new, 2.0, 99)
    settings = {"robot": "arm3r", "logs": [str(tmp_path / "new.npz")], "prepare": {"cutoff": 20.0}, "method": "wls",
                "simulation": {"run": False}}
    with_fleet = RunSettings.from_values({**settings, "prior": str(tmp_path / "fleet")})
    found = run(with_fleet)
    assert found.notes[0].startswith("the prior is used") and found.settings.prior == str(tmp_path / "fleet")
    folded = run(with_fleet, workers=Workers(2))
    model = found.settings.model.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    alone = run(RunSettings.from_values({**settings, "model": model}))
    errors = [fleet.new_errors_of(one.estimate, new) for one in (alone, found, folded)]
    assert errors[1] < errors[0] and errors[2] < errors[0] and folded.notes
    with refused(DynidError, "bad-call", "'pc-wls'"):
        run(RunSettings.from_values({**settings, "prior": str(tmp_path / "fleet"), "method": "pc-wls"}))
    with refused(DynidError, "no-result", "manifest.json"):
        run(RunSettings.from_values({**settings, "prior": str(tmp_path)}))
