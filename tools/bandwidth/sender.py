"""Send by TCP as one JSON object on the command line says; started as a program of its own, so it imports little.

`to`, `port`, `seconds`, and optionally `source`, `flows`, `pacing_bytes_s` (of each flow, by TCP's own pacing),
`rate_bytes_s` (of all flows, by sending a piece now and then), `tos`, `priority`, `segment_bytes`, `wait_s` (before
connecting), `groups` (cgroup.procs of each flow), `bursts` (pairs of s to wait and s to send, instead of `seconds`).
Each flow starts with its number in four bytes.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import sys
import time
from typing import Any

BLOCK = memoryview(b"x" * 131072)
# The most that TCP hands over in one piece of segments of 1448 bytes.
PIECE_BYTES = 45 * 1448
CONGESTION_CONTROL = b"cubic"


def connect(spec: dict[str, Any], number: int) -> socket.socket:
    """Return a connected socket with the wanted options, made inside the flow's control group."""
    groups = spec.get("groups")
    if groups:
        with open(groups[number], "w", encoding="ascii") as handle:
            handle.write(str(os.getpid()))
    flow = socket.socket(socket.AF_INET6 if ":" in spec["to"] else socket.AF_INET)
    for level, option, key in (
        (socket.IPPROTO_IP, socket.IP_TOS, "tos"),
        (socket.SOL_SOCKET, socket.SO_PRIORITY, "priority"),
        (socket.IPPROTO_TCP, socket.TCP_MAXSEG, "segment_bytes"),
        # SO_MAX_PACING_RATE has no name in the standard library.
        (socket.SOL_SOCKET, 47, "pacing_bytes_s"),
    ):
        if spec.get(key):
            flow.setsockopt(level, option, spec[key])
    flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONGESTION_CONTROL)
    # What waits in the socket at the end is of no interest any more.
    flow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if spec.get("source"):
        flow.bind((spec["source"], 0))
    flow.connect((spec["to"], spec["port"]))
    flow.sendall(struct.pack("!I", number))
    return flow


def send_until(flow: socket.socket, end_s: float) -> None:
    """Send on one flow until a time of the monotonic clock."""
    while time.monotonic() < end_s:
        flow.sendall(BLOCK)


def send_on_all(flows: list[socket.socket], end_s: float) -> None:
    """Send on all flows, on each whenever it takes something."""
    ready = select.epoll()
    by_number = {flow.fileno(): flow for flow in flows}
    for flow in flows:
        flow.setblocking(False)
        ready.register(flow, select.EPOLLOUT)
    while True:
        left = end_s - time.monotonic()
        if left <= 0:
            return
        for number, _event in ready.poll(left):
            try:
                by_number[number].send(BLOCK)
            except BlockingIOError:
                pass  # another event will say when there is room


def send_paced(flows: list[socket.socket], end_s: float, bytes_s: float) -> None:
    """Send whole pieces on the flows in turn, each at its time, all flows together at a rate."""
    piece, due_s, turn = BLOCK[:PIECE_BYTES], time.monotonic(), 0
    while due_s < end_s:
        wait_s = due_s - time.monotonic()
        if wait_s > 0:
            time.sleep(wait_s)
        flows[turn % len(flows)].sendall(piece)
        turn += 1
        due_s += PIECE_BYTES / bytes_s


def main() -> None:
    """Connect, send, close."""
    spec = json.loads(sys.argv[1])
    time.sleep(spec.get("wait_s", 0))
    flows = [connect(spec, number) for number in range(spec.get("flows", 1))]
    print("sending", flush=True)
    for wait_s, seconds in spec.get("bursts", []):
        time.sleep(wait_s)
        send_until(flows[0], time.monotonic() + seconds)
    if not spec.get("bursts"):
        end_s = time.monotonic() + spec["seconds"]
        if spec.get("rate_bytes_s"):
            send_paced(flows, end_s, spec["rate_bytes_s"])
        elif len(flows) == 1:
            send_until(flows[0], end_s)
        else:
            send_on_all(flows, end_s)
    for flow in flows:
        flow.close()


if __name__ == "__main__":
    main()
