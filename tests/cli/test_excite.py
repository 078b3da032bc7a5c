"""`dynid excite`: files, limits, improving an earlier result, and the whole chain to an identified robot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dynid.excitation import FourierSeries, excite, quintics, read_limits, read_trajectory, write_trajectory
from dynid.excitation.search.multistart import MultiStart
from dynid.model import Model, make_terms
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.runs.motion_design import earlier

FRICTION = "viscous,coulomb,offset"
QUICK = ("--rounds", "1", "--duration", "6", "--harmonics", "4")
SHORT = ("--rounds", "1", "--duration", "3", "--harmonics", "2")  # where the motion itself is not the subject


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def any_motion(file):
    """Write a motion of all joints, where a search for a better one is not the subject."""
    a, b = 0.25 * np.random.default_rng(0).normal(size=(2, 3, 4))
    write_trajectory(FourierSeries(a, b, np.zeros(3), 6.0), file, rate=100.0, joints=Robot.builtin("arm3r").joint_names)


def test_from_nothing_to_an_identified_robot(dynid):
    """excite -> simulate -> identify, and then a motion for what the first one left unsure."""
    shown = dynid("excite", "arm3r", "-o", "motion.csv", *QUICK, "--friction", FRICTION, "--noise", "0.01",
                  "--report", "motion.html", "--json")
    assert shown.code == 0, shown.err
    said = json.loads(shown.out)
    assert said["criterion"] == "condition" and said["starts"] == 4
    assert set(said["outputs"]) == {"motion", "report"} and all(Path(p).is_file() for p in said["outputs"].values())
    assert all(use["used"] is None or use["used"] <= 100.0 + 1e-6 for use in said["limits"])
    shown = dynid("simulate", "arm3r", "--trajectory", "motion.csv", "-o", "log.csv", "--friction", FRICTION,
                  "--torque-noise", "0.01", "--rate", "500", "--json")
    assert shown.code == 0, shown.err
    made = json.loads(shown.out)
    assert made["rows"] == 3001 and made["outputs"] == {"log": "log.csv"}
    shown = dynid("identify", "arm3r", "log.csv", "--friction", FRICTION, "--method", "wls", "-o", "out", "--json")
    assert shown.code == 0, shown.err
    found = json.loads(shown.out)
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=FRICTION.split(",")))
    base = base_parameters(model)
    truth = dict(zip(base.names, base.reduce(model.parameters.vector(made["truth"])), strict=True))
    assert found["rank"] == len(truth) == 24
    for name, one in found["parameters"].items():
        # Coulomb's jumps are filtered away with the noise, so allow a little beside the deviation.
        assert one["value"] == pytest.approx(truth[name], abs=5 * one["std"] + 0.02 * abs(truth[name])), name
    shown = dynid("excite", "arm3r", "-o", "next.npz", *QUICK, "--improve", "out", "--json")
    assert shown.code == 0, shown.err
    better = json.loads(shown.out)
    assert better["criterion"] == "largest" and set(better["expected"]) == set(truth)
    for name, one in better["expected"].items():
        assert one["before"] == pytest.approx(found["parameters"][name]["std"], rel=1e-9)
    # Two logs of the same length halve the largest relative deviation at least by sqrt(2).
    worst = max((one["before"] / abs(found["parameters"][name]["value"]), name)
                for name, one in better["expected"].items())[1]
    assert better["expected"][worst]["std"] < 0.75 * better["expected"][worst]["before"]


def test_the_logs_of_a_result_are_worth_its_own_deviations(dynid):
    """Without any new motion, what is known gives the deviations that were stated, whatever noise the next log has."""
    any_motion("m.csv")
    assert dynid("simulate", "arm3r", "--trajectory", "m.csv", "-o", "log.csv", "--torque-noise", "0.05", "--rate",
                 "500").code == 0
    assert dynid("identify", "arm3r", "log.csv", "--friction", FRICTION, "--method", "wls", "--no-simulation",
                 "-o", "out").code == 0
    for noise in (None, np.array([0.1, 0.2, 0.3])):
        past = earlier("out", 100.0, noise)
        r = past.known.stack(1.0 / past.noise).r
        std = np.sqrt(np.sum(np.linalg.inv(r) ** 2, axis=1))
        assert np.median(std / past.estimate.std) == pytest.approx(1.0, rel=1e-3)
        assert np.all(np.abs(np.log(std / past.estimate.std)) < np.log(1.6))
        assert noise is None or past.noise is noise


@pytest.mark.usefixtures("one_start")
def test_every_format_holds_the_same_motion(dynid, monkeypatch):
    designed = []

    def designed_once(*arguments, **options):
        """The motion of the first call, which is that of the others: the search has a seed."""
        if not designed:
            designed.append(excite(*arguments, **options))
        return designed[0]

    monkeypatch.setattr("dynid.runs.motion_design.excite", designed_once)
    for ending in ("csv", "npz", "yaml"):
        assert dynid("excite", "arm3r", "-o", f"m.{ending}", *SHORT, "--home", "0,0,0", "--rate", "50").code == 0
    names = Robot.builtin("arm3r").joint_names
    one, two = (read_trajectory(f"m.{ending}", names) for ending in ("csv", "npz"))
    assert one.rate == pytest.approx(50.0, rel=1e-2) and len(one) == len(two)
    for signal in ("q", "dq", "ddq"):
        assert np.allclose(getattr(one, signal), getattr(two, signal), rtol=0, atol=1e-9)
    assert np.allclose(one.q[[0, -1]], 0.0, atol=1e-9) and np.allclose(one.dq[[0, -1]], 0.0, atol=1e-9)
    # Velocities and accelerations are those of the positions.
    inside = slice(5, -5)
    assert np.abs(np.gradient(one.q, 1 / one.rate, axis=0) - one.dq)[inside].max() < 0.01 * np.abs(one.dq).max()
    text = Path("m.yaml").read_text()
    points = [line for line in text.splitlines() if line.startswith("- positions: ")]
    assert len(points) == len(one) and all(f"- '{name}'" in text for name in names)
    assert json.loads(points[7].removeprefix("- positions: ")) == pytest.approx(one.q[7].tolist(), abs=1e-9)
    refused = dynid("excite", "arm3r", "-o", "m.csv", *SHORT)
    assert refused.code == 2 and refused.error == "file-exists"


LIMITS = """
first = [0.1, 0.2, -0.1]
last = [0.1, 0.2, -0.1]
[all]
velocity = 1.0
jerk = 60.0
[joint.joint2]
position = [-0.4, 0.6]
[joint.3]
acceleration = 3.0
torque = 2.5
[space]
radius = 0.03
margin = 0.01
table = -0.3
[[space.wall]]
name = "window"
normal = [-1, 0, 0]
offset = -0.45
[[space.obstacle]]
name = "lamp"
centre = [0.0, 0.6, 0.3]
radius = 0.1
"""


@pytest.mark.usefixtures("one_start")
def test_a_limits_file_is_kept(dynid):
    Path("limits.toml").write_text(LIMITS)
    shown = dynid("excite", "arm3r", "-o", "m.csv", *QUICK, "--limits", "limits.toml", "--json")
    assert shown.code == 0, shown.err
    said = json.loads(shown.out)
    kinds = {use["kind"] for use in said["limits"]}
    assert {"position", "velocity", "acceleration", "jerk", "torque", "space", "first posture", "last posture"} <= kinds
    assert any("lamp" in use["where"] for use in said["limits"]) and any("window" in u["where"] for u in said["limits"])
    robot = Robot.builtin("arm3r")
    motion = read_trajectory("m.csv", robot.joint_names)
    assert np.allclose(motion.q[[0, -1]], [0.1, 0.2, -0.1], atol=1e-6)
    assert np.abs(motion.dq).max() <= 1.0 and np.abs(motion.ddq[:, 2]).max() <= 3.0
    assert motion.q[:, 1].min() >= -0.4 and motion.q[:, 1].max() <= 0.6
    limits = read_limits("limits.toml", robot)
    assert limits.space is not None and limits.space.slack(motion.q).min() >= 0.0
    assert limits.torque.tolist() == [np.inf, np.inf, 2.5] and limits.upper[0] == robot.limit("upper")[0]


def test_rounds_and_a_seed_repeat_a_motion(dynid):
    for name, seed in (("a.csv", 1), ("b.csv", 1), ("c.csv", 2)):
        assert dynid("excite", "arm3r", "-o", name, *SHORT, "--seed", seed).code == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes() != Path("c.csv").read_bytes()


@pytest.mark.usefixtures("one_start")
def test_an_interrupted_search_keeps_the_best_motion(dynid, monkeypatch):
    whole = MultiStart._round

    def interrupted(self, number, *rest):
        if number == 1:
            raise KeyboardInterrupt
        whole(self, number, *rest)

    monkeypatch.setattr(MultiStart, "_round", interrupted)
    shown = dynid("excite", "arm3r", "-o", "m.csv", "--rounds", "3", "--duration", "3", "--harmonics", "2")
    assert shown.code == 0 and ("Interrupted: this is the best motion found so "
                                "far") in shown.out and Path("m.csv").is_file()


@pytest.mark.usefixtures("one_start")
def test_people_see_deviations_and_limits(dynid):
    shown = dynid("excite", "arm3r", "-o", "m.npz", *SHORT, "--criterion", "d", "--kind", "fourier+quintic")
    assert shown.code == 0, shown.err
    assert all(part in shown.out for part in ("condition number", "Expected at 100 Hz", "Closest to their limits",
                                              "typical torque", "a margin of 5 %", "motion: m.npz"))


@pytest.mark.parametrize(("arguments", "text", "code", "error"), [
    (("-o", "m.txt"), "", 2, "unknown-extension"),
    (("-o", "m.csv", "--home", "0,x"), "", 2, "not-a-number"),
    (("-o", "m.csv", "--home", "0,0"), "", 2, "wrong-home"),
    (("-o", "m.csv", "--home", "0,0,9"), "", 2, "wrong-home"),
    (("-o", "m.csv", "--noise", "1,2"), "", 2, "wrong-noise"),
    (("-o", "m.csv", "--improve", "."), "", 2, "no-result"),
    (("-o", "m.csv", "--criterion", "best"), "", 2, ""),
    (("-o", "m.csv", "--duration", "-1"), "", 2, "out-of-range"),
    (("-o", "m.csv", "--limits", "no.toml"), "", 2, "no-such-file"),
    (("-o", "m.csv", "--limits", "l.toml"), "velocity = ", 2, "not-toml"),
    (("-o", "m.csv", "--limits", "l.toml"), "velocity = 1", 2, "unknown-setting"),
    (("-o", "m.csv", "--limits", "l.toml"), "[joint.elbow]\nvelocity = 1", 2, "unknown-joint"),
    (("-o", "m.csv", "--limits", "l.toml"), "[all]\nvelocity = 'fast'", 2, "wrong-setting"),
    (("-o", "m.csv", "--limits", "l.toml"), "[all]\nvelocity = -1", 2, "wrong-limit"),
    (("-o", "m.csv", "--limits", "l.toml"), "[all]\nposition = [1, -1]", 2, "wrong-limit"),
    (("-o", "m.csv", "--limits", "l.toml"), "first = [9, 0, 0]", 2, "wrong-home"),
    (("-o", "m.csv", "--limits", "l.toml"), "[[space.obstacle]]\nradius = 1", 2, "wrong-setting"),
    (("-o", "m.csv", "--limits", "l.toml"), "[[space.sphere]]\nlink = 'x'\nradius = 1", 2, "unknown-link"),
    (("-o", "m.csv", "--limits", "l.toml", "--kind", "bspline"),
     "first = [0, 1.5, 0]\nlast = [0, -1.5, 0]\n[all]\nvelocity = 0.1", 1, "limits-conflict"),
])
def test_wrong_calls_end_with_one_sentence(dynid, arguments, text, code, error):
    Path("l.toml").write_text(text)
    shown = dynid("excite", "arm3r", *arguments, *(() if "--duration" in arguments else QUICK))
    assert shown.code == code and shown.out == "" and not Path("m.csv").exists()
    assert shown.error == error and shown.err.count("\n") == 1 and "Traceback" not in shown.err


def test_another_robots_result_is_refused(dynid):
    any_motion("m.csv")
    assert dynid("simulate", "arm3r", "--trajectory", "m.csv", "-o", "log.csv", "--rate", "200").code == 0
    assert dynid("identify", "arm3r", "log.csv", "--method", "wls", "--no-simulation", "-o", "out").code == 0
    shown = dynid("excite", "emps", "-o", "n.csv", *QUICK, "--improve", "out")
    assert shown.code == 2 and shown.error == "another-robot"
    assert dynid("excite", "arm3r", "-o", "n.csv", "--improve", "out", "--rotor").error == "conflicting-options"
    Path("out/regression.npz").unlink()
    assert dynid("excite", "arm3r", "-o", "n.csv", *QUICK, "--improve", "out").error == "no-result"


@pytest.mark.usefixtures("one_start")
def test_a_margin_is_kept_unless_it_is_not_wanted(dynid):
    robot = Robot.builtin("arm3r")
    lower, upper, velocity = (robot.limit(which) for which in ("lower", "upper", "velocity"))
    for given, margin in ((), 0.05), (("--margin", "0.2"), 0.2), (("--margin", "0"), 0.0):
        shown = dynid("excite", "arm3r", "-o", "m.csv", *SHORT, "--force", "--json", *given)
        assert shown.code == 0, shown.err
        said, motion = json.loads(shown.out), read_trajectory("m.csv", robot.joint_names)
        room = margin * (upper - lower)
        assert np.all(motion.q >= lower + room - 1e-9) and np.all(motion.q <= upper - room + 1e-9)
        assert np.all(np.abs(motion.dq) <= (1 - margin) * velocity + 1e-9)
        torques = {use["where"]: use for use in said["limits"] if use["kind"] == "torque"}
        assert all(torques[name]["bound"] == pytest.approx((1 - margin) * limit)
                   for name, limit in zip(robot.joint_names, robot.limit("effort"), strict=True) if np.isfinite(limit))
        assert said["margin"] == margin
        assert any(f"a margin of {100 * margin:g} % of" in note and "--margin" in note for note in said["notes"]) == (
            margin > 0)
    for bad in ("0.5", "-0.1", "nan"):
        shown = dynid("excite", "arm3r", "-o", "m.csv", *QUICK, "--force", "--margin", bad)
        assert shown.code == 2 and "margin" in shown.err and shown.err.count("\n") == 1


@pytest.mark.usefixtures("one_start")
def test_home_may_lie_in_the_margin(dynid):
    robot = Robot.builtin("arm3r")
    home = robot.limit("lower") + 0.01 * (robot.limit("upper") - robot.limit("lower"))
    shown = dynid("excite", "arm3r", "-o", "m.csv", *SHORT, "--home=" + ",".join(map(str, home)))
    assert shown.code == 0, shown.err
    assert np.allclose(read_trajectory("m.csv", robot.joint_names).q[0], home, atol=1e-9)
    beyond = robot.limit("lower") - 0.1
    shown = dynid("excite", "arm3r", "-o", "m.csv", *QUICK, "--force", "--home=" + ",".join(map(str, beyond)))
    assert shown.code == 2 and shown.error == "wrong-home"


@pytest.mark.usefixtures("one_start")
def test_the_assumed_noise_follows_the_torques(dynid):
    short = ("--rounds", "1", "--duration", "3", "--harmonics", "2", "--json")
    shown = dynid("excite", "kuka-lwr4", "-o", "m.csv", *short)
    assert shown.code == 0, shown.err
    noise = np.array(json.loads(shown.out)["noise"])
    assert noise[1] > 10 * noise[6] > 0  # a shoulder's is not a wrist's
    shown = dynid("excite", "arm3r", "-o", "n.csv", *short, "--noise", "0.3")
    assert json.loads(shown.out)["noise"] == [0.3] * 3


@pytest.mark.usefixtures("one_start")
def test_a_locked_joint_does_not_move_in_the_whole_chain(dynid):
    shown = dynid("excite", "arm3r", "-o", "m.csv", *QUICK, "--lock", "joint1=0.3", "--json")
    assert shown.code == 0, shown.err
    assert dynid("simulate", "arm3r", "--trajectory", "m.csv", "-o", "log.csv", "--rate", "500", "--torque-noise",
                 "0.05", "--lock", "joint1=0.3").code == 0
    assert dynid("identify", "arm3r", "log.csv", "--lock", "joint1=0.3", "--method", "wls", "-o", "out",
                 "--no-simulation").code == 0
    shown = dynid("compare", "arm3r", "log.csv", "--only", "joint2,joint3", "--lock", "joint1=0.3", "--methods",
                  "ols,wls", "--start", "1", "--json")
    assert shown.code == 0, shown.err
    shown = dynid("excite", "arm3r", "-o", "next.csv", *QUICK, "--improve", "out", "--noise", "0.05", "--json")
    assert shown.code == 0, shown.err  # locked as the result was
    assert set(json.loads(shown.out)["speeds"]) <= {"joint2", "joint3"}
    names = Robot.builtin("arm3r").lock({"joint1": 0.3}).joint_names
    assert names == ("joint2", "joint3") and read_trajectory("next.csv", names).q.shape[1] == 2


@pytest.mark.usefixtures("one_start")
def test_improving_a_result_says_what_and_keeps_its_word(dynid):
    """A first log in which joint 3 hardly moves and all are slow; the motion to add is for what it left unknown, and
    identified together the logs give deviations as promised, around the truth."""
    rng = np.random.default_rng(0)
    robot = Robot.builtin("arm3r")
    knots = rng.uniform(-0.4, 0.4, (6, 3)) * [1.0, 1.0, 0.05]
    write_trajectory(quintics(knots, np.linspace(0.0, 12.0, 6)), "slow.csv", rate=100.0, joints=robot.joint_names)
    sensors = ("--friction", FRICTION, "--torque-noise", "0.05", "--rate", "500")
    assert dynid("simulate", "arm3r", "--trajectory", "slow.csv", "-o", "slow_log.csv", *sensors).code == 0
    # One cut-off for both: what the filter does to dry friction is then the same in both deviations.
    model = ("--friction", FRICTION, "--method", "wls", "--no-simulation", "--cutoff", "16")
    shown = dynid("identify", "arm3r", "slow_log.csv", *model, "-o", "out", "--json")
    assert shown.code == 0, shown.err
    first = json.loads(shown.out)["parameters"]
    shown = dynid("excite", "arm3r", "-o", "next.csv", *QUICK, "--speed", "1", "--full-range", "--improve", "out",
                  "--json")
    assert shown.code == 0, shown.err
    said = json.loads(shown.out)
    improved = {one["name"]: one for one in said["improves"]}
    worst = sorted((name for name in first if first[name]["std"]), key=lambda name: -(first[name]["rel_std"] or 0.0))
    assert len(improved) > 5 and set(worst[:3]) <= set(improved)
    assert any("reduces the standard error of" in note for note in said["notes"])
    speeds = said["speeds"]
    assert set(speeds) == set(robot.joint_names) and all(one["both_ways"] for one in speeds.values())
    assert all(one["top"] > 0.8 for one in speeds.values())  # several times those of the first log
    shown = dynid("simulate", "arm3r", "--trajectory", "next.csv", "-o", "next_log.csv", *sensors, "--seed", "1",
                  "--json")
    truth = json.loads(shown.out)["truth"]
    shown = dynid("identify", "arm3r", "slow_log.csv", "next_log.csv", *model, "--json")
    assert shown.code == 0, shown.err
    both = json.loads(shown.out)["parameters"]
    ratios = [both[name]["std"] / one["after"] for name, one in improved.items() if both[name]["std"]]
    assert 0.3 < np.median(ratios) < 3.0
    # What dry friction loses at reversals of the slow log counts in its deviation, and another log does not mend that.
    for name, share in (("Fv3", 0.5), ("Fc3", 1.0)):
        assert both[name]["std"] < share * first[name]["std"]
        assert both[name]["value"] == pytest.approx(truth[name], abs=5 * both[name]["std"] + 0.03 * abs(truth[name]))


@pytest.mark.usefixtures("one_start")
def test_what_a_prior_knew_is_not_asked_of_a_motion(dynid):
    """Constraints and priors make deviations smaller than the logs do: a motion that is added never makes them larger,
    and a joint whose torque nobody measures tells nothing."""
    robot = Robot.builtin("arm3r")
    knots = np.random.default_rng(1).uniform(-0.4, 0.4, (6, 3)) * [1.0, 1.0, 0.1]
    write_trajectory(quintics(knots, np.linspace(0.0, 8.0, 6)), "slow.csv", rate=100.0, joints=robot.joint_names)
    assert dynid("simulate", "arm3r", "--trajectory", "slow.csv", "-o", "log.csv", "--torque-noise", "0.1", "--rate",
                 "200").code == 0
    assert dynid("identify", "arm3r", "log.csv", "--friction", FRICTION, "--method", "pc-ridge", "-o", "out",
                 "--no-simulation").code == 0
    shown = dynid("excite", "arm3r", "-o", "next.csv", *QUICK, "--improve", "out", "--json")
    assert shown.code == 0, shown.err
    said = json.loads(shown.out)
    assert all(one["std"] <= 1.01 * one["before"] for one in said["expected"].values() if one["before"])
    assert said["improves"] == sorted(said["improves"], key=lambda one: -(one["times"] or np.inf))
    assert dynid("identify", "arm3r", "log.csv", "--set", 'log.unmeasured=["joint1"]', "--friction", FRICTION,
                 "--method", "wls", "-o", "deaf", "--no-simulation").code == 0
    shown = dynid("excite", "arm3r", "-o", "next.csv", "--force", *QUICK, "--improve", "deaf", "--json")
    assert shown.code == 0, shown.err
    said = json.loads(shown.out)
    assert said["noise"][0] > 1e5 * max(said["noise"][1:])
    assert any("the torque of joint1 is assumed not to be measured" in note for note in said["notes"])
