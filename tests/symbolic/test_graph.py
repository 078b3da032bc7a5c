"""The expression graph: what is folded, shared and left out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from dynid.errors import ModelError
from dynid.robot import Robot
from dynid.symbolic import generate
from dynid.symbolic.graph import FUNCTIONS, Graph
from dynid.symbolic.regroup import regrouped


def test_signs_are_on_the_edges_and_equal_values_are_one():
    graph = Graph()
    a, b = graph.symbol("a[0]"), graph.symbol("b[0]")
    assert a - b == -(b - a) and a * -b == -(b * a) and (-a).__neg__() == a
    assert (a - a).number == 0.0 and (a * 0.0).number == 0.0 and a * 1.0 == a and 2.0 * (3.0 * a) == 6.0 * a
    assert graph.apply("sin", -a) == -graph.apply("sin", a) and graph.apply("cos", -a) == graph.apply("cos", a)
    assert graph.operations([a * b, -(a * b), a - b, b - a]).total == 2


def test_what_no_output_needs_is_not_counted():
    graph = Graph()
    a, b = graph.symbol("a[0]"), graph.symbol("b[0]")
    _ = a * b * b
    count = graph.operations([a + b])
    assert (count.multiplications, count.additions) == (0, 1)


def test_common_pairs_are_computed_once():
    graph = Graph()
    a, b, c, d = (graph.symbol(f"{name}[0]") for name in "abcd")
    outputs = [(a + b) + c, (a + d) + b, (c - a) - b, (a * b) * c, (a * d) * b]
    before = graph.operations(outputs)
    again, written = regrouped(graph, outputs)
    assert (before.additions, before.multiplications) == (6, 4)
    after = again.operations(written)
    assert (after.additions, after.multiplications) == (4, 3)


def test_terms_that_cancel_across_brackets_go():
    graph = Graph()
    a, b, c = (graph.symbol(f"{name}[0]") for name in "abc")
    again, written = regrouped(graph, [(a + b) + (c - a), (a + b) - (b + a)])
    assert again.operations(written).total == 1 and written[1].number == 0.0


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_regrouped_values_are_the_same(data):
    graph, rng = Graph(), np.random.default_rng(data.draw(st.integers(0, 2 ** 31)))
    values = [graph.symbol(f"x[{k}]") for k in range(5)] + [graph.value(0.7)]
    for _ in range(40):
        a, b = (values[k] for k in rng.integers(0, len(values), 2))
        values.append([a + b, a - b, a * b, -a, graph.apply("sin", a)][rng.integers(5)])
    outputs, x = values[-6:], rng.normal(size=5)

    def at(graph, outputs):
        return graph.replay(outputs, lambda name: x[int(name[2])], lambda name, of: FUNCTIONS[name](*of))

    again, written = regrouped(graph, outputs)
    np.testing.assert_allclose(at(again, written), at(graph, outputs), rtol=1e-9, atol=1e-9)
    assert again.operations(written).total <= graph.operations(outputs).total


def test_numbers_that_are_none():
    graph = Graph()
    with refused(ModelError, "not-finite"):
        graph.value(np.inf)
    with refused(ModelError, "division-by-zero"):
        graph.symbol("a[0]") / 0.0


@pytest.mark.filterwarnings("error")
def test_a_function_that_divides_by_an_inertia_of_zero_is_named():
    """With parameters as an input the code is valid, and is tested with parameters for which it has a result."""
    robot = Robot.from_mdh([{"alpha": 0.0, "a": 0.0, "d": 0.0}, {"alpha": 1.57, "a": 0.3, "d": 0.0}],
                           name="bare", notation="craig").with_inertias(np.zeros((2, 10)))
    what = ["gravity", "forward_dynamics"]
    with refused(ModelError, "division-by-zero", "forward_dynamics", "bare", "--what"):
        generate(robot, what, parameters="fixed")
    text = generate(robot, what, parameters="base").c()
    assert "ddq_is" in text and "nan" not in text
