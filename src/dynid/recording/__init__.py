"""What was measured: readers, resampling, filtering, selection."""

from dynid.recording.recording import Recording
from dynid.recording.samples import Decimation, Samples

__all__ = ["Decimation", "Recording", "Samples"]
