"""Friction of a walker is chosen from its logs as that of an arm is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from walking_runs import codes, short_walk, walk

import dynid
from dynid.estimate import choose_terms
from dynid.estimate.whole_body import identify_floating
from dynid.floating import prepare_floating
from dynid.model import Model
from reproductions._walking_truth import floating_log, model_of


def stribeck(q: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Friction torques (samples, joints) that fall from 1.2 to 0.4 N m within 0.3 rad/s."""
    speed = np.gradient(q, t, axis=0)
    return np.tanh(speed / 0.02) * (0.4 + 0.8 * np.exp(-(speed / 0.15) ** 2))


@pytest.mark.parametrize("equations", ["wrenches", pytest.param("projected", marks=pytest.mark.slow)])
def test_a_friction_curve_is_taken_where_the_log_has_one(equations):
    """A weaker ridge, or a curve instead of none."""
    log, robot = floating_log(walk()), walk().walker.robot
    rough = replace(log, tau=log.tau + stribeck(log.q, log.t))
    noise = None  # of projected rows, as a run estimates it
    if equations == "projected":
        noise = identify_floating(model_of(walk().walker), log, equations, prepare={"cutoff": 14.0}).noise
    plain, curved = (choose_terms(Model(robot), prepare_floating(robot, one, equations, noise=noise, cutoff=14.0))
                     for one in (log, rough))
    assert curved.ridges["curve"] < plain.ridges.get("curve", np.inf)
    names = robot.joint_names[6:]
    assert [one.joint for one in curved.joints] == list(names)  # none of the base
    named = [table.get("joints", names) for table in curved.tables]
    assert set().union(*map(set, named)) == set(names)
    assert {"rotor", "viscous"} <= {table["kind"] for table in plain.tables}


def test_a_run_without_named_friction_chooses_it(tmp_path):
    (tmp_path / "robot.xml").write_text(walk().walker.text)
    run = dynid.identify(tmp_path / "robot.xml", walk().write(tmp_path / "log.csv"), log={"foot_radius": 0.022},
                         method="wls", prepare={"cutoff": 14.0}, simulation={"run": False})
    assert run.friction is not None and any("it is chosen from the logs" in note for note in run.notes)
    assert not codes(run)


def test_equations_of_the_base_alone_have_no_friction_to_choose(tmp_path):
    (tmp_path / "robot.xml").write_text(walk().walker.text)
    run = dynid.identify(tmp_path / "robot.xml", short_walk().write(tmp_path / "log.csv", "torque"), method="wls",
                         log={"foot_radius": 0.022}, prepare={"cutoff": 14.0}, simulation={"run": False})
    assert run.friction is None and any("base alone do not contain friction" in note for note in run.notes)
