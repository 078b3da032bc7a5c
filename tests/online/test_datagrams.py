"""Samples by UDP: what is lost is counted, the buffer follows the rate, and hostile datagrams are skipped."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from dynid.online.sources import Block, Losses, datagrams, parsed, read_lines


@pytest.fixture
def port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def send(port: int, *contents: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        for content in contents:
            door.sendto(content, ("127.0.0.1", port))


def stamps(blocks: Iterator[Block]) -> list[float]:
    return [float(t) for block in blocks for t in block[0]]


def test_samples_that_are_missing_between_stamps_are_counted(port: int) -> None:
    losses, kept = Losses(), [k for k in range(100) if k not in (30, 31, 60)]
    blocks = datagrams(port, 1, lambda text: None, 0.5, losses=losses)
    next(blocks)  # it listens
    send(port, *(f"{k / 100},0.1,0.2".encode() for k in kept))
    assert stamps(blocks) == [k / 100 for k in kept]
    assert losses.missing == 3 and not losses.dropped
    assert losses.to_dict()["missing_samples"] == 3 and "3 samples are missing" in losses.sentence


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells how many datagrams it dropped")
def test_drops_are_told_with_the_next_datagram(port: int) -> None:
    losses, sent = Losses(), 30_000
    blocks = datagrams(port, 1, lambda text: None, 60.0, rate=1.0, losses=losses)
    next(blocks)
    send(port, *(f"{k / 1000},0.1,0.2".encode() for k in range(sent)))  # nobody reads meanwhile
    received = 0
    for block in blocks:
        received += len(block[0])
        if received and losses.dropped:
            break
        if received and not len(block[0]):
            send(port, f"{sent / 1000},0.1,0.2".encode())  # the count comes with it
    assert losses.dropped and received - 1 + losses.dropped == sent


def test_the_buffer_follows_the_rate(port: int) -> None:
    sizes = []
    for rate in (1.0, 1000.0):
        losses = Losses()
        next(datagrams(port, 7, lambda text: None, 1.0, rate=rate, losses=losses))
        sizes.append(losses.buffer)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        usual = plain.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    assert sizes[1] >= sizes[0] and sizes[1] >= usual  # as far as the system allows


@pytest.mark.parametrize("line", [
    '{"t": ' + "[" * 60_000, '{"t": 1, "q": [' + "9" * 500 + '], "tau": [0]}', '{"t": 1, "q": {"a": 1}, "tau": [0]}',
    '{"t": null, "q": [0], "tau": [0]}', '{"t": 1, "q": [[0]], "tau": [0]}', "1," + "9" * 60_000, "1,0x10,2",
    "\x00,\x00", '{"q": [0]}', "1,2,3,4,5", '{"t": true, "q": ["x"], "tau": [0]}'])
def test_hostile_lines_are_no_samples(line: str) -> None:
    said: list[str] = []
    found = parsed(line, 1, said.append)
    assert found is None and all(len(text) < 200 for text in said)


def test_hostile_datagrams_do_not_end_a_stream(port: int) -> None:
    blocks = datagrams(port, 1, lambda text: None, 0.5)
    next(blocks)
    rng = np.random.default_rng(0)
    send(port, b'{"t": ' + b"[" * 60_000, b"", bytes(65_000), *(rng.bytes(300) for _ in range(200)), b"\xff\xfe1,2,3",
         b"1.0,0.1,0.2")
    assert stamps(blocks)[-1] == 1.0


def test_an_endless_line_takes_no_memory() -> None:
    class Endless:
        """A file of a hundred million characters without a line break, and one good line."""

        left = 100_000_000

        def readline(self, most: int = -1) -> str:
            assert most > 0  # a line without bound would be read whole
            if self.left <= 0:
                self.left -= 1
                return {-1: "\n", -2: "1.0,0.1,0.2\n"}.get(self.left, "")
            self.left -= most
            if self.left <= 0:
                self.left = 0
            return "x" * most

    said: list[str] = []
    assert stamps(read_lines(Endless(), 1, said.append)) == [1.0]  # type: ignore[arg-type]
    assert len(said) == 1 and "longer" in said[0]
