"""Recordings and samples: readers of logs, and the preparation of recordings for regression."""

from dynid.recording.recording import Recording
from dynid.recording.samples import Decimation, Samples

__all__ = ["Decimation", "Recording", "Samples"]
