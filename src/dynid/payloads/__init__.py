"""Identification of payloads and drive gains, and controller settings."""

from dynid.payloads.controllers import Entry, controller_entry, entries
from dynid.payloads.estimation import payload
from dynid.payloads.known_load import KnownLoad, gains_from_known_load
from dynid.payloads.live import LivePayload
from dynid.payloads.result import PayloadEstimate
from dynid.payloads.sensor import Mounting, fused, sensor_payload
from dynid.recording.drive_gains import DriveGains, gains_from_log

__all__ = ["DriveGains", "Entry", "KnownLoad", "LivePayload", "Mounting", "PayloadEstimate", "controller_entry",
           "entries", "fused", "gains_from_known_load", "gains_from_log", "payload", "sensor_payload"]
