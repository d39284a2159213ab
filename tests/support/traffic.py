"""Send for some seconds and count at the receiver: what passed, not what a sender believes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.namespaces import Pair

# The first part of a transfer is left out: a burst and slow start belong to another test.
_RECEIVER = """
import json, socket, sys, time
family, port = (socket.AF_INET6, socket.AF_INET)[int(sys.argv[1])], int(sys.argv[2])
listener = socket.socket(family)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", port))
listener.listen()
print("ready", flush=True)
peer, _ = listener.accept()
begin, bins = time.monotonic(), {}
while block := peer.recv(1 << 18):
    key = int((time.monotonic() - begin) * 20)
    bins[key] = bins.get(key, 0) + len(block)
print(json.dumps({"bins": bins, "begin": begin}), flush=True)
"""
_SENDER = """
import socket, sys, time
address, port, seconds, tos, priority, wait = sys.argv[1], *map(int, sys.argv[2:6]), float(sys.argv[6])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
time.sleep(wait)  # on purpose: some senders join while others send
sender = socket.socket(family)
if tos:
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
if priority:
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
sender.setsockopt(socket.IPPROTO_TCP, 13, b"cubic")
sender.connect((address, port))
block, end = b"x" * 65536, time.monotonic() + seconds
while time.monotonic() < end:
    sender.sendall(block)
sender.close()
"""
BIN_S = 0.05


@dataclass(frozen=True)
class Received:
    """Bytes by bins of BIN_S since the connection was made (CLOCK_MONOTONIC)."""

    begin_s: float
    bins: dict[int, int]

    def rate(self, start_s: float, end_s: float) -> float:
        """Return bits a second of payload in a part of the transfer."""
        numbers = range(round(start_s / BIN_S), round(end_s / BIN_S))
        return sum(self.bins.get(number, 0) for number in numbers) * 8 / (len(numbers) * BIN_S)


class Transfer:
    """A transfer from the pair's ``here`` to its ``there``, running since it was made."""

    def __init__(
        self, pair: Pair, port: int, seconds: int, *, to: str = "10.99.0.2", tos: int = 0, priority: int = 0,
        wait_s: float = 0, in_child: Callable[[], None] | None = None,
        in_receiver: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        family = "0" if ":" in to else "1"
        receiver = [sys.executable, "-c", _RECEIVER, family, str(port)]
        self.receiver = pair.start(receiver, pair.there, preexec_fn=in_receiver)
        assert self.receiver.stdout is not None
        ready = self.receiver.stdout.readline()
        assert ready == "ready\n", ready + self.receiver.stdout.read()
        numbers = map(str, (port, seconds, tos, priority, wait_s))
        self.sender = pair.start([sys.executable, "-c", _SENDER, to, *numbers], preexec_fn=in_child)
        self.timeout_s = seconds + wait_s + 60

    def wait(self) -> Received:
        """Wait for the end and return what came through."""
        try:
            shown, _ = self.sender.communicate(timeout=self.timeout_s)
            assert self.sender.returncode == 0, shown
            text, _ = self.receiver.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.sender.kill()
            self.receiver.kill()
            raise
        found = json.loads(text)
        return Received(found["begin"], {int(key): value for key, value in found["bins"].items()})
