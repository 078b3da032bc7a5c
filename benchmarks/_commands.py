"""CPU time and peak memory of a whole command in a process of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dynid.errors import NotPossibleError


@dataclass(frozen=True)
class Spent:
    """What a finished command cost.

    Attributes:
        cpu_s: user and system time of the process, its threads and its children, s.
        peak_mb: resident memory of the largest of these processes, MB. The kernel counts the process that started
            the command too, so that one must stay small.
        output: what the command printed on stdout.
    """

    cpu_s: float
    peak_mb: float
    output: str


def spent(words: Sequence[str | Path], variables: Mapping[str, str] | None = None) -> Spent:
    """Run a command with one BLAS thread to its end.

    Args:
        words: the program and its arguments.
        variables: environment variables in addition to those of this process.

    Raises:
        NotPossibleError: the command failed; the message repeats the last line of its stderr.
    """
    # A BLAS that waits for work in a loop would count its waiting as CPU time.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **(variables or {})}
    child = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=environment)
    output, message = _read(child)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise NotPossibleError(f"'{' '.join(map(str, words))}' failed: "
                                f"{message.strip().splitlines()[-1] if message.strip() else 'without a message'}")
    return Spent(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output)


def _read(child: subprocess.Popen[str]) -> tuple[str, str]:
    """Return stdout and stderr of a process without waiting for it, so that `wait4` can report its usage."""
    from threading import Thread

    assert child.stdout is not None and child.stderr is not None
    stderr: list[str] = []
    reader = Thread(target=lambda stream: stderr.append(stream.read()), args=(child.stderr,))
    reader.start()
    output = child.stdout.read()
    reader.join()
    return output, stderr[0]
