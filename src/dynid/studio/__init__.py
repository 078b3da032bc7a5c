"""The studio: a page in the browser, served to this machine alone, on top of runs.

The server process imports no arrays and no compiler: everything that computes lies in `tasks` and runs in a worker.
"""
