"""Real logs replayed: the live estimate predicts other data as well as the batch does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dynid import Model, Preparation, Recording, Robot, identify, make_terms, prepare, read, reconstruct
from dynid.online import Online

MAPPINGS = Path(__file__).resolve().parents[2] / "reproductions" / "mappings"


def logs(name: str, data: Callable[..., Path]) -> tuple[Model, Recording, Recording]:
    """A model, a log to learn from and another to predict."""
    urdf = {"kuka_lwr4": "kuka_lwr4.urdf", "panda": "panda_arm.urdf", "tx40": "tx40_mdh_modified.urdf"}[name]
    robot = Robot.from_urdf(data(name, urdf))
    wrist = [{"kind": "coupled-wrist", "joints": [5, 6]}] if name == "tx40" else []
    model = Model(robot, make_terms(robot, rotor=name == "tx40", friction=("viscous", "coulomb", "offset"),
                                    extra=wrist))
    mapping = MAPPINGS / f"{name}.toml"
    if name == "kuka_lwr4":
        first, second = (read(data(name, f"measurements_{k}.npz"), mapping, robot) for k in (1, 2))
        return model, first, second
    whole = read(data(name), mapping, robot)
    middle = whole.t[0] + 0.5 * whole.duration
    return model, whole.between(whole.t[0], middle), whole.between(middle, whole.t[-1] + 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kuka_lwr4", "panda", "tx40"])
def test_a_replayed_log_predicts_another_as_the_batch_does(name: str, data: Callable[..., Path]) -> None:
    model, first, second = logs(name, data)
    samples = prepare(first)
    other = prepare(second, Preparation.from_settings(dict(samples.settings)).elsewhere())

    def off(estimate: object) -> float:
        return reconstruct(estimate, other).total.relative_error

    batch, live = off(identify(model, samples, "wls")), off(identify(model, samples, "rls", forgetting="prior"))
    fed = Online(model)
    for k in range(0, len(first), 100):
        part = slice(k, k + 100)
        fed.feed(first.t[part], first.q[part], first.tau[part])
    fed.finish()
    assert live < batch + 0.2 and off(fed.estimate()) < live + 0.5
    assert fed.restarts == ()
