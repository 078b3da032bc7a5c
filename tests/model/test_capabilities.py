"""What a term offers is read off its methods, and a capability that is only partly there is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from refusals import refused

from dynid.errors import ModelError
from dynid.model import DataContext, Model, Scara, bound, complete, make_terms, robot_model
from dynid.model.registry import term_from_table
from dynid.model.term_capabilities import capabilities
from dynid.robot import Robot

ROBOT = Robot.load("arm3r")


@dataclass(frozen=True)
class Bare:
    """A term of two methods and nothing else."""

    width: Any = None

    def parameters(self, robot):
        return term_from_table({"kind": "viscous"}).parameters(robot)[:1]

    def entries(self, robot, q, dq, ddq):
        yield 0, 0, np.tanh(dq[:, 0])


def offered(term) -> set[str]:
    return {name for name, value in vars(capabilities(term)).items() if value is not None}


@pytest.mark.parametrize(("kind", "expected"), [
    ("viscous", {"single_sample", "elements"}), ("stribeck", {"shape", "elements", "slow_joints", "dissipating",
                                                                           "single_sample"}),
    ("dahl", {"shape", "history", "step", "elements"}), ("hysteresis", {"history", "step", "elements", "dissipating"}),
    ("load", {"load", "elements", "single_sample"}),
    ("curve", {"dissipating", "elements", "single_sample"}), ("delay", {"history", "elements"})])
def test_capabilities_of_terms(kind, expected):
    assert offered(term_from_table({"kind": kind})) == expected


def test_two_methods_are_enough_for_single_samples():
    assert offered(Bare()) == {"single_sample"}
    model = Model(ROBOT, (*make_terms(ROBOT, friction=("coulomb",)), Bare()))
    q, dq, ddq = np.random.default_rng(3).normal(size=(3, 4, 3))
    assert model._instants is not None
    np.testing.assert_allclose([model.regressor(*one) for one in zip(q, dq, ddq, strict=True)],
                               model.regressor(q, dq, ddq), atol=1e-13)


def test_part_of_a_capability_is_refused():
    class Halfway(Bare):
        def remembered(self, robot, q, dq, ddq, memory):
            yield 0, 0, memory[:, 0]

    with refused(ModelError, "incomplete-term", "channels", "memory"):
        Model(ROBOT, (Halfway(),))

    class Steps(Bare):
        def step(self, robot, before, q, dq):
            yield q[:, 0]

    with refused(ModelError, "incomplete-term", "step"):
        Model(ROBOT, (Steps(),))

    class Curious(Bare):
        learned: ClassVar = {"width": "weather"}

    with refused(ModelError, "incomplete-term", "weather", "speeds"):
        Model(ROBOT, (Curious(),))


def test_fields_are_taken_from_the_data_unless_given():
    class Wide(Bare):
        learned: ClassVar = {"width": "speeds"}

    class Beside(Bare):
        learned: ClassVar = {"width": "estimate"}

    first, second = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    for kind, entry, kept in ((Wide, "speeds", first), (Beside, "estimate", second)):
        model = Model(ROBOT, (kind(),))
        assert model.bind(DataContext(times=(0.0, 1.0))) is model
        once = model.bind(DataContext(**{entry: first}))
        twice = once.bind(DataContext(**{entry: second}))
        np.testing.assert_array_equal(once.terms[0].width, first)
        np.testing.assert_array_equal(twice.terms[0].width, kept)
        assert model.loaded.any() == (entry == "estimate")


def test_a_custom_model_takes_nothing_and_has_no_robot():
    own, usual = Scara(), Model(ROBOT, make_terms(ROBOT))
    assert bound(own, DataContext(speeds=np.ones(2))) is own
    assert robot_model(own) is None and complete(own).channels == 0
    assert robot_model(usual) is usual
    assert replace(usual).bind(DataContext(speeds=np.ones(3))).terms == usual.terms
