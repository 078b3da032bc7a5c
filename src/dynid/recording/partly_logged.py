"""Signals that are logged for some joints only: positions of joints with encoders, torques of driven joints."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Mapping as Dictionary
from typing import TypeVar

from dynid.errors import RecordingError
from dynid.recording.columns import Match
from dynid.recording.mapping import Mapping
from dynid.recording.measured import TORQUES
from dynid.recording.source import Source
from dynid.recording.whole_body import WITHOUT_JOINTS
from dynid.robot import Robot

Column = TypeVar("Column")


def with_torque(joints: Sequence[str] | None, mapping: Mapping) -> list[str] | None:
    """Return the names of the joints with a known torque; None if names are not known."""
    return None if joints is None else [name for name in joints if name not in mapping.unmeasured]


def fewer(joints: Sequence[str] | None, mapping: Mapping, robot: Robot | None, signal: str) -> list[str] | None:
    """Return the names of the joints for which a signal is logged; None if it is logged for all."""
    whose = joints
    if robot is not None and robot.measured and joints is not None and signal not in WITHOUT_JOINTS:
        whose = robot.driven if signal in (*TORQUES, "current") else robot.measured
    if signal in ("torque", "current") and mapping.unmeasured:
        whose = with_torque(whose, mapping)
    return None if whose is None or whose is joints else list(whose)


def filled(columns: dict[str, tuple[Column, ...]], matches: Dictionary[str, tuple[int, Match]],
            names: Sequence[str], robot: Robot) -> dict[str, tuple[int, ...]]:
    """Return the columns of each signal that belong to joints without data, filled with a placeholder column.
    References may be of the measured or the driven joints; without names they are of the driven ones."""
    lacking: dict[str, tuple[int, ...]] = {}
    for signal, found in columns.items():
        if signal in WITHOUT_JOINTS or len(found) == len(names):
            continue
        named = matches[signal][1].joints
        choices = [robot.driven] if signal in TORQUES else [robot.measured, robot.driven]
        if signal in ("reference", "reference_velocity"):
            choices.reverse()
        whose = next(([*one] for one in ([named] if named else choices)
                      if one is not None and len(one) == len(found)), None)
        if whose is None:
            continue
        ordered = dict(zip(whose, found, strict=True))
        columns[signal] = tuple(ordered.get(name, found[0]) for name in names)
        lacking[signal] = tuple(i for i, name in enumerate(names) if name not in ordered)
    return lacking


def guessed(main: Source, mapping: Mapping, signals: tuple[list[str], list[str]], joints: Sequence[str] | None,
            count: int | None, notes: list[str], robot: Robot | None, taken: Collection[str] = ()
            ) -> tuple[dict[str, Match], dict[str, str]]:
    """Return wanted and optional signals by name; if not all joints are logged, each for its own joints."""
    from dynid.recording.column_guess import guess  # imported here, because a mapping often names all columns

    wanted, optional = signals
    others, said = robot.source_joints if robot is not None else (), len(notes)
    try:
        return guess(main, wanted, optional, joints, count, notes, others, taken)
    except RecordingError:
        apart = [signal for signal in (*wanted, *optional) if fewer(joints, mapping, robot, signal) is not None]
        if not set(apart) & set(wanted):
            raise
        del notes[said:]
    found, units = guess(main, [signal for signal in wanted if signal not in apart],
                         [signal for signal in optional if signal not in apart], joints, count, notes, others, taken)
    for signal in apart:
        few = fewer(joints, mapping, robot, signal)
        assert few is not None
        own = [] if robot is None else list(robot.driven)
        for choice in [few, own] if signal in ("reference", "reference_velocity") else [few]:
            try:
                one, own_units = guess(
                    main, [signal] if signal in wanted else [], [signal] if signal in optional else [], choice,
                    None if robot is not None and robot.measured else len(choice), notes, others, taken)
            except RecordingError:
                if signal in wanted:
                    raise
                continue
            found, units = {**found, **one}, {**own_units, **units}
            break
    return found, units
