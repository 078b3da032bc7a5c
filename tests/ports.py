"""Ports of this machine for tests of streams."""

from __future__ import annotations

import socket
import time

import psutil

PATIENCE = 60.0  # s until a program that does not listen is given up; it is not waited for where all is well


def free_port() -> int:
    """A port for datagrams that nobody uses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for_listener(port: int, process: int | None = None) -> None:
    """Return when a process, this one by default, or one of its children listens to datagrams at a port.

    Datagrams that are sent before are lost.
    """
    def ports() -> set[int]:
        found = psutil.Process(process)
        return {connection.laddr.port for one in ([found] if process is None else [found, *found.children(True)])
                for connection in one.net_connections("udp") if connection.laddr}

    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and port not in ports():
        time.sleep(0.01)
