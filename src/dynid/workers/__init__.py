"""Execution of work: in this process, in processes on this machine's cores, or on a Dask cluster."""

from dynid.workers.fixed_order_sums import TreeSum, tree_sum
from dynid.workers.job import Job
from dynid.workers.workers import Workers

__all__ = ["Job", "TreeSum", "Workers", "tree_sum"]
