"""Make excitation.svg: a random and an optimised motion, and the standard errors of each."""

from __future__ import annotations

import numpy as np
from drawing import Panel, write

import dynid
from dynid.excitation import assess, random_sines


def main() -> None:
    robot = dynid.Robot.load("arm3r")
    model = dynid.Model(robot, dynid.make_terms(robot, friction=("viscous", "coulomb")))
    found = dynid.excite(model, family=dynid.trajectories.Fourier(duration=10.0, harmonics=5),
                         search=dynid.trajectories.Search(budget=None, rounds=1, seed=0))
    drawn = assess(model, random_sines(dynid.Limits.from_robot(robot), duration=10.0, seed=0))
    t = np.linspace(0.0, 10.0, 400)
    better, worse = (one.trajectory.at(t).q for one in (found, drawn))
    order = np.argsort(drawn.std)
    number = np.arange(1, len(order) + 1)
    write("excitation", [
        Panel("Joint 2", "time, s", "angle, rad", {
            f"optimised, condition number {found.condition:.0f}": (t, better[:, 1]),
            f"random, condition number {drawn.condition:.0f}": (t, worse[:, 1])}),
        Panel("Expected standard errors", "base parameter, sorted by the random motion", "standard error, SI units", {
            "optimised": (number, found.std[order]), "random": (number, drawn.std[order])},
            points=("optimised", "random"), log=True)])
    print(found.condition, drawn.condition, np.median(drawn.std / found.std),
          np.max(drawn.std / found.std))


if __name__ == "__main__":
    main()
