"""``python -m dynid`` is ``dynid``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is being loaded ends it as quietly as later."""
    try:
        from dynid.cli.main import main as run
        run()
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
