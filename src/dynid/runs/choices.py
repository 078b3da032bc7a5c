"""Choices that a run makes from its data: cut-off, friction, direction of gravity, one step each.

Every command that identifies from logs makes these choices here, on the logs in memory. A step takes the choices so far
and adds its own; settings given by the user are not chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dynid.datasets import PILOT_ROWS, Dataset
from dynid.datasets.identifiable import DataFacts, identifiable_base
from dynid.estimate import FrictionChoice, Problem, identify
from dynid.estimate.cutoff_choice import CutoffChoice, prepare_dataset
from dynid.floating.identifiable import equation_noise, floating_base_parameters
from dynid.floating.preparation import default_options
from dynid.floating.whole_body import whole_bodies, with_noise
from dynid.model import required_robot_model
from dynid.progress import Progress, ProgressCallback, silent
from dynid.recording.excerpts import excerpt
from dynid.recording.preparation import Preparation
from dynid.robot import Robot
from dynid.runs.models import AUTO, first_model, friction_of_run, make_model, names_friction
from dynid.runs.settings import RunSettings
from dynid.validate import Gravity
from dynid.validate.hypotheses.gravity import estimate_gravity


@dataclass(frozen=True, eq=False)
class Choices:
    """Settings, robot and dataset of a run, with the choices made from the data.

    Attributes:
        settings: settings of the run, with chosen friction and gravity.
        robot: the robot with the chosen gravity.
        dataset: logs prepared with the chosen cut-off.
        cutoff: choice of the cut-off; None if it was given.
        friction: choice of the friction of each joint; None if it was given.
        gravity: direction of gravity; None if it was given.
        notes: sentences on choices that were not requested.
    """

    settings: RunSettings
    robot: Robot
    dataset: Dataset
    cutoff: CutoffChoice | None = None
    friction: FrictionChoice | None = None
    gravity: Gravity | None = None
    notes: tuple[str, ...] = ()


def choose_cutoff_step(state: Choices, progress: ProgressCallback) -> Choices:
    """Choose the cut-off whose estimate predicts best in cross-validation, and prepare the logs with it."""
    model = first_model(state.settings, state.robot)
    kinds = {one.equations for one in whole_bodies(state.dataset.recordings)}
    usual = default_options("projected" if "projected" in kinds else "") if kinds else {}
    asked = {**usual, **state.settings.prepare}
    preparation = Preparation.from_settings(asked, "[prepare]")
    dataset, cutoff = prepare_dataset(model, state.dataset, preparation, known=state.settings.known, progress=progress)
    return replace(state, dataset=dataset, cutoff=cutoff)


def choose_noise_step(state: Choices, progress: ProgressCallback) -> Choices:
    """Estimate the noise of each equation of a free base, and state which parameters the equations can identify.

    Rows without contact forces are whitened by this noise.
    """
    if not state.robot.has_free_base:
        return state
    settings, dataset = state.settings, state.dataset
    model = first_model(settings, state.robot)
    base = identifiable_base(model, DataFacts.from_recordings(dataset.recordings))
    assert dataset.preparation is not None
    whole = len(floating_base_parameters(required_robot_model(model, "a free base"), "wrenches"))
    kinds = ", ".join(dict.fromkeys(one.equations for one in whole_bodies(dataset.recordings)))
    note = f"equations '{kinds}' can identify {len(base)} of the {whole} base parameters of the whole robot"
    progress(note)
    state = replace(state, notes=(*state.notes, note))
    if settings.floating.noise is not None or "projected" not in kinds:
        return state
    progress("estimating the noise of each equation")
    problem = Problem.from_model(model, Dataset.from_samples(dataset.samples), base=base, known=settings.known)
    noise = equation_noise(problem.equations, identify(problem, method="ols").values)
    found = tuple(float(f"{value:.4g}") for value in noise)
    settings = settings.model_copy(update={"floating": settings.floating.model_copy(update={"noise": found})})
    in_memory = {place: replace(log, recording=with_noise(log.recording, found))
                 for place, log in dataset.in_memory.items()}
    logs = tuple(replace(log, floating=replace(log.floating, noise=found)) for log in dataset.logs)
    dataset = replace(dataset, in_memory=in_memory, logs=logs).prepared(dataset.preparation, progress=progress)
    return replace(state, settings=settings, dataset=dataset)


def choose_friction_step(state: Choices, progress: ProgressCallback) -> Choices:
    """Choose the friction of each joint, if neither the run nor the robot file specifies it."""
    if AUTO in state.settings.model.friction or not names_friction(state.settings, state.robot):
        progress("choosing the friction of each joint")
    few = excerpt(state.dataset.samples, PILOT_ROWS)
    settings, friction, note = friction_of_run(state.settings, state.robot, few)
    return replace(state, settings=settings, friction=friction, notes=(*state.notes, note) if note else state.notes)


def choose_gravity_step(state: Choices, progress: ProgressCallback) -> Choices:
    """Estimate the direction of gravity, if the run requests it."""
    settings, robot, dataset = state.settings, state.robot, state.dataset
    if settings.gravity != "estimate":
        return state
    progress("estimating the direction of gravity")
    problem = Problem.from_model(make_model(settings, robot), Dataset.from_samples(dataset.samples, dataset.recordings),
                                 known=settings.known, blocks=settings.blocks)
    found = estimate_gravity(problem.torques)
    x, y, z = (float(value) for value in found.vector)
    note = (f"gravity was estimated from the logs: ({x:.3f}, {y:.3f}, {z:.3f}) m/s^2 in the base frame, "
            f"{found.angle:.1f} degrees from that of the robot file; standard error of its direction "
            f"{max(found.std):.2g} degrees")
    return replace(state, settings=settings.model_copy(update={"gravity": (x, y, z)}),
                   robot=robot.with_gravity((x, y, z)), gravity=found, notes=(*state.notes, note))


Step = Callable[[Choices, ProgressCallback], Choices]
STEPS: tuple[Step, ...] = (choose_cutoff_step, choose_noise_step, choose_friction_step, choose_gravity_step)


def choose(settings: RunSettings, robot: Robot, dataset: Dataset, progress: ProgressCallback = silent) -> Choices:
    """Return a run's settings, robot and dataset with every choice made that the settings leave open."""
    state, progress = Choices(settings, robot, dataset), Progress.from_callback(progress)
    for k, step in enumerate(STEPS):
        state = step(state, progress.part(k / len(STEPS), (k + 1) / len(STEPS)))
    return state
