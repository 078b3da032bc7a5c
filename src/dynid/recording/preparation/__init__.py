"""Steps and options from a recording to samples: resampling, cut-off, filters, velocity, selection of rows."""

from dynid.recording.preparation.options import Preparation

__all__ = ["Preparation"]
