"""Sets of many logs: reading, filtering, and the sum of their compressed regressions.

This process, worker processes or a Dask cluster compute the sum.
"""

from dynid.datasets.dataset import PILOT_ROWS, Dataset
from dynid.datasets.log_fold import LogFacts, LogSource

__all__ = ["PILOT_ROWS", "Dataset", "LogFacts", "LogSource"]
