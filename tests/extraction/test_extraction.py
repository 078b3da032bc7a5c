"""Full parameters out of base values: they are met, bounds and physics hold where asked for, and not where not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from scipy.optimize import approx_fprime

import dynid
from dynid.consistency import Box, Consistency, Ellipsoid, nearest
from dynid.errors import ModelError
from dynid.extraction import BaseValues, ExtractionOptions, bounds_from_table, extract, robot_bounds
from dynid.extraction.conditions import Conditions
from dynid.extraction.kernels import loss
from dynid.extraction.searches import SEARCHES, Landscape
from dynid.extraction.space import make_space
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.regression import base_parameters, prepared_equations
from dynid.regression.compression import fold
from dynid.robot import Robot
from reproductions._simionato import published_bounds


def arm(name: str = "arm3r", friction: bool = False) -> tuple[Model, np.ndarray, BaseValues]:
    """A model, its true parameters, and its base values."""
    robot = Robot.builtin(name)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset"))) if friction else Model(robot)
    theta = model.parameters.vector(model.parameters.nominal)
    base = base_parameters(model)
    return model, theta, BaseValues.from_base(model, base, base.reduce(theta))


def central(numbers: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre and inertia about it of ten numbers, written out by points: J - m (|c|^2 1 - c c')."""
    xx, xy, xz, yy, yz, zz, *h, m = numbers
    c = np.array(h) / m
    return m, c, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - m * (c @ c * np.eye(3) - np.outer(c, c))


def assert_within(bounds: dynid.literature.Bounds, model: Model, theta: np.ndarray) -> None:
    for k, columns in enumerate(model.parameters.bodies.values()):
        m, c, inertia = central(theta[columns])
        values = np.array([m, *c, *inertia[np.triu_indices(3)]])
        assert np.all(values >= bounds.low[k] - 1e-12) and np.all(values <= bounds.high[k] + 1e-12), values


def conditions_of(model: Model, bounds: dynid.literature.Bounds) -> Conditions:
    return Conditions(Consistency(model.parameters, margin=0.0), bounds)


def test_slopes_are_exact_and_the_compiled_loss_is_their_sum_of_squares() -> None:
    model, _, given = arm("kuka-lwr4", friction=True)
    bounds = published_bounds("kuka-lwr4", "normal")
    bounds = replace(bounds, contours={**bounds.contours, "link6": Ellipsoid([0.0, 0.0, 0.0], [0.02, 0.02, 0.02])})
    conditions = conditions_of(model, bounds)
    rng = np.random.default_rng(0)
    space = make_space(given, conditions, "exact")
    x = space.random(rng) + 0.1 * rng.normal(size=len(space.low))
    theta = space.theta(x)
    values, slopes, count = conditions.residuals(theta)
    numeric = approx_fprime(theta, lambda t: conditions.residuals(t)[0], 1e-7)
    np.testing.assert_allclose(slopes, numeric, atol=2e-3 * np.abs(slopes).max() / 100, rtol=1e-3)
    landscape = Landscape(space, conditions, np.zeros((0, len(theta))), np.zeros(0), 7.0)
    found = loss(x, landscape.weight, *landscape.arrays)
    assert found == pytest.approx(np.sum(values[:count] ** 2) + 7.0 * np.sum(values[count:] ** 2), rel=1e-9)


def test_every_point_of_the_exact_form_has_the_base_values_of_any_set() -> None:
    model, theta, _ = arm()
    table = {"44.44444444444444 ZZ3 - 20.66115702479339 ZZ2 + M2": 0.9236, "M3 - 44.44444444444444*ZZ3": 0.7996,
             "MY2": 0.0008}
    given = BaseValues.from_expressions(model, table)
    conditions = conditions_of(model, published_bounds("arm3r", "loose"))
    space = make_space(given, conditions, "exact")
    assert len(space.low) == len(theta) - len(table)
    for seed in range(3):
        found = dict(zip(model.parameters.names, space.theta(space.random(np.random.default_rng(seed))), strict=True))
        assert found["M3"] - found["ZZ3"] / 0.15 ** 2 == pytest.approx(0.7996, abs=1e-9)
        assert found["MY2"] == pytest.approx(0.0008, abs=1e-12)


@pytest.mark.parametrize("search", list(SEARCHES))
def test_each_search_finds_an_arm_of_three_joints_within_tight_bounds(search: str) -> None:
    """Simionato, table 5.2, p_8: feasible; base values to 1e-6, by at most 100,000 candidates."""
    model, theta, given = arm()
    bounds = published_bounds("arm3r", "tight")
    found = extract(given, bounds, loss="full", search=search, seed=1)
    assert found.evaluations < 100_000 and found.relative_distance < 1e-6 and found.feasible and not found.outside
    assert_within(bounds, model, found.theta)
    for columns in model.parameters.bodies.values():
        moments = np.linalg.eigvalsh(central(found.theta[columns])[2])
        assert moments[0] > 0 and moments[0] + moments[1] > moments[2]
    q, dq, ddq = np.random.default_rng(3).normal(size=(3, 20, 3))
    np.testing.assert_allclose(model.inverse_dynamics(found.theta, q, dq, ddq),
                               model.inverse_dynamics(theta, q, dq, ddq), atol=1e-9)
    assert np.abs(found.theta - theta).max() > 1e-3  # and is another robot


def test_what_is_not_asked_for_does_not_hold() -> None:
    """Simionato, tables 5.2 and 5.3: bounds alone give impossible inertias, loose ones centres outside too."""
    _, _, given = arm(friction=True)
    reasons = {(width, loss): extract(given, published_bounds("arm3r", width), loss=loss).reason
               for width, loss in (("normal", "partial"), ("tight", "partial"), ("loose", "partial"),
                                   ("loose", "inertia"), ("normal", "full"))}
    assert reasons == {("normal", "partial"): "inertia", ("tight", "partial"): "inertia", ("loose", "partial"): "both",
                       ("loose", "inertia"): "centres", ("normal", "full"): "feasible"}


def test_the_arm_of_seven_joints() -> None:
    """Base values to 1e-6 by at most 100,000 candidates; where no robot has them that is said, and the nearest is
    extracted."""
    model, _, given = arm("kuka-lwr4")
    bounds = published_bounds("kuka-lwr4", "tight")
    found = extract(given, bounds, loss="partial")
    assert found.evaluations < 100_000 and found.relative_distance < 1e-6 and not found.outside
    assert_within(bounds, model, found.theta)
    wide = published_bounds("kuka-lwr4", "normal")
    full = extract(given, wide, loss="inertia", runs=1)
    assert full.relative_distance < 1e-6 and not full.feasible and full.cones is not None and not full.cones.possible
    near = extract(given, "normal", nearest=True)
    boxed = Consistency(model.parameters, centres=robot_bounds(model).boxes(model.parameters.bodies))
    least = nearest(boxed, given.values, base_parameters(model)).distance
    assert near.feasible and near.relative_distance < 1e-6 and least <= near.moved * (1 + 1e-6) < 1.1 * least


def test_the_penalty_form_weighs_base_values_against_physics() -> None:
    model, _, given = arm("kuka-lwr4")
    bounds = replace(published_bounds("kuka-lwr4", "normal"), mass=None)
    found = extract(given, bounds, loss="full", form="penalty", runs=2)
    least = nearest(Consistency(model.parameters, margin=0.0), given.values, base_parameters(model)).distance
    assert found.feasible and least <= given.distance(found.theta) < 2.0 * least


def test_the_one_step_loss_is_that_of_all_rows() -> None:
    """|Y theta - tau|^2 of eq. 2.29 from the fold is that of the stacked regressor, less what no robot explains."""
    model, theta, given = arm()
    q, dq, ddq = np.random.default_rng(5).normal(size=(3, 200, 3))
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.01 * np.random.default_rng(6).normal(size=q.shape)
    base = base_parameters(model)
    stacked = fold(prepared_equations(model, [Samples.from_arrays(q, dq, ddq, tau, rate=100)], base)).stack()
    folded = replace(given, stacked=stacked)
    found = extract(folded, published_bounds("arm3r", "normal"), step="one", form="penalty", runs=2)
    y = model.regressor(q, dq, ddq)
    best, *_ = np.linalg.lstsq((y @ np.linalg.pinv(base.matrix)).reshape(-1, len(base)), tau.ravel(), rcond=None)
    np.testing.assert_allclose(found.given.values, best, atol=1e-9)
    assert np.sum((y @ found.theta - tau) ** 2) == pytest.approx(stacked.misfit(base.reduce(found.theta)), rel=1e-9)
    assert found.feasible and np.sum((y @ found.theta - tau) ** 2) < 1.01 * stacked.rest
    with refused(ModelError, "no-regression"):
        extract(given, published_bounds("arm3r", "normal"), step="one")


@pytest.mark.parametrize("name", ["arm3r", "franka-panda", "kuka-iiwa14", "puma560", "staubli-tx40"])
def test_bounds_of_a_robots_own_file_hold_it(name: str) -> None:
    robot = Robot.builtin(name)
    model = Model(robot)
    boxes = [robot_bounds(model, width) for width in ("tight", "normal", "loose")]
    numbers = model.parameters.vector(model.parameters.nominal)
    massive = [k for k, columns in enumerate(model.parameters.bodies.values()) if numbers[columns[9]] > 0]
    for bounds in boxes:
        for k in massive:
            m, c, inertia = central(numbers[list(model.parameters.bodies.values())[k]])
            values = np.array([m, *c, *inertia[np.triu_indices(3)]])
            lowest = np.minimum(bounds.low[k], 0.0)[4:]  # published inertias may be impossible
            assert np.all(values[:4] >= bounds.low[k, :4]) and np.all(values <= bounds.high[k])
            assert np.all(values[4:] >= lowest - 1.5 * np.abs(values[4:]))
    assert np.all(boxes[0].high[massive, 0] < boxes[1].high[massive, 0])
    assert np.all(boxes[1].high[massive, 0] < boxes[2].high[massive, 0])


def test_spheres_and_files_of_bounds(tmp_path) -> None:
    model, _, given = arm()
    file = tmp_path / "mine.toml"
    file.write_text('mass = [5, 6]\n[links.link3]\nmass = [0.9, 1.4]\ncontour = {centre = [-0.06, 0, 0], '
                    'radius = 0.02}\n[links.link2]\ncentre = {low = [-0.12, -0.02, -0.02], high = [0, 0.02, 0.02]}\n')
    found = extract(given, str(file))
    m, c, _ = central(found.theta[model.parameters.bodies["link3"]])
    assert found.feasible and 0.9 <= m <= 1.4 and np.linalg.norm(c - [-0.06, 0, 0]) <= 0.02
    assert 5.0 <= sum(found.theta[columns[9]] for columns in model.parameters.bodies.values()) <= 6.0
    assert isinstance(found.bounds.contours["link2"], Box) and found.bounds.name == "mine"
    for table, words in (({"links": {"arm": {}}}, ("bad-model", "'arm'")),
                         ({"links": {"link1": {"mass": [2, 1]}}}, ("bad-model", "'link1'", "mass", "[2, 1]")),
                         ({("bad-model", "width", "'huge'"): "huge"}, ("bad-model", "width", "'huge'")),
                         ({"parameters": {("bad-model", "'Fx'"): [0, 1]}}, ("bad-model", "'Fx'"))):
        with refused(ModelError, *words):
            bounds_from_table(table, model)


def test_options_and_tables_that_are_wrong_are_refused(tmp_path) -> None:
    model, _, given = arm()
    with refused(ModelError, "unknown-search", "magic"):
        extract(given, "normal", search="magic")
    with refused(ModelError, "unknown-option", "speed"):
        extract(given, "normal", speed=3)
    with refused(ModelError, "dependent-combination"):
        BaseValues.from_expressions(model, {"MX1 + M2": 1.0, "M2 + MX1": 1.0})
    with refused(ModelError, "unknown-parameter", "QQ9"):
        BaseValues.from_expressions(model, {"QQ9": 1.0})
    (tmp_path / "a.csv").write_text("combination,value\nMX1 M2,3\n")
    with refused(ModelError, "wrong-combination", "M2"):
        BaseValues.load(tmp_path / "a.csv", model)
    with refused(ModelError, "wrong-option", "1"):
        ExtractionOptions(runs=0)


def test_as_a_method() -> None:
    model, theta, _ = arm()
    q, dq, ddq = np.random.default_rng(7).normal(size=(3, 300, 3))
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    samples = Samples.from_arrays(q, dq, ddq, tau, rate=100)
    wls, mine = (dynid.identify(model, samples, method=name) for name in ("wls", "extract"))
    np.testing.assert_allclose(mine.values, wls.values, atol=1e-9)
    assert mine.theta is not None and mine.diagnostics["consistent"] is True
    np.testing.assert_allclose(model.inverse_dynamics(mine.theta, q, dq, ddq), tau, atol=1e-7)
