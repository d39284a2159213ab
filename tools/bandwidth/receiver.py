"""Receive what sender.py sends and print when how much arrived; a program of its own with a JSON object as argument.

`family` (4 or 6), `port`, `flows`, `merge_ns`: reads of a flow within that time are shown as one, with the last's time.
"""

from __future__ import annotations

import json
import select
import signal
import socket
import struct
import sys
import time
from types import FrameType

BUFFER_BYTES = 1 << 20


class Flow:
    """One connection: its number, and [ns of the monotonic clock, bytes] of its reads."""

    def __init__(self, peer: socket.socket, merge_ns: int) -> None:
        """Read the number with which a flow begins."""
        self.peer, self.merge_ns, self.begin_ns = peer, merge_ns, time.monotonic_ns()
        self.number = struct.unpack("!I", peer.recv(4, socket.MSG_WAITALL))[0]
        self.reads: list[list[int]] = []
        peer.setblocking(False)

    def take(self, buffer: bytearray) -> bool:
        """Read once; returns whether the flow goes on."""
        try:
            size = self.peer.recv_into(buffer)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        now, last = time.monotonic_ns(), self.reads[-1] if self.reads else None
        if last and now // self.merge_ns == last[0] // self.merge_ns:
            last[0], last[1] = now, last[1] + size
        elif size:
            self.reads.append([now, size])
        return size > 0


def listen(family: int, port: int) -> socket.socket:
    """Return a listening socket."""
    listener = socket.socket(socket.AF_INET6 if family == 6 else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("::" if family == 6 else "0.0.0.0", port))
    listener.listen(1024)
    return listener


class Ended(Exception):  # noqa: N818 - not an error
    """Whoever started this program wants what it has: the packet that ends a connection may have been dropped."""


def end(_number: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM."""
    raise Ended


def receive(listener: socket.socket, count: int, merge_ns: int, flows: dict[int, Flow]) -> None:
    """Receive until all flows have ended; flows are added as they come."""
    ready, buffer, done = select.epoll(), bytearray(BUFFER_BYTES), 0
    ready.register(listener, select.EPOLLIN)
    while done < count:
        for number, _event in ready.poll():
            if number == listener.fileno():
                peer, _address = listener.accept()
                flows[peer.fileno()] = Flow(peer, merge_ns)
                ready.register(peer, select.EPOLLIN)
            elif not flows[number].take(buffer):
                ready.unregister(number)
                done += 1


def main() -> None:
    """Say that connections can come, receive, print."""
    spec = json.loads(sys.argv[1])
    listener = listen(spec["family"], spec["port"])
    flows: dict[int, Flow] = {}
    try:
        signal.signal(signal.SIGTERM, end)
        print("ready", flush=True)
        receive(listener, spec["flows"], spec["merge_ns"], flows)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except Ended:
        pass
    begin_ns = min((flow.begin_ns for flow in flows.values()), default=0)
    print(json.dumps({"begin_ns": begin_ns, "flows": {flow.number: flow.reads for flow in flows.values()}}), flush=True)


if __name__ == "__main__":
    main()
