"""One maker of models bound to data: a batch run, workers, a stream and a fleet identify the same parameters."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from motions import fourier
from refusals import refused

import dynid
from dynid.arrays import Array
from dynid.datasets.log_fold import LogSource
from dynid.errors import ModelError, RobotError
from dynid.fleet.run import FleetOptions, choices_of_fleet, run_fleet
from dynid.fleet.settings import FleetSettings
from dynid.model import DataContext, Model, make_terms
from dynid.model.term import MotionSegment
from dynid.progress import silent
from dynid.recording import Recording
from dynid.recording.mapping import Mapping as LogMapping
from dynid.recording.write import write_npz
from dynid.robot import Robot
from dynid.runs import RunSettings, run
from dynid.runs.identification import Run
from dynid.runs.results import facts
from dynid.runs.toml import dumps
from dynid.runs.watching import WatchOptions, watch
from dynid.workers import Workers

SOURCE = Path(dynid.__file__).parent
ROBOT = Robot.builtin("arm3r")
LAST = ROBOT.joint_names[-1]
RATE, SECONDS, NOISE = 200.0, 12.0, 0.02  # Hz, s of each log, N m
VALUES = {"Fv": 0.5, "Fc": 0.8, "Fo": 0.1, "Fw1_": 0.4, "Fct": 0.02, "Fvt": -0.01, "Fl": 0.05}
USUAL: tuple[dict[str, Any], ...] = ({"kind": "viscous"}, {"kind": "coulomb"})
NEEDS_LOG = "which a stream of positions and torques does not contain"


@dataclass(frozen=True)
class Case:
    """Settings of a run, and the words with which a path refuses them."""

    terms: tuple[dict[str, Any], ...] = USUAL
    settings: Mapping[str, Any] = field(default_factory=dict)
    no_stream: str = ""
    no_fleet: str = ""

    @property
    def run_settings(self) -> dict[str, Any]:
        return {"robot": "arm3r", "method": "wls", "simulation": {"run": False},
                "model": {"own_terms": False, "terms": list(self.terms)}, **self.settings}


CASES = {
    "unmeasured joint": Case(settings={"log": {"unmeasured": [LAST]}}),
    "known value": Case(settings={"known": {"Fc3": VALUES["Fc"]}}),
    "uncertain known value": Case(settings={"known": {"Fc3": (VALUES["Fc"], 0.01)}},
                                  no_fleet="only exactly known parameters"),
    "drift": Case((*USUAL, {"kind": "drift"}), no_stream=NEEDS_LOG),
    "temperature": Case((*USUAL, {"kind": "temperature"}), no_stream=NEEDS_LOG),
    "named friction": Case((*USUAL, {"kind": "offset"})),
    "friction of the load": Case((*USUAL, {"kind": "load"})),
    "friction curve": Case(({"kind": "curve", "ridge": 0.0, "free": True, "widths": (0.1, 0.4)},)),
}
SLOW = ("uncertain known value", "temperature", "named friction", "friction of the load", "friction curve")


@dataclass(frozen=True, eq=False)
class Machine:
    """A simulated arm with the terms of a case, and its true parameters."""

    model: Model
    theta: Array

    @staticmethod
    def of(case: Case) -> Machine:
        model = Model(ROBOT, make_terms(ROBOT, extra=case.terms))
        theta = np.array([VALUES.get(item.symbol, 0.0) if item.nominal is None or item.body is None else item.nominal
                          for item in model.parameters])
        span = DataContext(times=(0.0, SECONDS), temperatures=np.full(3, 30.0), speeds=np.ones(3))
        return Machine(model.bind(span).with_estimate(theta), theta)

    def recordings(self) -> list[Recording]:
        """Two logs, in each of which friction drifts and all joints grow warmer by 10 K."""
        logs = []
        for k in range(2):
            rng = np.random.default_rng(k)
            q, dq, ddq = fourier(3, seconds=SECONDS, rate=RATE, seed=k, period=SECONDS)
            t = np.arange(len(q)) / RATE
            warm = np.repeat(25.0 + 10.0 * t[:, None] / SECONDS, 3, axis=1)
            memory = self.model.memory(MotionSegment(t, q, dq, ddq, warm)) if self.model.channels else None
            tau = self.model.regressor(q, dq, ddq, memory=memory) @ self.theta + NOISE * rng.normal(size=q.shape)
            logs.append(Recording(t, q, tau, temperature=warm, joints=ROBOT.joint_names))
        return logs


def joined(logs: list[Recording]) -> Recording:
    """Return two logs as one, a second apart."""
    later = replace(logs[1], t=logs[1].t + logs[0].t[-1] + 1.0)
    names = ("t", "q", "tau", "temperature")
    signals = {name: np.concatenate([getattr(log, name) for log in (logs[0], later)]) for name in names}
    return replace(logs[0], **signals)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a case with its two logs, each also as that of one robot of a fleet, and both as one."""
    @cache
    def folder(name: str) -> Path:
        path, logs = tmp_path_factory.mktemp(name.replace(" ", "-")), Machine.of(CASES[name]).recordings()
        for k, log in enumerate(logs):
            write_npz(log, path / f"{k}.npz")
        write_npz(joined(logs), path / "both.npz")
        return path
    return folder


@pytest.fixture(scope="module")
def batch(written: Callable[[str], Path]) -> Callable[[str, int], Run]:
    """The run of a case on its two logs by a number of workers."""
    @cache
    def found(name: str, workers: int) -> Run:
        settings = RunSettings.from_values({**CASES[name].run_settings,
                                            "logs": [str(written(name) / f"{k}.npz") for k in range(2)]})
        return run(settings, workers=Workers(workers))
    return found


def fleet_settings(name: str, folder: Path) -> FleetSettings:
    case = CASES[name]
    return FleetSettings.from_values({
        "robot": "arm3r", "model": case.run_settings["model"], "log": case.settings.get("log", {}),
        "known": case.settings.get("known", {}),
        "robots": [{"name": f"R{k}", "logs": [str(folder / f"{k}.npz")]} for k in range(2)]}, "fleet.toml")


def errors(machine: Machine, names: tuple[str, ...], base: Any, values: Array, std: Array) -> Array:
    """Errors of the identified values (base,) in units of their standard errors."""
    assert np.all(std[np.isfinite(std)] > 0.0)
    found = (values - base.reduce(machine.theta)) / std
    return np.asarray(found[np.isfinite(std)])


def assert_consistent(found: Array, expected: int) -> None:
    """Fail unless standardised errors have about unit size."""
    assert len(found) >= expected and np.sqrt(np.mean(found ** 2)) < 2.0 and np.abs(found).max() < 5.0, found


cases = pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW), id=name.replace(" ", "-")) for name in CASES])


@cases
def test_workers_and_one_process_agree_exactly(name: str, batch: Callable[[str, int], Run]) -> None:
    one, two = batch(name, 1), batch(name, 2)
    assert_consistent(errors(Machine.of(CASES[name]), one.estimate.names, one.estimate.base, one.estimate.values,
                             one.estimate.std), len(one.estimate.names) - 1)
    assert two.estimate.names == one.estimate.names
    assert two.estimate.values.tolist() == one.estimate.values.tolist()
    assert two.estimate.std.tolist() == one.estimate.std.tolist()
    assert facts(two)["parameters"] == facts(one)["parameters"]


@cases
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_stream_identifies_the_parameters_of_the_run(name: str, written: Callable[[str], Path],
                                                       batch: Callable[[str, int], Run]) -> None:
    case, log = CASES[name], str(written(name) / "both.npz")
    settings = RunSettings.from_values({**case.run_settings, "logs": [log]})
    if case.no_stream:
        with refused(ModelError, "term-needs-log", case.no_stream):
            watch(settings, WatchOptions(log, speed=0.0), lambda look: None)
        return
    estimate = watch(settings, WatchOptions(log, speed=0.0), lambda look: None)[1].estimate
    assert estimate is not None
    whole = batch(name, 1)
    assert estimate.names == whole.estimate.names and estimate.base.expressions == whole.estimate.base.expressions
    assert_same_model(estimate.model.learned, whole.estimate.model.learned)
    assert_consistent(errors(Machine.of(case), estimate.names, estimate.base, estimate.values, estimate.std),
                      len(estimate.names) - 1)
    apart = (estimate.values - whole.estimate.values) / np.hypot(estimate.std, whole.estimate.std)
    assert np.abs(apart[np.isfinite(apart)]).max() < 5.0
    assert estimate.diagnostics.relative_error < 1.5 * whole.estimate.diagnostics.relative_error


def assert_same_model(found: Mapping[str, list[float]], expected: Mapping[str, list[float]]) -> None:
    """Fail unless terms were set from the same data. Inertias are those of two estimates, of which the base parameters
    are compared."""
    assert found.keys() == expected.keys()
    for place, values in expected.items():
        if not place.endswith("bodies"):
            np.testing.assert_allclose(found[place], values, rtol=0.01)


@cases
def test_a_fleet_identifies_the_parameters_of_the_run(name: str, written: Callable[[str], Path],
                                                      batch: Callable[[str, int], Run], tmp_path: Path) -> None:
    case, settings = CASES[name], fleet_settings(name, written(name))
    if case.no_fleet:
        with refused(ModelError, "needs-exact-values", case.no_fleet):
            run_fleet(settings)
        return
    result, whole = run_fleet(settings, FleetOptions(tmp_path)), batch(name, 1)
    assert result.model.learned == whole.estimate.model.learned
    for one in result.robots:
        base = one.regression.base
        assert base.names == whole.estimate.names and base.known == whole.estimate.base.known
        std = np.sqrt(np.diag(one.covariance))
        std = np.where(one.solution.identified & (std > 0.0), std, np.inf)
        assert_consistent(errors(Machine.of(case), base.names, base, one.solution.beta, std), len(base) - 2)
        assert one.regression.relative_error(one.solution.beta) < 2.0 * whole.estimate.diagnostics.relative_error
    # A later call reads the choices from the folder, and makes the same model.
    logs = [LogSource.from_file(file, LogMapping.from_settings(settings.log)) for file in settings.find()]
    again = choices_of_fleet(settings, logs, tmp_path, silent)
    assert again.model.learned == result.model.learned and again.base.expressions == base.expressions
    assert not again.in_memory


def test_a_free_base_is_refused_by_streams_and_fleets(tmp_path: Path) -> None:
    from walking_runs import walk

    (tmp_path / "robot.xml").write_text(walk().walker.text)
    settings = RunSettings.from_values({"robot": str(tmp_path / "robot.xml"), "logs": ["-"]})
    with refused(RobotError, "free-base-unsupported", "free base"):
        watch(settings, WatchOptions("-"), lambda look: None)
    (tmp_path / "fleet.toml").write_text(dumps({"robot": "robot.xml", "robots": [{"name": "A", "logs": ["a.csv"]}]}))
    (tmp_path / "a.csv").write_text("time\n0\n")
    with refused(RobotError, "free-base-unsupported", "free base"):
        run_fleet(FleetSettings.load(tmp_path / "fleet.toml"))


@pytest.mark.parametrize(("unmeasured", "code"), [(["elbow"], "unknown-joint"),
                                                  (list(ROBOT.joint_names), "torque-not-measured")])
def test_wrong_names_of_unmeasured_joints_are_refused(unmeasured: list[str], code: str) -> None:
    with refused(ModelError, code):
        dynid.Online(Model(ROBOT), unmeasured=unmeasured)


# -- the rule: nobody else makes base parameters of data -----------------------------------------------
# Modules that call `base_parameters` of a model alone, with the reason.
WITHOUT_DATA = {
    "regression/equations.py": "default of the public constructor of equations, which src does not use",
    "floating/identifiable.py": "the kinds of equations of a free base",
    "datasets/identifiable.py": "the maker",
    "runs/choices.py": "the number of base parameters of the whole robot, for a note",
    "runs/stance_motion.py": "the number of base parameters of the robot, for a motion that is designed",
    "runs/consistency_check.py": "the robot file alone", "study/bench.py": "a simulated robot",
    "excitation/search/experiment_design.py": "a motion that is designed",
    "estimate/whole_body.py": "the number of base parameters of the whole robot, for a sentence",
}


def calls(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]


def called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def test_only_one_module_makes_base_parameters_of_data() -> None:
    makers, without_base = set(), []
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        for call in calls(path):
            if called(call) in ("base_parameters", "floating_base_parameters"):
                makers.add(place)
            is_equations = called(call) == "from_model" and isinstance(call.func, ast.Attribute) \
                and getattr(call.func.value, "id", "") == "TorqueEquations"
            if is_equations and len(call.args) + len(call.keywords) < 3:
                without_base.append(place)
    assert makers == set(WITHOUT_DATA) and not without_base
