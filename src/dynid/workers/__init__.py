"""Parallel execution: in this process, in processes on this machine's cores, or on a Dask cluster."""

from dynid.workers.job import Job
from dynid.workers.workers import TreeSum, Workers, tree_sum

__all__ = ["Job", "TreeSum", "Workers", "tree_sum"]
