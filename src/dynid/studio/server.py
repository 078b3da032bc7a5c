"""The server of a studio: its socket, its lock, and its end."""

from __future__ import annotations

import asyncio
import os
import socket
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import uvicorn

from dynid.errors import DynidError
from dynid.studio.app import Studio, application
from dynid.studio.security import Door
from dynid.studio.workspace import Caps

_LOCK = ".lock"


@dataclass(frozen=True, eq=False)
class Opened:
    """A studio that listens but does not answer yet."""

    studio: Studio
    door: Door
    socket: socket.socket
    lock: IO[str]


def open_studio(folder: Path, run: Path | None = None, host: str = "127.0.0.1", port: int = 0,
                caps: Caps | None = None, warm: bool = True) -> Opened:
    """A studio on a folder that no other one works in; see `Studio`."""
    studio = Studio(folder, run, caps, warm)
    lock = _locked(studio.workspace.folder)
    listening = _listening(host, port)
    return Opened(studio, Door(host, listening.getsockname()[1]), listening, lock)


async def serve(opened: Opened, browser: str | None = None) -> None:
    """Answer requests until Ctrl-C. browser: an address to open once the server answers."""
    server = uvicorn.Server(uvicorn.Config(
        application(opened.studio, opened.door), log_level="warning", access_log=False, timeout_graceful_shutdown=1,
        server_header=False, ws="none", timeout_keep_alive=30))
    if browser is not None:
        asyncio.get_running_loop().call_later(0.2, webbrowser.open, browser)
    await server.serve(sockets=[opened.socket])


def _listening(host: str, port: int) -> socket.socket:
    """A socket at an address."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)  # who opens the address at once waits for the answer and is not refused
    except OSError as problem:
        raise DynidError(f"cannot listen at {host}, port {port}: {problem.strerror or problem}",
                         "give another --port or --host") from None
    made.set_inheritable(False)
    return made


def _locked(folder: Path) -> IO[str]:
    """A file that only one studio at a time can hold; systems without such locks go without."""
    file = open(folder / _LOCK, "w", encoding="utf-8")
    try:
        import fcntl
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        pass
    except OSError:
        raise DynidError(f"another studio works in {folder}", "use that one, or give another --folder") from None
    file.write(str(os.getpid()))
    file.flush()
    return file
