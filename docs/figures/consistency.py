"""Make consistency.svg: physically inconsistent arms that least squares gives from short logs, and the free fall of
such an arm."""

from __future__ import annotations

import numpy as np
from drawing import Panel, write

import dynid

RATE = 200.0


def motion(seconds: float, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    t = np.arange(0.0, seconds, 1.0 / RATE)
    found = dynid.trajectories.FourierSeries(*0.35 * rng.normal(size=(2, 3, 5)), np.zeros(3), 10.0).at(t)
    return found.q, found.dq, found.ddq


def fall(model: dynid.Model, theta: np.ndarray, ticks: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Return times and angles of joint 2 of an arm that is released from rest, until the simulation ends."""
    while True:
        none = np.zeros((ticks, 3))
        try:
            law, reference = dynid.controllers.TorqueDriven(none), dynid.Reference(none, none, none, RATE)
            motion = dynid.simulate(model, theta, law, reference)
            return np.arange(len(motion.q)) / RATE, motion.q[:, 1]
        except dynid.NotPossibleError:
            ticks -= 2


def main() -> None:
    robot = dynid.Robot.load("arm3r")
    model = dynid.Model(robot, dynid.make_terms(robot, friction=("viscous",)))
    truth = np.array([0.4 if one.symbol == "Fv" else one.nominal for one in model.parameters])
    rng = np.random.default_rng(4)
    postures = rng.uniform(-np.pi, np.pi, (500, 3))
    spans = np.array([1.5, 2.0, 2.5, 3.0, 5.0, 8.0, 12.0])
    least = {"wls": [], "pc-wls": []}
    kept = {}
    for seconds in spans:
        q, dq, ddq = motion(seconds, np.random.default_rng(1))
        tau = model.inverse_dynamics(truth, q, dq, ddq) + rng.normal(scale=0.1, size=q.shape)
        samples = dynid.Samples.from_arrays(q, dq, ddq, tau, rate=RATE)
        for name, found in least.items():
            estimate = dynid.identify(model, samples, method=name)
            found.append(np.linalg.eigvalsh(model.inertia_matrix(estimate.full, postures)).min())
            kept[name, seconds] = estimate.full
    true = np.linalg.eigvalsh(model.inertia_matrix(truth, postures)).min()
    falls = {"true arm": fall(model, truth), "pc-wls, 2 s of data": fall(model, kept["pc-wls", 2.0]),
             "wls, 2 s of data (the simulation diverges)": fall(model, kept["wls", 2.0])}
    write("consistency", [
        Panel("Smallest eigenvalue of the inertia matrix", "length of the log, s", "smallest in 500 postures, kg m²",
              {**{name: (spans, np.array(values)) for name, values in least.items()},
               "true arm": (spans, np.full(len(spans), true))}, dashed=("true arm",)),
        Panel("Free fall from rest, joint 2", "time, s", "angle, rad", falls, dashed=("true arm",))])
    print(np.round(least["wls"], 4).tolist(), np.round(least["pc-wls"], 4).tolist(), true, list(falls))


if __name__ == "__main__":
    main()
