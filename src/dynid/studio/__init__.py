"""The studio: a page in the browser for the whole job, served to this machine alone.

The server process imports no arrays and no compiler: all computation is in `tasks` and runs in worker processes.
"""
