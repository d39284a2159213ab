"""Count in the kernel what arrives at a device in each millisecond, from even and from odd IPv4 addresses.

The addresses tell two classes apart; times are of the monotonic clock, as in the events of the bandwidth programs.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf
from tools.bandwidth.namespaces import Pair

SLOTS = 65_536
NS_PER_MS = 1_000_000
_KTIME, _LOOKUP = 5, 1
_LENGTH = 0  # offset in struct __sk_buff
_LAST_OF_SOURCE = 14 + 12 + 3  # Ethernet, then IPv4
_INSTRUCTION = struct.Struct("<BBhi")
Bins = dict[int, int]


def _program(map_fd: int) -> bytes:
    """Return the instructions: slot = ms of the clock, and a bit for an odd sender; slot += length of the packet."""
    lines = (
        (0xBF, 0x16, 0, 0),  # r6 = context
        (0x61, 0x67, _LENGTH, 0),  # r7 = length
        (0x30, 0, 0, _LAST_OF_SOURCE),  # r0 = that byte of the packet
        (0xBF, 0x08, 0, 0),
        (0x57, 8, 0, 1),
        (0x67, 8, 0, SLOTS.bit_length() - 1),  # r8 = 0, or SLOTS for an odd sender
        (0x85, 0, 0, _KTIME),
        (0x37, 0, 0, NS_PER_MS),  # r0 /= ns in a ms
        (0x57, 0, 0, SLOTS - 1),
        (0x4F, 0x80, 0, 0),  # r0 |= r8
        (0x63, 0x0A, -4, 0),  # the key, on the stack
        (0x18, 0x11, 0, map_fd),  # r1 = map, two instructions
        (0, 0, 0, 0),
        (0xBF, 0xA2, 0, 0),  # r2 = the key's place
        (0x07, 2, 0, -4),
        (0x85, 0, 0, _LOOKUP),
        (0x15, 0, 1, 0),  # no such slot
        (0xDB, 0x70, 0, 0),  # atomically *r0 += r7
        (0xB7, 0, 0, -1),  # go on with the next filter
        (0x95, 0, 0, 0),
    )
    return b"".join(_INSTRUCTION.pack(*line) for line in lines)


def unrolled(slots: dict[int, int], start_ms: int) -> tuple[Bins, Bins]:
    """Return bytes by ms of the monotonic clock, of even and of odd senders, from slots that were empty at first."""
    parities: tuple[Bins, Bins] = ({}, {})
    for slot, size in slots.items():
        millisecond = start_ms + ((slot % SLOTS - start_ms) % SLOTS)
        parities[slot // SLOTS][millisecond] = size
    return parities


class Arrivals:
    """Counts what arrives at the pair's ``right``; for 65 s at most, after which slots would be used again."""

    def __init__(self, pair: Pair, bpffs: Path) -> None:
        """Say where the program is pinned for tc: a mounted BPF file system."""
        self.pair, self.pin = pair, bpffs / "arrivals"

    def __enter__(self) -> Arrivals:
        """Attach."""
        self.map = bpf.create_map("arrivals", bpf.ARRAY, 4, 8, 2 * SLOTS, 0)
        program = bpf.load_program("arrivals", _program(self.map.fd), "GPL")
        bpf.pin(program, str(self.pin))
        os.close(program)
        self.start_ms = time.monotonic_ns() // NS_PER_MS
        lines = (
            "qdisc add dev right clsact",
            f"filter add dev right ingress protocol all bpf da object-pinned {self.pin}",
        )
        for line in lines:
            self.pair.run_there(["tc", *line.split()])
        return self

    def __exit__(self, *_: object) -> None:
        """Take the program off."""
        self.pair.run_there(["tc", "qdisc", "delete", "dev", "right", "clsact"], check=False)
        self.pin.unlink(missing_ok=True)
        os.close(self.map.fd)

    def read(self) -> tuple[Bins, Bins]:
        """Return bytes that arrived from even and odd senders by ms of the monotonic clock, where there were any."""
        found = bpf.items(self.map)
        slots = {struct.unpack("<I", key)[0]: struct.unpack("<Q", value)[0] for key, value in found.items()}
        return unrolled({slot: size for slot, size in slots.items() if size}, self.start_ms)
