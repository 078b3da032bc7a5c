"""The verdict names faults that are put into logs: each on a small arm, and in the slow suite all on more robots."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dynid.excitation import friction_sweep
from dynid.excitation.exciting_motion import with_accelerations
from dynid.robot import inertia as ten
from dynid.runs.motion_design import limits_for
from dynid.simulation import Reference
from reproductions import _faulty_machines, verdict
from reproductions._faults import FAULTS, REAL_LOAD_SHARE, Put, exchanged, payload_in_mid_log
from reproductions._faulty_machines import CHOSEN_ON, JUDGED_ON, RATE, RealMachine, machine, physical, robot_of
from reproductions._verdicts import BLAMES, NAMED, Task, in_turn, judged, tried


@pytest.mark.parametrize("place", range(len(FAULTS)), ids=[fault.name for fault in FAULTS])
def test_each_fault_is_named_on_a_small_arm(place: int) -> None:
    """And no other beside it, and nothing of a healthy log."""
    found = tried(None, Task("chosen on", "planar4", 3, (place,), NAMED))
    assert [one for one in found if not one.named or one.wrong] == []
    assert all(one.findings == () for one in found if one.healthy)


@pytest.mark.slow
def test_all_faults_on_robots_that_no_setting_was_chosen_on() -> None:
    outcomes = [one for robot in ("planar5", "ur10")
                for one in tried(None, Task("judged on", robot, 20, tuple(range(len(FAULTS)))))]
    result = verdict.summary(outcomes)
    assert all(result["checks"].values()), result["checks"]
    json.dumps(result, allow_nan=False)
    head, *rows = verdict.table(result)
    assert len(rows) == len(FAULTS) + len(result["totals"]) + 2 and all(len(row) == len(head) for row in rows)


@pytest.mark.parametrize("name", [*CHOSEN_ON, *JUDGED_ON])
def test_machines_can_exist_though_files_have_bodies_that_cannot(name: str) -> None:
    """A constrained estimate of a machine that cannot exist is wrong, and a healthy log of it would be blamed rightly.
    Bodies that can exist stay as they are."""
    for body in robot_of(name).bodies:
        if body.inertia is not None:
            found = np.array(body.inertia) if ten.can_exist(body.inertia) else physical(np.array(body.inertia))
            assert np.linalg.eigvalsh(ten.pseudo_inertia(found))[0] >= -1e-12  # a body may have no mass at all
    if name in ("kuka-lwr4", "puma560"):
        assert not all(ten.can_exist(body.inertia) for body in robot_of(name).bodies)
        made = machine(name, 3)
        assert all(ten.can_exist(made.theta[places]) for places in made.model.parameters.bodies.values())


@pytest.mark.parametrize("seed", [4901, 4902])
def test_no_fault_is_found_in_a_log_that_the_parameters_fit_whatever_it_contains(seed: int) -> None:
    """A log of 2.5 s, low-passed at 4 Hz, has about as many independent rows as parameters. No fault is found in
    the whole log either, except one that is added."""
    made = machine("arm3r", seed)
    log = made.record()
    start = float(log.t[0]) + 1.0
    found = judged(made.model.robot, Put(log.between(start, start + 2.5))).verdict
    codes = {one.code for one in found.of_kind("problem")}
    assert "few-independent-samples" in codes and not codes & BLAMES
    assert found.grade == "usable" and found.summary.reasons[0].startswith("few independent samples")
    inverted = replace(log, tau=log.tau * [1.0, -1.0, 1.0])
    for whole, blamed in ((log, set[str]()), (inverted, {"torque-sign"})):
        codes = {one.code for one in judged(made.model.robot, Put(whole)).verdict.of_kind("problem")}
        assert "few-independent-samples" not in codes and codes & BLAMES == blamed


def test_residuals_of_joints_at_rest_are_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Static friction of a joint at rest takes up the torque that the motion of its neighbours causes."""
    made = machine("franka-panda", 5101)
    limits, _ = with_accelerations(limits_for(made.model.robot, None, None)[0])
    motion = friction_sweep(limits).at(np.arange(4000) / RATE)  # of the first joint alone
    monkeypatch.setattr(_faulty_machines, "exciting", lambda *_: Reference(motion.q, motion.dq, motion.ddq, RATE))
    found = judged(made.model.robot, Put(made.record())).verdict.of_kind("problem")
    assert [one.joints for one in found if one.code == "joint-at-rest"] == [made.model.joint_names[1:]]
    assert not [one for one in found if one.code.startswith("residual") and set(one.joints) - {"joint1"}]


def test_torques_of_a_log_of_the_same_motion_are_no_fault() -> None:
    made = machine("arm3r", 3)
    log, other = made.record(), made.record(1)
    rng = np.random.default_rng(0)
    put = exchanged(RealMachine(log, other, made.model.robot), rng, both=True)
    assert put is not None and put.other is not None
    np.testing.assert_array_equal(put.log.tau, other.tau)
    np.testing.assert_array_equal(put.other.tau, log.tau)
    assert exchanged(RealMachine(log, log, made.model.robot), rng) is None


def test_a_load_is_added_to_the_second_part_of_a_real_log() -> None:
    """Its torque is that of a body on the last link: none of it before, the stated share of one torque behind."""
    made = machine("arm3r", 3)
    log = made.record()
    put = payload_in_mid_log(RealMachine(log, log, made.model.robot), np.random.default_rng(0))
    assert put is not None
    more = put.log.tau - log.tau
    at = int(np.argmax(np.any(more != 0.0, axis=1)))
    assert 0.3 <= at / len(more) <= 0.7 and not np.any(more[:at])
    share = np.sqrt(np.mean(more[at:] ** 2, axis=0)) / np.std(log.tau, axis=0)
    assert share.max() == pytest.approx(REAL_LOAD_SHARE, rel=0.3)


def test_machines_meet_all_faults_in_turn() -> None:
    met = [set(in_turn(place, 2)) for place in range(2)]
    assert met[0] | met[1] == set(range(len(FAULTS)))
    assert not met[0] & met[1]


def test_a_smaller_study_is_held_to_what_so_few_logs_can_tell() -> None:
    """One false alarm of 16 healthy logs and three wrong causes of 30 do not refute the bars; five and six do."""
    def held(named: float, wrong: int, false: int, whole: bool) -> bool:
        total = {"faulty": 30, "healthy": 16, "named": named, "wrong": 100.0 * wrong / 30, "false": 100.0 * false / 16}
        return all(verdict._checks({"judged on": total}, whole).values())

    assert held(90.0, 0, 0, True) and not held(90.0, 0, 1, True) and not held(90.0, 3, 0, True)
    assert held(90.0, 3, 1, False) and not held(90.0, 6, 0, False) and not held(90.0, 0, 5, False)
    assert not held(50.0, 0, 0, False)
