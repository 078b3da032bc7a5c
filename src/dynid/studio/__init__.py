"""The studio: a page in the browser for a whole identification, served only to this machine.

The server process imports no arrays and no compiler: all computation is in `tasks` and runs in worker processes.
"""
