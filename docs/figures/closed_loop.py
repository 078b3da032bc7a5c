"""Make closed-loop.svg: the effect of position noise on least squares and on instrumental variables, for the tutorial's
arm."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from drawing import Panel, write

import dynid
from dynid.simulation import Cascade

EXAMPLE = Path(__file__).resolve().parents[1] / "example"
sys.path.insert(0, str(EXAMPLE))

from make_logs import RATE, true_arm  # noqa: E402

LAW = Cascade(kp=30.0, kv=(60.0, 80.0, 25.0), feedforward=True)


def main() -> None:
    model, truth = true_arm(EXAMPLE / "arm.urdf")
    t = np.arange(0.0, 16.0, 1.0 / RATE)
    rng = np.random.default_rng(3)
    motion = dynid.trajectories.FourierSeries(*0.3 * rng.uniform(-1.0, 1.0, (2, 3, 5)), np.zeros(3), 8.0).at(t)
    reference = dynid.Reference.from_arrays(motion.q, motion.dq, motion.ddq, rate=RATE)
    base = dynid.base_parameters(model)
    true = base.matrix @ truth
    where = base.names.index("ZZ1R")
    bits = np.arange(12, 21)
    found: dict[str, list[float]] = {"wls, unfiltered": [], "wls, default filter": [], "iv, unfiltered": []}
    for one in bits:
        machine = dynid.VirtualRobot(model, truth, LAW, encoder=2 * np.pi / 2.0**one, torque_noise=0.1)
        log = machine.record(reference, seed=int(one))
        raw = dynid.prepare(log, method="none", decimate=1, torque_cutoff="none")
        problem = dynid.Problem.from_model(model, raw, recordings=log, controller=LAW)
        estimates = (dynid.identify(problem, method="wls"), dynid.identify(model, dynid.prepare(log), method="wls"),
                     dynid.identify(problem, method="iv"))
        for name, estimate in zip(found, estimates, strict=True):
            found[name].append(100.0 * estimate.values[where] / true[where])
    write("closed-loop", [
        Panel("Estimate of the inertia ZZ1R", "encoder resolution, bits per turn", "percent of the true value",
              {**{name: (bits, np.array(values)) for name, values in found.items()},
               "true value": (bits, np.full(len(bits), 100.0))}, dashed=("true value",))])
    print({name: np.round(values, 1).tolist() for name, values in found.items()})


if __name__ == "__main__":
    main()
