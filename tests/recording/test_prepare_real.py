"""Preparation on the real logs, judged by least squares on Pinocchio's regressor: the numbers of the READMEs."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import loadmat

from dynid.recording.decimate import decimate_columns, decimated_rows
from dynid.recording.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.recording.samples import Samples

Data = Callable[..., Path]
Columns = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def equations(samples: Samples, columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Regressor (rows, joints, columns), torques, what counts, and stamps, decimated if the samples say so."""
    y = columns(samples.q, samples.dq, samples.ddq)
    if samples.decimation is None:
        return y, samples.tau, samples.keep, samples.t
    rows = decimated_rows(samples.segments, samples.decimation)
    return (decimate_columns(y, samples.decimation, samples.segments),
            decimate_columns(samples.tau, samples.decimation, samples.segments), samples.keep[rows], samples.t[rows])


def weighted(y: np.ndarray, tau: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Least squares with each joint over the deviation of its residual; the shortest solution."""
    weights = np.ones(tau.shape[1])
    for _ in range(2):
        a = np.concatenate([y[keep[:, j], j] * weights[j] for j in range(len(weights))])
        b = np.concatenate([tau[keep[:, j], j] * weights[j] for j in range(len(weights))])
        scale = np.maximum(np.linalg.norm(a, axis=0), 1e-300)
        theta = np.linalg.lstsq(a / scale, b, rcond=1e-8)[0] / scale
        weights = np.array([1 / np.std((tau - y @ theta)[keep[:, j], j]) for j in range(len(weights))])
    return theta


def relative(y: np.ndarray, tau: np.ndarray, keep: np.ndarray, theta: np.ndarray) -> float:
    return 100 * float(np.linalg.norm((tau - y @ theta)[keep]) / np.linalg.norm(tau[keep]))


def arm(urdf: Path, rotors: bool = False) -> Columns:
    """Pinocchio's ten columns a body, viscous, Coulomb and offset of each joint, and rotor inertia if asked."""
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.buildModelFromUrdf(str(urdf))
    model.gravity.linear = np.array([0.0, 0.0, -9.81])
    data = model.createData()

    def columns(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        bodies = np.array([pinocchio.computeJointTorqueRegressor(model, data, *row)
                           for row in zip(q, dq, ddq, strict=True)])
        eye = np.eye(model.nv)
        own = [dq, np.sign(dq), np.ones_like(dq)] + ([ddq] if rotors else [])
        return np.concatenate([bodies, *[x[:, :, None] * eye for x in own]], axis=2)

    return columns


def emps(data: Data) -> Recording:
    mat = loadmat(data("emps", "DATA_EMPS.mat"))
    force = float(mat["gtau"].ravel()[0]) * mat["vir"].reshape(-1, 1)
    return Recording(mat["t"].ravel(), mat["qm"].reshape(-1, 1), force, joints=("slide",), source="DATA_EMPS.mat")


def tx40(data: Data) -> Recording:
    motor = np.loadtxt(data("tx40", "pos_read_data.csv"), delimiter=",", skiprows=1)
    current = np.loadtxt(data("tx40", "curr_data.csv"), delimiter=",", skiprows=1)
    gear = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    back, forth = gear.copy(), gear.copy()
    back[5, 4] = forth[4, 5] = 32.0
    q = motor @ np.linalg.inv(back).T + [0.0, -np.pi / 2, np.pi / 2, 0.0, 0.0, 0.0]
    return Recording(np.arange(len(q)) * 2e-4, q, current @ forth.T, source="tx40")


def lwr(data: Data, number: int) -> Recording:
    with np.load(data("kuka_lwr4", f"measurements_{number}.npz")) as file:
        return Recording(file["times"] - file["times"][0], file["positions"], file["torques"], dq=file["velocities"],
                         source=f"measurements_{number}.npz")


def panda(data: Data) -> Recording:
    signals = {name: np.loadtxt(data("panda", f"exciting_traj_{name}.txt")) for name in
               ("time", "positions", "velocity", "torques")}
    q, dq, tau = (signals[name].reshape(-1, 7) for name in ("positions", "velocity", "torques"))
    return Recording(signals["time"], q, tau, dq=dq, source="panda")


@pytest.mark.parametrize("options", [{"cutoff": 100.0, "decimate": 10}, {"decimate": 10}, {}, {"method": "kalman"}])
def test_emps_gives_the_published_parameters(data: Data, options: dict[str, Any]) -> None:
    samples = prepare(emps(data), **options)
    y, tau, keep, _ = equations(samples, lambda q, dq, ddq: np.stack([ddq, dq, np.sign(dq), np.ones_like(dq)], axis=2))
    theta = np.linalg.lstsq(y[keep[:, 0], 0], tau[keep[:, 0], 0], rcond=None)[0]
    off = np.abs(theta / [95.1089, 203.5034, 20.3935, -3.1648] - 1)
    assert np.all(off < [0.005, 0.01, 0.01, 0.02]), theta


def test_tx40_gives_the_reference_table(data: Data) -> None:
    samples = prepare(tx40(data), cutoff=100.0, decimate=10, stages=2,
                      slow=(0.0501, 0.0501, 0.0750, 0.0716, 0.0559, 0.1222))
    assert any("sampled uniformly at 5000 Hz: not resampled" in step for step in samples.steps)
    plain = arm(data("tx40", "tx40_mdh_modified.urdf"), rotors=True)

    def columns(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        wrist = np.zeros((len(q), 6, 3))  # motor 6 acts on joints 5 and 6
        wrist[:, 4, 0], wrist[:, 5, 0] = ddq[:, 5], ddq[:, 4]
        wrist[:, 4, 1], wrist[:, 5, 1] = dq[:, 5], dq[:, 4]
        wrist[:, 4:, 2] = np.sign(dq[:, 4] + dq[:, 5])[:, None]
        return np.concatenate([plain(q, dq, ddq), wrist], axis=2)

    names = [f"{name}{i}" for i in range(1, 7) for name in
             ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")]
    names += [f"{name}{i}" for name in ("fv", "fs", "off", "Ia") for i in range(1, 7)] + ["Iam6", "fvm6", "fsm6"]
    with data("tx40", "TX40_bp_5.csv").open() as file:
        table = {row[0].split()[0]: (float(row[1]), float(row[3])) for row in csv.reader(file)}
    random = np.random.default_rng(0)
    anywhere = columns(*(random.uniform(-s, s, (200, 6)) for s in (3.0, 3.0, 10.0))).reshape(-1, len(names))
    order = [names.index(name) for name in table] + [i for i, name in enumerate(names) if name not in table]
    base: list[int] = []
    q = np.zeros((len(anywhere), 0))
    for i in order:  # columns that those before do not make up
        rest = anywhere[:, i] - q @ (q.T @ anywhere[:, i])
        rest -= q @ (q.T @ rest)
        if np.linalg.norm(rest) > 1e-8 * max(np.linalg.norm(anywhere[:, i]), 1e-2):
            base.append(i)
            q = np.column_stack([q, rest / np.linalg.norm(rest)])
    assert len(base) == 61

    y, tau, keep, _ = equations(samples, lambda *motion: columns(*motion)[:, :, base])
    theta = weighted(y, tau, keep)
    assert relative(y, tau, keep, theta) < 5.4
    found = {names[i]: value for i, value in zip(base, theta, strict=True)}
    for name in ("Izz1", "Ixx2", "Izz2", "mx2", "fv1", "fv2", "fv3", "fv4", "fv5"):
        assert found[name] == pytest.approx(table[name][1], rel=0.03), name


def test_kuka_lwr4_fits_and_predicts(data: Data) -> None:
    columns = arm(data("kuka_lwr4", "kuka_lwr4.urdf"))
    first = equations(prepare(lwr(data, 1), cutoff=8.0), columns)[:3]
    second = equations(prepare(lwr(data, 2), cutoff=8.0), columns)[:3]
    theta = weighted(*first)
    assert relative(*first, theta) < 2.0
    assert relative(*second, theta) < 2.2


@pytest.mark.parametrize("velocity", ["auto", "differentiate"])
def test_panda_half_predicts_half(data: Data, velocity: str) -> None:
    samples = prepare(panda(data), cutoff=5.0, thin=10, velocity=velocity)
    y, tau, keep, t = equations(samples, arm(data("panda", "panda_arm.urdf")))
    early = t < t[0] + 0.5 * (t[-1] - t[0])
    theta = weighted(y[early], tau[early], keep[early])
    assert relative(y[~early], tau[~early], keep[~early], theta) < 1.4


def test_what_is_said_of_the_pandas_clock(data: Data) -> None:
    samples = prepare(panda(data))
    said = " ".join(samples.steps)
    assert "intervals 0.7 to 8.81 ms" in said and "jitter 19 %" in said
    assert "were ignored as not measured" in said and "(6.1 %)" in said
    assert samples.settings["velocity_delay"] == pytest.approx(0.0054, abs=5e-4)


def test_the_chosen_cutoffs_are_those_an_engineer_would_take(data: Data) -> None:
    chosen = [prepare(log, thin=100).settings["cutoff"] for log in
              (panda(data), lwr(data, 1), lwr(data, 2), emps(data), tx40(data))]
    for cutoff, (low, high) in zip(chosen, ((5, 10), (6, 12), (6, 12), (50, 110), (50, 120)), strict=True):
        assert low <= cutoff <= high
