"""Entry point of ``python -m dynid``, which is the same as ``dynid``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C during loading ends it without a traceback."""
    try:
        from dynid.cli.main import main as run
        run()
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
