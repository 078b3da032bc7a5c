"""Make the pictures of docs/images from real output: what `dynid inspect arm3r` prints, and the report of `dynid demo`.

The report is photographed by Chromium without a window; without Chromium only the first picture is made.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from contextlib import chdir
from pathlib import Path

from rich.console import Console

from dynid.cli.tables import print_inspection
from dynid.robot import Robot
from dynid.runs.demo import demo
from dynid.runs.inspection import inspect_robot

IMAGES = Path(__file__).resolve().parent / "images"
SIZE = "1200,1632"  # pixels: the verdict, and the torques of the first two joints
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]


def inspect_picture() -> None:
    """inspect.svg: text in the reader's own monospace font, since a picture in a document fetches nothing."""
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=88, file=nowhere, force_terminal=True, highlight=False)
        print_inspection(inspect_robot(Robot.builtin("arm3r")), console)
    svg = console.export_svg(title="dynid inspect arm3r", unique_id="inspect")
    (IMAGES / "inspect.svg").write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")


def report_picture(browser: str) -> None:
    """report.png: the top of the demonstration's report."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        report = demo("dynid-demo").report.resolve()
        subprocess.run([browser, *QUIET, f"--user-data-dir={folder}/browser", f"--window-size={SIZE}",
                        "--virtual-time-budget=8000", f"--screenshot={IMAGES / 'report.png'}", report.as_uri()],
                       check=True, capture_output=True, timeout=120)


def main() -> None:
    """Make what can be made."""
    inspect_picture()
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("report.png is left as it is: it takes Chromium")
    else:
        report_picture(browser)


if __name__ == "__main__":
    main()
