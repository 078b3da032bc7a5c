"""References of each log: the commanded motion, or one computed so that the simulated loop follows the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynid.errors import ModelError
from dynid.findings import Note
from dynid.recording import Recording, Samples
from dynid.simulation import ControlLaw, Reference

_MAX_TICKS_OUTSIDE = 1.5  # ticks by which samples may stand outside their reference


@dataclass(frozen=True, eq=False)
class Log:
    """Samples of one log and the reference of its simulated loop.

    `from_positions` is True if the reference was computed from the measured positions.
    """

    samples: Samples
    reference: Reference
    from_positions: bool


def log_references(parts: Sequence[Samples], recordings: Sequence[Recording], law: ControlLaw
                   ) -> tuple[tuple[Log, ...], tuple[Note, ...]]:
    """Return one log for each set of samples, and notes on computed references; recordings: one each, or none."""
    logs, notes = [], []
    for k, part in enumerate(parts):
        recording = recordings[k] if recordings else None
        if recording is None or recording.reference is None:
            logs.append(Log(part, law.follows(measured_motion(part)), True))
            notes.append(Note("reference-from-positions",
                              f"{part.source} contains no reference: the filtered positions are used instead"))
        else:
            logs.append(Log(part, _covering(part, Reference.from_recording(recording)), False))
    return tuple(logs), tuple(notes)


def measured_motion(samples: Samples) -> Reference:
    """Return filtered positions, velocities and accelerations of a log as a reference."""
    return Reference(samples.q, samples.dq, samples.ddq, samples.rate, float(samples.t[0]))


def _covering(part: Samples, reference: Reference) -> Reference:
    """Return the reference, and raise an error if it does not cover all samples."""
    more = _MAX_TICKS_OUTSIDE / reference.rate
    if reference.t[-1] < part.t[-1] - more or reference.t[0] > part.t[0] + more:
        raise ModelError(f"{part.source}: the reference runs from "
                         f"{reference.t[0]:.4g} s to "
                         f"{reference.t[-1]:.4g} s, but the samples to "
                         f"{part.t[-1]:.4g} s", "give the whole reference or cut the log to it",
                         "reference-too-short")
    return reference
