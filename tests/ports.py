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


def wait_for_listener(port: int) -> None:
    """Return when this process listens to datagrams at a port: those sent before would be lost."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and not any(one.laddr and one.laddr.port == port
                                             for one in psutil.Process().net_connections("udp")):
        time.sleep(0.01)
