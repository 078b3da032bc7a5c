"""The server of a studio: its socket, its shutdown, the time limit of requests, and opening a browser.

uvicorn limits only the time between two requests. In the studio, the time counts from the earliest start of a request
until its header and body are complete; every received byte extends the limit, for slow networks.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dynid.errors import DynidError
from dynid.studio.app import Studio, application
from dynid.studio.security import Authentication, is_loopback
from dynid.studio.workspace import Caps

_OPENER_SECONDS = 60.0  # s after which the file with the login address is removed


@dataclass(frozen=True, eq=False)
class Opened:
    """A studio whose socket listens, but which does not answer requests yet."""

    studio: Studio
    door: Authentication
    socket: socket.socket

    @property
    def lock(self) -> IO[str]:
        """Open and locked marker file of the studio's folder."""
        return self.studio.workspace.lock


def open_studio(folder: Path, run: Path | None = None, host: str = "127.0.0.1", port: int = 0,
                caps: Caps | None = None, warm: bool = True) -> Opened:
    """Open a studio on a folder that no other studio uses; arguments as in `Studio` and `_listening`.

    Without a given port, the studio uses the port of the last studio on the folder, if that port is free, and the
    stored secret of its cookie, so that an open page reconnects. A studio that other machines can reach neither uses
    nor stores a secret, because its cookies cross the network without encryption.
    """
    studio = Studio(folder, run, caps, warm)
    try:
        space, local = studio.workspace, is_loopback(host)
        last = space.session() if local else None
        listening = None
        if port == 0 and last is not None:
            with suppress(DynidError):
                listening = _listening(host, last[0])
        listening = listening or _listening(host, port)
        at = listening.getsockname()[1]
        door = Authentication(host, at) if last is None or last[0] != at else Authentication(host, at, last[1])
        if local:
            space.keep_session(at, door.session)
        else:
            space.forget_session()
    except BaseException:
        studio.workspace.close()
        raise
    return Opened(studio, door, listening)


class StudioServer(uvicorn.Server):
    """Server that ends the streams of its pages before it waits for open requests at shutdown."""

    def __init__(self, opened: Opened) -> None:
        super().__init__(uvicorn.Config(
            application(opened.studio, opened.door), log_level="warning", access_log=False,
            timeout_graceful_shutdown=1, server_header=False, http=TimedProtocol, ws="none", timeout_keep_alive=30))
        self.studio = opened.studio

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self.studio.end()
        await super().shutdown(sockets)


async def serve(opened: Opened, browser: bool = False) -> None:
    """Answer requests until Ctrl-C. browser: whether to open a browser once the server answers."""
    server = StudioServer(opened)
    loop = asyncio.get_running_loop()
    if browser:
        # The browser opens a private file, because other users can see addresses in command lines.
        loop.call_later(0.2, lambda: webbrowser.open(opener_file(opened).as_uri()))
    with suppress(NotImplementedError, AttributeError, OSError, ValueError):  # no terminal input
        loop.add_reader(sys.stdin, _print_address, opened)
    await server.serve(sockets=[opened.socket])


def _print_address(opened: Opened) -> None:
    """Print another address when the user presses Enter, because each address admits one browser. A process in the
    background reads no keys."""
    if sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) != os.getpgrp():
        return
    if os.read(sys.stdin.fileno(), 4096):
        print(f"dynid studio at {opened.door.new_address()}", flush=True)
    else:
        asyncio.get_running_loop().remove_reader(sys.stdin)


def opener_file(opened: Opened) -> Path:
    """Return a private page that redirects to the studio with a token; it is removed after a minute or at the end."""
    path = opened.studio.workspace.temporary / "open.html"
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write('<!doctype html><html lang="en"><meta charset="utf-8"><title>dynid studio</title>'
                   f'<meta http-equiv="refresh" content="0;url={opened.door.new_address()}">')
    with suppress(RuntimeError):  # without an event loop the folder is removed at the end
        asyncio.get_running_loop().call_later(_OPENER_SECONDS, lambda: path.unlink(missing_ok=True))
    return path


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address and port."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)  # early connections wait for the server instead of being refused
    except OSError as problem:
        raise DynidError(f"cannot listen at {host}, port {port}: {problem.strerror or problem}",
                         "give another --port or --host") from None
    made.set_inheritable(False)
    return made


class TimedProtocol(H11Protocol):
    """HTTP connections of the studio.

    Attributes:
        seconds: time limit of a request without a body, s.
        slowest: minimum rate of a body, bytes per second.
    """

    seconds = 10.0
    slowest = 64 << 10

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = None
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._arrived += len(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    @property
    def _incomplete(self) -> bool:
        """Whether the connection waits for the rest of a request, or for its first request."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and self.timeout_keep_alive_task is None

    def _watch(self) -> None:
        if not self._incomplete:
            self._forget()
        elif self._timer is None:
            self._began, self._arrived = self.loop.time(), 0
            self._timer = self.loop.call_later(self.seconds, self._check)

    def _check(self) -> None:
        """Close the connection if its request exceeds the time limit, which received bytes extend; else check again
        later."""
        self._timer = None
        if not self._incomplete or self.transport.is_closing():
            return
        if self.flow.read_paused:  # the server is busy, not the client
            self._began, self._arrived = self.loop.time(), 0
        end = self._began + self.seconds + self._arrived / self.slowest
        if self.loop.time() < end:
            self._timer = self.loop.call_at(end, self._check)
        else:
            self.transport.abort()

    def _forget(self) -> None:
        timer: Any = self._timer
        if timer is not None:
            timer.cancel()
        self._timer = None
