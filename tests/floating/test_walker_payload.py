"""A box on the trunk of a walker of MuJoCo's world, from logs without and with it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from typer.testing import CliRunner
from walking_runs import healthy, walk

from dynid.cli.main import app
from dynid.errors import RobotError
from dynid.runs.payload_result import PayloadOptions, find_payload
from dynid.runs.results import save
from reproductions._walking_world import world_log

MASS, PLACE = 2.4, np.array([0.05, -0.03, 0.11])  # kg, m in the frame of the trunk
EDGE = 0.16  # m of a homogeneous cube
ABOUT_COM = MASS * EDGE ** 2 / 6.0


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The folder with the result without the box, and the log with it."""
    folder = tmp_path_factory.mktemp("box")
    walker = walk().walker
    x, y, z = PLACE
    box = (f'<body name="box" pos="{x} {y} {z}"><inertial pos="0 0 0" mass="{MASS}" '
           f'diaginertia="{ABOUT_COM} {ABOUT_COM} {ABOUT_COM}"/></body>')
    loaded = replace(walker, text=walker.text.replace('<site name="imu"', box + '<site name="imu"', 1))
    assert loaded.robot.inertias[5, 9] == pytest.approx(walker.robot.inertias[5, 9] + MASS)
    log = world_log(loaded, 12, duration=6.0).write(folder / "loaded.csv")
    save(healthy(), folder / "result", report=False)
    return folder, log


@pytest.mark.parametrize("leave_out", [(), pytest.param(("wrench",), marks=pytest.mark.slow)],
                         ids=["wrenches", "projected"])
def test_a_box_is_found_within_its_intervals(results, leave_out):
    folder, log = results
    result = folder / "result"
    if leave_out:
        names = log.read_text().splitlines()
        kept = [k for k, name in enumerate(names[0].split(",")) if "force" not in name]
        log, result = folder / "projected.csv", folder / "projected"
        log.write_text("\n".join(",".join(row.split(",")[k] for k in kept) for row in names) + "\n")
        save(healthy(*leave_out), result, report=False)
    found = find_payload(result, [str(log)]).payload
    assert found.frame == "trunk" and found.identified.all()
    true = np.array([*MASS * PLACE, MASS])
    std = np.sqrt(np.diag(found.covariance))[6:]
    assert np.all(np.abs(found.free[6:] - true) < 3.0 * std)
    assert std[3] < 0.15 * MASS and np.abs(found.free[9] - MASS) < 0.1 * MASS
    least, most = found.mass_bounds()
    assert least < MASS < most and most - least < 8.0 * std[3]
    assert "payload-not-seen" not in [one.code for one in found.findings]


def test_residual_and_difference_agree_with_the_joint_estimate(results):
    folder, log = results
    true = np.array([*MASS * PLACE, MASS])
    for way in ("residual", "difference"):
        found = find_payload(folder / "result", [str(log)], PayloadOptions(method=way)).payload
        std = np.sqrt(np.diag(found.covariance))[6:]
        assert np.all(np.abs(found.free[6:] - true) < 3.0 * std) and std[3] < 0.15 * MASS


def test_the_command_states_the_box_and_refuses_other_methods(results):
    folder, log = results
    result = folder / "result"
    done = CliRunner().invoke(app, ["payload", str(result), str(log), "--json", "-o", str(folder / "payload")])
    assert done.exit_code == 0, done.output
    printed = json.loads(done.output[done.output.index("{"):])
    assert printed["mass"]["value"] == pytest.approx(MASS, rel=0.1) and printed["controllers"] == {}
    assert (folder / "payload" / "report.html").exists()
    with refused(RobotError, "free-base-unsupported", "same-motion", "together"):
        find_payload(result, [str(log)], PayloadOptions(method="same-motion"))
