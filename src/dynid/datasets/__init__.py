"""Datasets of many logs: how they are read and filtered, and regressions summed in this process, by workers or a
cluster.
"""

from dynid.datasets.dataset import PILOT_ROWS, Dataset
from dynid.datasets.log_fold import LogFacts, LogSource

__all__ = ["PILOT_ROWS", "Dataset", "LogFacts", "LogSource"]
