"""What a controller commanded, as a log of its own: of the model that the controller has of the robot."""

from __future__ import annotations

from dataclasses import replace

from dynid.errors import RecordingError
from dynid.recording.recording import Recording


def commanded(recording: Recording) -> Recording:
    """The log with commanded positions, velocities and torques in place of those measured.

    A controller that computes its torques by a model relates these by that model alone (Ardiani, s. 2.3.6.1): what is
    identified from them is what the controller takes the robot for.
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
