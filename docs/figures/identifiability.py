"""Make identifiability.svg: singular values of the regressor of an arm with three joints, and two arms with equal
torques."""

from __future__ import annotations

import numpy as np
from drawing import Panel, write

import dynid


def main() -> None:
    model = dynid.Model(dynid.Robot.load("arm3r"))
    base, theta = dynid.base_parameters(model), model.parameters.nominal
    rng = np.random.default_rng(0)
    regressor = np.vstack(model.regressor(*rng.uniform(-2.0, 2.0, (3, 400, 3))))
    values = np.linalg.svd(regressor / np.maximum(np.linalg.norm(regressor, axis=0), 1e-300), compute_uv=False)
    order = np.arange(1, len(values) + 1)
    shown = order <= len(base)
    _, _, basis = np.linalg.svd(base.matrix)
    other = theta + basis[len(base):].T @ (basis[len(base):] @ rng.normal(scale=3.0, size=len(theta)))
    t = np.linspace(0.0, 4.0, 300)
    rates = np.array([1.5, 2.2, 3.1])
    q, dq, ddq = np.sin(np.outer(t, rates)), rates * np.cos(np.outer(t, rates)), -rates**2 * np.sin(np.outer(t, rates))
    one, two = (model.inverse_dynamics(part, q, dq, ddq)[:, 1] for part in (theta, other))
    masses = [k for k, item in enumerate(model.parameters) if item.symbol == "M"]
    kg = [", ".join(f"{part[k]:.1f}" for k in masses) for part in (theta, other)]
    first, second = f"masses {kg[0]} kg", f"masses {kg[1]} kg"
    dots = {f"{shown.sum()} identifiable combinations": (order[shown], values[shown]),
            f"{(~shown).sum()} combinations without effect on torques": (order[~shown],
                                                                         np.maximum(values[~shown], 1e-17))}
    write("identifiability", [
        Panel("Singular values of the regressor, 30 columns", "index", "singular value, columns of norm 1", dots,
              points=tuple(dots), log=True),
        Panel("Torque of joint 2 of two arms", "time, s", "torque, N m", {first: (t, one), second: (t, two)},
              dashed=(second,))])


if __name__ == "__main__":
    main()
