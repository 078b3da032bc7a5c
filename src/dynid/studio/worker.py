"""Worker process of a studio: reads tasks from standard input, one line of JSON each, and answers them.

Answers are written to a private copy of standard output; output of libraries goes to the terminal. The end of standard
input means that the server has ended; the worker then ends with all its child processes, even within a task.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from dynid.errors import DynidError
from dynid.studio.confinement import Confinement
from dynid.studio.voice import ProgressChannel

# Task -> module in `tasks` and its function; imported on request.
TASKS = {"warm": ("warm", "warm"), "open": ("settings", "open_run"), "settings": ("settings", "checked_settings"),
         "catalogue": ("catalogue", "catalogue"), "robot": ("robot", "robot"), "pose": ("robot", "pose"),
         "log": ("log", "log"), "columns": ("log", "columns"),
         "example": ("catalogue", "example"), "job:run": ("run", "run_job"),
         "job:compare": ("run", "compare_job"), "job:motion": ("motion", "motion_job"),
         "job:payload": ("use", "payload_job"), "job:code": ("use", "code_job"), "job:live": ("live", "live_job"),
         "job:actuators": ("actuators", "actuators_job")}


def main() -> None:
    """Answer tasks until standard input ends."""
    folder, trusted = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    confinement = Confinement(folder, trusted)
    confinement.install()
    voice = ProgressChannel(out)
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=listen, args=(requests,), daemon=True).start()
    while True:
        request = json.loads(requests.get())
        answer(request["task"], request["params"], voice, confinement)


def listen(requests: SimpleQueue[bytes]) -> None:
    """Forward requests as they arrive, and end the process when standard input ends."""
    for line in sys.stdin.buffer:
        requests.put(line)
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)


def answer(task: str, params: Mapping[str, Any], voice: ProgressChannel, confinement: Confinement) -> None:
    """Execute a task of the server and send its result or error."""
    try:
        module, name = TASKS[task]
        made = getattr(import_module(f"dynid.studio.tasks.{module}"), name)(params, voice, confinement)
        body = json.dumps(made, allow_nan=False, separators=(",", ":")).encode()
    except DynidError as problem:
        voice.say("failed", error={"sentence": problem.reason, "hint": problem.advice or None,
                                   "where": problem.where})
    except Exception as problem:  # a bug in dynid: a sentence for the page, the traceback for the terminal
        traceback.print_exc()
        voice.say("failed", error={"sentence": f"an internal error occurred in dynid ({type(problem).__name__}); the "
                                               "terminal that started the studio shows the details", "hint": None,
                                   "where": None, "internal": True})
    else:
        voice.say("done", body)


if __name__ == "__main__":
    main()
