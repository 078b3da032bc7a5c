"""`dynid actuators` reads logs of BAM with their own benches, and each episode of a LeRobot dataset as a log."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from closed_schemas import check_output

from dynid.recording.json_tables import PendulumBench, write_bam
from dynid.recording.recording import Recording

STEP = 2e-4  # s, of the integration; a log has one row in a hundred steps


def swing(mass, kp, seed, rows=500):
    """Positions and commands of a servo with a pendulum, by a plain integration, logged at 50 Hz."""
    t = np.arange(rows) * 100 * STEP
    rng = np.random.default_rng(seed)
    command = 0.8 * np.sin(2 * np.pi * (0.3 + 0.12 * t) * t) + rng.choice([-0.4, 0.4], 10)[(t // 1).astype(int)]
    q = dq = 0.0
    found = []
    for wanted in command.tolist():
        found.append(round(q * 4096 / 6.2832) * 6.2832 / 4096)
        for _ in range(100):
            volts = 7.4 * min(max(0.166 * kp * (wanted - q), -0.97), 0.97)
            torque = 1.2 / 2.7 * (volts - 1.2 * dq) - 0.05 * dq - 9.81 * mass * 0.15 * math.sin(q)
            inertia = mass * 0.15**2 + 0.02
            dq += STEP / inertia * (torque - min(max(torque + inertia * dq / STEP, -0.04), 0.04))
            q += STEP * dq
    return Recording.from_commands(t, np.array(found)[:, None], command[:, None])


def test_logs_of_bam_bring_their_bench(dynid, tmp_path):
    paths = [str(write_bam(swing(mass, kp, k), PendulumBench(mass, 0.15, 0.0, kp, 7.4, "sts3215", "chirp"),
                           tmp_path / f"{k}.json")) for k, (mass, kp) in enumerate([(0.2, 16.0), (0.5, 32.0)])]
    done = dynid("actuators", "pendulum", *paths, "--law", "voltage", "--gain", "resistance=2.7", "--friction", "m1",
                 "--json")
    check_output("actuators", done.out)
    found = {one["name"]: one["value"] for one in json.loads(done.out)["parameters"]}
    assert abs(found["kt"] / 1.2 - 1) < 0.03 and abs(found["armature"] / 0.02 - 1) < 0.1
    assert abs(found["coulomb"] / 0.04 - 1) < 0.25


def test_each_episode_of_a_dataset_is_a_log(dynid, tmp_path):
    folder = tmp_path / "dataset"
    (folder / "meta").mkdir(parents=True)
    (folder / "data" / "chunk-000").mkdir(parents=True)
    feature = {"dtype": "float32", "shape": [1], "names": ["joint.pos"]}
    (folder / "meta" / "info.json").write_text(json.dumps({"codebase_version": "v3.0", "total_episodes": 2, "fps": 50,
                                                           "features": {"action": feature,
                                                                        "observation.state": feature}}))
    parts = [swing(0.5, 32.0, seed, rows=250) for seed in (1, 2)]
    pq.write_table(pa.table({
        "observation.state": pa.FixedSizeListArray.from_arrays(
            pa.array(np.rad2deg(np.concatenate([one.q.ravel() for one in parts])).astype(np.float32)), 1),
        "action": pa.FixedSizeListArray.from_arrays(
            pa.array(np.rad2deg(np.concatenate([one.reference.ravel() for one in parts])).astype(np.float32)), 1),
        "timestamp": np.concatenate([one.t for one in parts]), "episode_index": np.repeat([0, 1], 250)}),
        folder / "data" / "chunk-000" / "file-000.parquet")
    done = dynid("actuators", "pendulum", str(folder), "--pendulum", "mass=0.5,length=0.15", "--law", "voltage",
                 "--gain", "kp=32", "--gain", "gain=0.166", "--gain", "limit=0.97", "--gain", "vin=7.4", "--gain",
                 "resistance=2.7", "--friction", "m1", "--set", "log.unit=deg", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert len(found["simulation"]["logs"]) == 2
    assert abs(next(one["value"] for one in found["parameters"] if one["name"] == "kt") / 1.2 - 1) < 0.03


def test_a_log_that_cannot_be_used_ends_in_one_sentence(dynid, tmp_path):
    """Clocks that stand still, cells that are no numbers, arrays of PACE that do not fit, no command, no time."""
    log = swing(0.5, 32.0, 3, rows=100)
    t, q, goal = log.t, log.q[:, 0], log.reference[:, 0]

    def table(name, head, *columns):
        np.savetxt(tmp_path / name, np.column_stack(columns), delimiter=",", header=head, comments="", fmt="%.9g")
        return tmp_path / name

    np.savez(tmp_path / "pace.npz", time=t[:-5], dof_pos=q[:, None], des_dof_pos=goal[:, None])
    np.savez(tmp_path / "joints.npz", time=t, dof_pos=np.column_stack([q, q]), des_dof_pos=goal[:, None])
    (tmp_path / "junk.pt").write_bytes(b"PK\x03\x04junk")
    for path, error, name in (
            (table("clock.csv", "t,q,q_des", 0 * t, q, goal), "coarse-clock", ""),
            (table("gap.csv", "t,q,q_des", t, np.where(t == t[50], np.nan, q), goal), "bad-row", "row 52"),
            (table("back.csv", "t,q,q_des", np.where(t > 1.0, t - 0.5, t), q, goal), "time-backwards", ""),
            (table("alone.csv", "t,q", t, q), "no-command", "log.reference"),
            (table("timeless.csv", "q,q_des", q, goal), "no-column", "log.time"),
            (table("two.csv", "t,q1,q2,q_des1,q_des2", t, q, q, goal, goal), "several-joints", "log.position"),
            (tmp_path / "pace.npz", "lengths-differ", "95"), (tmp_path / "joints.npz", "column-count", ""),
            (tmp_path / "junk.pt", "damaged-file", ""), (tmp_path / "nowhere.csv", "no-such-file", "")):
        done = dynid("actuators", path, "--pendulum", "mass=0.5,length=0.15", "--gain", "kp=8", "--friction", "m1")
        assert (done.code, done.out, done.error) == (2, "", error) and name in done.err, (path, done.err)
        assert done.err.count("Error:") == 1 and "Traceback" not in done.err
