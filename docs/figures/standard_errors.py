"""Make standard_errors.svg: coverage of stated intervals under noise that is correlated in time."""

from __future__ import annotations

import numpy as np
from drawing import Panel, write
from scipy.signal import lfilter

import dynid

TRUTH = {"M1": 95.0, "Fv1": 200.0, "Fc1": 20.0, "Fo1": -3.0}
RATE, LOGS = 100.0, 100


def coverage(correlation: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return the shares of parameters inside the 95 % intervals of the textbook and of dynid, for noise of this
    correlation time, s."""
    robot = dynid.Robot.load("emps")
    model = dynid.Model(robot, dynid.make_terms(robot, friction=("viscous", "coulomb", "offset")))
    t = np.arange(0.0, 20.0, 1.0 / RATE)
    rates = 2 * np.pi * np.array([0.2, 0.45, 0.8])
    q, dq, ddq = ((part @ np.array([0.1, 0.05, 0.03]))[:, None] for part in (
        np.sin(np.outer(t, rates)), rates * np.cos(np.outer(t, rates)), -rates**2 * np.sin(np.outer(t, rates))))
    true = np.array([TRUTH.get(one.name, 0.0) for one in model.parameters])
    clean = model.inverse_dynamics(true, q, dq, ddq)
    columns = np.column_stack([ddq, dq, np.sign(dq), np.ones(len(t))])
    wanted, pole = np.array(list(TRUTH.values())), np.exp(-1.0 / (RATE * correlation)) if correlation else 0.0
    inside = np.zeros((2, LOGS, 4))
    for k in range(LOGS):
        white = rng.normal(size=len(t) + 500)
        noise = 2.0 * np.sqrt(1.0 - pole**2) * lfilter([1.0], [1.0, -pole], white)[500:]
        tau = clean + noise[:, None]
        values, (left,), *_ = np.linalg.lstsq(columns, tau[:, 0], rcond=None)
        plain = np.sqrt(left / (len(t) - 4) * np.diag(np.linalg.inv(columns.T @ columns)))
        inside[0, k] = np.abs(values - wanted) < 1.96 * plain
        estimate = dynid.identify(model, dynid.Samples.from_arrays(q, dq, ddq, tau, rate=RATE), method="ols")
        low, high = estimate.conf_int().T
        inside[1, k] = (low < wanted) & (wanted < high)
    return float(inside[0].mean()), float(inside[1].mean())


def main() -> None:
    rng = np.random.default_rng(0)
    times = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.4])
    textbook, ours = np.array([coverage(one, rng) for one in times]).T
    write("standard_errors", [Panel(
        "Coverage of 95 % intervals", "correlation time of the noise, s", "true values inside, percent",
        {"textbook formula (independent rows)": (times, 100 * textbook), "dynid": (times, 100 * ours),
         "nominal 95 %": (times, np.full(len(times), 95.0))}, dashed=("nominal 95 %",))])
    print(np.round(100 * textbook, 1).tolist(), np.round(100 * ours, 1).tolist())


if __name__ == "__main__":
    main()
