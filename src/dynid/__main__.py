"""Entry point of ``python -m dynid``, which is the same as ``dynid``."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import suppress


def main() -> None:
    """Run the command line; Ctrl-C during loading ends the command without a traceback."""
    # Loading libraries creates many objects and no garbage: default garbage collection would take a tenth of a run.
    gc.set_threshold(500_000)
    ended: list[SystemExit] = []
    if not atexit._ncallbacks():  # it runs last: after those of libraries, and not before those of a debugger
        atexit.register(_leave, ended)
    try:
        from dynid.cli.lazy_dataclasses import compile_methods_at_first_use
        compile_methods_at_first_use()  # before typer defines its own dataclasses
        from dynid.cli.main import main as run
        run()
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        sys.exit(130)
    except SystemExit as code:
        ended.append(code)
        raise


def _leave(ended: list[SystemExit]) -> None:
    """End the process without destroying its objects one by one, because the system releases their memory anyway."""
    if ended and isinstance(ended[0].code, int):
        with suppress(AttributeError, OSError, ValueError):  # of a closed stream, which Python itself reports
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(ended[0].code)


if __name__ == "__main__":
    main()
