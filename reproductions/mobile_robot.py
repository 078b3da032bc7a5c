"""Mobile robot (Ardiani, tables E.1-E.5): least squares and instrumental variables with noise and slipping wheels.

The document prints the robot (E.1) and the Fourier coefficients of its motion (E.2). Chosen here, as it does not say:

- E.2 are the speeds of both wheels' rims, v_r and v_l of eq. E.1, in m/s, followed by a cascade a wheel with both poles
  at 10 rad/s.
- Viscous friction of a wheel is 0.2 N m s/rad. Their simulator has none, so they give no truth of beta3 and beta4.
- Wheel speeds are sampled at 10 kHz (wheel contacts as stiff as theirs are computed in such steps), with white noise of
  a fifth of their root mean square. A row of the log, at 50 Hz, is a mean of samples. Torques are the commanded ones.
- A slipping wheel shows a quarter of its peak speed more, or less, for half a second: once each, a wheel, at random.
- Least squares sees speeds and equations low-passed at 1 Hz; instruments see the speeds of the log, and equations
  decimated in parallel to 10 Hz.
- The balanced model has its centre of mass between the wheels: beta1 = beta7, beta2 = beta8.
- Fresh motions come from torques applied as they stand, nearly alike on both wheels. Where wheels are driven apart
  the balanced model turns less wrongly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Problem, identify
from dynid.model import DifferentialDrive, LinearModel, MobileBase, Parameters
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.simulation import Poles, Reference, Simulation, TorqueDriven, simulate
from reproductions._printed import Comparison, printed

RATE, SAMPLED, DURATION = 50.0, 10000.0, 30.0  # Hz of log and controller, Hz of the speed sensors, s
LOGS = 10  # seeds 0 to 9
SNR, SLIP, SLIP_TIME = 5.0, 0.25, 0.5  # ratio of root mean squares; share of the peak; s
ROBOT = {"m": 63.14, "inertia": 2.97, "wheel_inertia": 7853.98e-6, "radius": 0.1, "track": 0.43, "bx": 0.019,
         "by": 0.019}  # table E.1, SI
FRICTION = 0.2
BASE = MobileBase(**ROBOT, friction=FRICTION)
DRIVE = BASE.drive
COSINES = np.array([[3.1231, -0.0729], [0.3317, -1.5558], [-0.1874, 1.0222], [-1.7562, 1.2263], [-1.5105, -0.6198]])
SINES = np.array([[2.0287, 1.2768], [-2.0549, 1.6834], [-0.5311, 2.2727], [-1.7335, -1.6215], [2.0589, -0.9885]])
PULSATION = 0.1  # rad/s
MM = np.array([1e3, 1e6, 1e3, 1e6, 1e6, 1e3, 1e3, 1e6])  # table E.3 counts in kg and mm
# Half a unit of the last digit of each number of table E.1, SI: what the real values of table E.3 may be off by.
ROUNDING = {"m": 0.005, "inertia": 0.005, "wheel_inertia": 0.005e-6, "radius": 0.0, "track": 0.0, "bx": 0.0005,
            "by": 0.0005}
SPREADS = 2.0  # standard deviations over our logs within which a printed number of one log is
OUTPUTS = ("sines, speed", "sines, turn rate", "steps, speed", "steps, turn rate")
METHODS = {"E.4": ("balanced", "LS", "IV"), "E.5": ("LS", "IV")}


@dataclass(frozen=True)
class Balanced:
    """Differential drive with its centre of mass between the wheels: the columns of beta7 and beta8 are added to those
    of beta1 and beta2."""

    drive: DifferentialDrive
    dof = 2

    @property
    def parameters(self) -> Parameters:
        return Parameters(self.drive.parameters.items[:6])

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        y = self.drive.regressor(q, dq, ddq)
        return np.concatenate([y[..., :2] + y[..., 6:], y[..., 2:6]], axis=-1)

    def forward_dynamics(self, theta: Array, q: Array, dq: Array, tau: Array) -> Array:
        return self.drive.forward_dynamics(np.append(theta, theta[:2]), q, dq, tau)


def motion() -> Reference:
    """Angles of both wheels along table E.2 (eq. E.19)."""
    pulsations = PULSATION * np.arange(1, 6)
    phase = np.outer(np.arange(int(DURATION * RATE)) / RATE, pulsations)
    c, s, w = np.cos(phase), np.sin(phase), pulsations[:, None]
    a, b = COSINES / ROBOT["radius"], SINES / ROBOT["radius"]
    return Reference(s @ (a / w) + (1.0 - c) @ (b / w), c @ a + s @ b, c @ (b * w) - s @ (a * w), RATE)


def logged(run: Simulation, reference: Reference, seed: int, slipping: bool) -> Recording:
    """The log of a run: noisy wheel speeds, angles summed from them, commanded torques."""
    rng = np.random.default_rng(seed)
    noise = np.sqrt(np.mean(run.dq ** 2, axis=0) * RATE / SAMPLED) / SNR
    dq = run.dq + rng.normal(size=run.dq.shape) * noise
    rows, peak = int(SLIP_TIME * RATE), np.abs(run.dq).max(axis=0)
    for wheel in range(2):
        for sign in (1.0, -1.0) if slipping else ():
            at = int(rng.integers(len(dq) - rows))
            dq[at:at + rows, wheel] += sign * SLIP * peak[wheel]
    q = np.vstack([np.zeros(2), np.cumsum(0.5 * (dq[1:] + dq[:-1]), axis=0) / RATE])
    tau = 0.5 * (np.vstack([run.tau[:1], run.tau[:-1]]) + run.tau)  # mean of what acted before and after a tick
    return Recording(run.t, q, tau, dq=dq, reference=reference.q, reference_velocity=reference.dq,
                     joints=("right", "left"), source=f"mobile robot, seed {seed}")


def fresh() -> tuple[Array, Array]:
    """Return wheel torques (ticks, 2) of two motions that are not used for the fit: 4 N m forward, 0.3 N m
    difference."""
    t = np.arange(int(DURATION * RATE)) / RATE
    waves = 4.0 * np.sin(0.5 * t), 0.3 * np.sin(1.2 * t)
    steps = 4.0 * (t >= 1) - 6.0 * (t >= 11) + 4.0 * (t >= 21), 0.3 * (t >= 6) - 0.6 * (t >= 16) + 0.6 * (t >= 26)
    sines, stairs = (np.column_stack([ahead + apart, ahead - apart]) for ahead, apart in (waves, steps))
    return sines, stairs


def driven(model: LinearModel, theta: Array, torque: Array) -> Array:
    """Return speed and turn rate (ticks, 2) from rest under given torques (ticks, 2)."""
    rest = np.zeros_like(torque)
    return simulate(model, theta, TorqueDriven(torque), Reference(rest, rest, rest, RATE)).dq @ DRIVE.to_body.T


def fitness(real: Array, found: Array) -> Array:
    """One minus the normalised root mean square error of each column, %."""
    miss = np.linalg.norm(found - real, axis=0) / np.linalg.norm(real - real.mean(axis=0), axis=0)
    return 100.0 * (1.0 - miss)


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    truth = BASE.theta
    law, reference = Poles(10.0), motion()
    progress("the robot moves for half a minute")
    moved = simulate(DRIVE, truth, law, reference, step=0.25 / RATE)
    torques = fresh()
    real = [driven(DRIVE, truth, torque) for torque in torques]

    def fits(model: LinearModel, theta: Array) -> Array:
        """(4,), as OUTPUTS."""
        return np.concatenate([fitness(one, driven(model, theta, torque))
                               for one, torque in zip(real, torques, strict=True)])

    values: dict[str, list[Array]] = {"LS": [], "IV": []}
    fit: dict[str, dict[str, list[Array]]] = {table: {name: [] for name in names} for table, names in METHODS.items()}
    for seed in range(LOGS):
        for name, slipping in (("E.4", False), ("E.5", True)):
            progress(f"log {seed + 1} of {LOGS}, {'slipping wheels' if slipping else 'white noise'}")
            log = logged(moved, reference, seed, slipping)
            smooth = prepare(log, cutoff=1.0, velocity="measured", velocity_delay=0.0, slow=0.0)
            raw = prepare(log, method="none", torque_cutoff="none", decimate=5, velocity="measured",
                          velocity_delay=0.0, slow=0.0)
            ls = identify(Problem.from_model(DRIVE, smooth), method="wls").full
            iv = identify(Problem.from_model(DRIVE, raw, recordings=log, controller=law), method="iv").full
            fit[name]["LS"].append(fits(DRIVE, ls))
            fit[name]["IV"].append(fits(DRIVE, iv))
            if not slipping:
                values["LS"].append(ls)
                values["IV"].append(iv)
                balanced = Balanced(DRIVE)
                fit[name]["balanced"].append(fits(balanced, identify(balanced, smooth, method="wls").full))
    errors = {name: 100.0 * np.abs(np.array(found) / truth - 1.0) for name, found in values.items()}
    arrays = {name: {method: np.array(found) for method, found in one.items()} for name, one in fit.items()}
    medians = {name: {method: np.median(found, axis=0) for method, found in one.items()}
               for name, one in arrays.items()}
    turns, slips = arrays["E.4"]["balanced"][:, 1::2], arrays["E.5"]
    ahead = np.sum(slips["IV"].mean(axis=1) > slips["LS"].mean(axis=1))
    checks = {
        f"white noise: LS finds all 8 parameters within {errors['LS'].max():.2f} % in all {LOGS} logs, at most 2":
            errors["LS"].max() < 2.0,
        f"white noise: IV finds all 8 parameters within {errors['IV'].max():.2f} % in all {LOGS} logs, at most 6":
            errors["IV"].max() < 6.0,
        "white noise: LS and IV predict fresh motions above 90 % in all logs":
            min(arrays["E.4"][name].min() for name in ("LS", "IV")) > 90.0,
        f"slips: IV predicts better than LS in {ahead} of {LOGS} logs, over both motions and outputs, at least 90 %":
            ahead >= 0.9 * LOGS,
        "slips: IV predicts each motion and output better than LS, in the median of the logs":
            np.all(medians["E.5"]["IV"] > medians["E.5"]["LS"]),
    }
    return {"truth": truth.tolist(), "values": {name: np.array(found).tolist() for name, found in values.items()},
            "worst": {name: one.max(axis=0).tolist() for name, one in errors.items()},
            "fitness": {name: {method: found.tolist() for method, found in one.items()}
                        for name, one in arrays.items()},
            "medians": {name: {method: found.tolist() for method, found in one.items()}
                        for name, one in medians.items()},
            "printed": [_parameters(truth, errors), *(_fitness(name, one) for name, one in arrays.items())],
            "checks": {words: bool(holds) for words, holds in checks.items()},
            "demonstrations": {  # torques of the new motions, nearly alike on both wheels, are chosen here
                f"the balanced model fails on the turn rate: at most {turns.max():.0f} % in all {LOGS} logs, below 65":
                    bool(turns.max() < 65.0)}}


def _parameters(truth: Array, errors: dict[str, Array]) -> dict[str, Any]:
    """Compare table E.3: true values from table E.1, and relative errors of the simulated logs."""
    compared = Comparison(printed("000", "E.3"))
    for k, row in enumerate(compared.table.rows):
        if compared.table.text(row, "real") == "-":
            continue
        moved = [DRIVE.from_physical(**{**ROBOT, name: ROBOT[name] + by}, friction=FRICTION)[k] - truth[k]
                 for name, by in ROUNDING.items()]
        compared.compare(row, "real", MM[k] * truth[k], rounding=float(MM[k] * np.sum(np.abs(moved))))
        for method, found in errors.items():
            compared.compare(row, f"{method}%", float(np.mean(found[:, k])),
                             noise=SPREADS * float(np.std(found[:, k], ddof=1)), claimed=False)
    compared.leave_out("no truth is printed", [(row, column) for row in ("beta3", "beta4") for column in ("LS", "IV")])
    compared.leave_out("one log of random noise; its relative error is compared")
    return compared.summary()


def _fitness(name: str, found: dict[str, Array]) -> dict[str, Any]:
    """Compare tables E.4 and E.5 with the mean of the simulated logs; the new motions are not printed."""
    compared = Comparison(printed("000", name))
    for method, values in found.items():
        for row, mean, spread in zip(OUTPUTS, values.mean(axis=0), values.std(axis=0, ddof=1), strict=True):
            compared.compare(row, method, mean, noise=SPREADS * float(spread), claimed=False)
    return compared.summary()


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("table", "what", "theirs", "ours", "worst, %")]
    rows += [("E.1", f"{name}, SI", f"{value:g}", f"{value:g}", "") for name, value in ROBOT.items()]
    rows.append(("E.1", "friction, SI", "", f"{FRICTION:g}", ""))
    for letter, series in (("a", COSINES), ("b", SINES)):
        for k, (right, left) in enumerate(series):
            rows.append(("E.2", f"{letter}{k + 1} right, left", *[f"{right:g}, {left:g}"] * 2, ""))
    for k, truth in enumerate(result["truth"]):
        theirs = dict(zip(printed("000", "E.3").columns, printed("000", "E.3").rows[f"beta{k + 1}"], strict=True))
        rows.append(("E.3", f"beta{k + 1} real, kg mm s", theirs["real"], f"{MM[k] * truth:.6g}", ""))
        for name in ("LS", "IV"):
            found = result["values"][name][0][k]
            rows.append(("E.3", f"beta{k + 1} {name}", f"{theirs[name]} ({theirs[f'{name}%']} %)",
                         f"{MM[k] * found:.6g} ({100 * abs(found / truth - 1):.2f} %)",
                         f"{result['worst'][name][k]:.2f}"))
    for name, methods in METHODS.items():
        for method in methods:
            rows += [(name, f"{method}: {output}, %", printed("000", name).text(output, method), f"{median:.2f}", "")
                     for output, median in zip(OUTPUTS, result["medians"][name][method], strict=True)]
    return rows
