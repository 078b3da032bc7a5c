"""A log of commanded signals, for identifying the controller's own model."""

from __future__ import annotations

from dataclasses import replace

from dynid.errors import RecordingError
from dynid.recording.recording import Recording


def commanded(recording: Recording) -> Recording:
    """Return the log with commanded positions, velocities and torques in place of the measured ones.

    A controller with a model relates these by that model alone (Ardiani, s. 2.3.6.1), so they identify the
    controller's model.
    """
    positions, torques = recording.reference, recording.target_torque
    if positions is None or torques is None:
        missing = [name for name, signal in (("reference", positions), ("target_torque", torques)) if signal is None]
        raise RecordingError(f"{recording.source}: commanded = true needs the commanded positions and torques; map "
                             f"{' and '.join(missing)} under [log], or with --set 'log.{missing[0]}=[...]'")
    return replace(recording, q=positions, dq=recording.reference_velocity, tau=torques, reference=None,
                   reference_velocity=None, target_torque=None, target_current=None, external_torque=None,
                   current=None, voltage=None, duty=None,
                   motor_position=None, sensed_torque=None, gain_deviation=None, unscaled=False, unmeasured=(),
                   notes=(*recording.notes, "commanded positions and torques are used instead of the measured ones"))
