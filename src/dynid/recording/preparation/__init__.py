"""The steps from a recording to samples, and their options: resampling, cut-off, filters, velocity, selection of
rows."""

from dynid.recording.preparation.options import Preparation

__all__ = ["Preparation"]
