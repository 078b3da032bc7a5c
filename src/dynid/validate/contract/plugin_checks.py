"""The contract of plugins: checks of the object that an entry point refers to, and of every term."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.model import Model, RigidBodies, Term
from dynid.model.term_capabilities import term_name
from dynid.plugins import load_plugin
from dynid.recording.mapping import Mapping
from dynid.recording.presets import find_preset
from dynid.robot import Robot
from dynid.validate.contract import check_method
from dynid.validate.contract.checks import ContractError

_TEST_ROBOT = "arm3r"
_RANDOM_STATES = 12  # number of random states at which columns are computed
_DIFFERENCE_STEP = 1e-6  # rad, rad/s, rad/s^2: step of the central differences
_SLOPE_ERROR = 1e-5  # largest error of a slope, relative to the largest difference


def check_plugin(group: str, name: str) -> None:
    """Run the checks of a group of `dynid.plugins.GROUPS` on one plugin.

    Raises:
        DynidError: the plugin fails a check; a `ContractError` names the check.
    """
    found = load_plugin(group, name)
    if group == "dynid.robots":
        Robot.load(name)
    elif group == "dynid.terms":
        check_term(found())
    elif group == "dynid.methods":
        check_method(name)
    elif group == "dynid.presets":
        try:
            preset = find_preset(name)
            if preset.refusal is None:
                Mapping(preset=name)
        except ValueError as problem:
            raise ContractError(f"preset '{name}' has settings with which no log can be read: {problem}") from None
        if preset.name != name:
            raise ContractError(f"preset '{name}' is called '{preset.name}' in its own name field")
    elif group == "dynid.report_sections":
        missing = [part for part in ("name", "title", "gather", "template") if not getattr(found, part, None)]
        if missing:
            raise ContractError(f"report section '{name}' has no {' and no '.join(missing)}")
    elif not callable(found):
        raise DynidError(f"'{name}' of the group {group} is a {type(found).__name__}, which cannot be called",
                         code="misnamed-plugin")


def check_term(term: Term) -> None:
    """Check a term on a built-in arm with three joints, at random states.

    The parameters must have distinct names, and the columns must be finite. Unless the term has memory, rows must not
    depend on the other samples of a batch. If the term has `slopes`, they must agree with differences of its columns.

    Raises:
        ContractError: a check failed; the message states the term and the reason.
    """
    robot = Robot.builtin(_TEST_ROBOT)
    model = Model(robot, (RigidBodies(), term))
    start = f"term '{term_name(term)}' fails the check"
    own = model.parameters.names[-len(tuple(term.parameters(robot))):]
    if not own or len(set(model.parameters.names)) != len(model.parameters.names):
        raise ContractError(f"{start} 'names': its parameters are {', '.join(own) or 'none'}; names must be distinct")
    rng = np.random.default_rng(1)
    q, dq, ddq = rng.normal(size=(3, _RANDOM_STATES, robot.dof))
    columns = model.regressor(q, dq, ddq)
    if not np.all(np.isfinite(columns)):
        raise ContractError(f"{start} 'finite': a column contains values that are not finite")
    alone = np.concatenate([model.regressor(q[k:k + 1], dq[k:k + 1], ddq[k:k + 1]) for k in range(_RANDOM_STATES)])
    if not model.channels and not np.allclose(alone, columns.reshape(alone.shape), rtol=1e-9, atol=1e-9):
        raise ContractError(f"{start} 'batch': columns at one sample depend on the other samples of the batch")
    if hasattr(term, "slopes"):
        _check_slopes(start, Model(robot, (term,)), (q, dq, ddq), rng)


def _check_slopes(start: str, model: Model, motion: tuple[Array, Array, Array], rng: np.random.Generator) -> None:
    """Compare the slopes of a weighted sum of all columns of a term with central differences."""
    place = np.arange(model.dof * len(model.parameters)).reshape(model.dof, -1)
    weights = rng.normal(size=(place.size, _RANDOM_STATES))

    def weighted(signals: Array) -> Array:
        out = np.zeros((place.size, _RANDOM_STATES))
        q, dq, ddq = signals
        model.fill(q, dq, ddq, place, out)
        return np.sum(out * weights, axis=0)

    stated = np.reshape(model.pull_back(*motion, place, weights), (3, _RANDOM_STATES, model.dof))
    signals = np.array(motion)
    found = np.empty_like(stated)
    for signal in range(3):
        for joint in range(model.dof):
            step = np.zeros_like(signals)
            step[signal, :, joint] = _DIFFERENCE_STEP
            found[signal, :, joint] = (weighted(signals + step) - weighted(signals - step)) / (2 * _DIFFERENCE_STEP)
    error = float(np.abs(stated - found).max())
    if error > _SLOPE_ERROR * (1.0 + float(np.abs(found).max())):
        raise ContractError(f"{start} 'slopes': the slopes differ from numerical derivatives of its columns by "
                            f"{error:.2g}")
