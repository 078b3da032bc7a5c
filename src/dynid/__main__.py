"""``python -m dynid`` is ``dynid``."""

from dynid.cli.main import main

main()
