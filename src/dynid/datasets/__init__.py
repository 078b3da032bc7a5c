"""Datasets: logs, how they are read and filtered, and sums over all logs in this process, by workers or on a cluster.
"""

from dynid.datasets.dataset import PILOT_ROWS, Dataset
from dynid.datasets.log_fold import LogFacts, LogSource

__all__ = ["PILOT_ROWS", "Dataset", "LogFacts", "LogSource"]
