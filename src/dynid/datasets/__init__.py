"""Datasets: logs, how they are read and prepared, and sums over them wherever they are computed."""

from dynid.datasets.dataset import PILOT_ROWS, Dataset
from dynid.datasets.log_source import LogFacts, LogSource

__all__ = ["PILOT_ROWS", "Dataset", "LogFacts", "LogSource"]
