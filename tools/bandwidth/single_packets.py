"""Run the bandwidth programs on single packets, at times that the test sets, and read what the maps hold then."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import instance, readings
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf, bpf_layout, bpf_object

BUILT = Path(__file__).resolve().parents[2] / "files" / "bpf" / "built"
VARIANTS = ("atomic", "spin")
GO_ON, DROP = 0xFFFFFFFF, 2
# Nobody uses more at a time.
MOST_CPUS = 4
LOOPBACK = 1
CONTEXT_SIZE = 192
# Offsets in struct __sk_buff (linux/bpf.h) of the fields that a test run takes and gives back.
CONTEXT = {
    "mark": ("I", 8),
    "priority": ("I", 32),
    "ingress_ifindex": ("I", 36),
    "ifindex": ("I", 40),
    "tstamp": ("Q", 152),
    "wire_len": ("I", 160),
    "gso_segs": ("I", 164),
    "gso_size": ("I", 176),
}
MS = 1_000_000
SECOND = 1_000_000_000
START = 1000 * SECOND


class PacketError(Exception):
    """A packet or a map cannot be what it should be; the text says which."""


def ethernet(kind: int, payload: bytes, tags: tuple[int, ...] = ()) -> bytes:
    """Return a frame; each tag is the ethertype of a VLAN tag, outermost first."""
    types = [*tags, kind]
    middle = b"".join(struct.pack("!HH", 7, following) for following in types[1:])
    return b"\x02" * 6 + b"\x04" * 6 + struct.pack("!H", types[0]) + middle + payload


def checksum(header: bytes) -> int:
    """Return the checksum of an IPv4 header (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(
    payload_size: int = 1448, source: str = "10.0.0.1", to: str = "10.0.0.2", tos: int = 0, protocol: int = 6
) -> bytes:
    """Return an IPv4 packet with a transport header: TCP with time stamps (32 bytes), else UDP (8 bytes)."""
    transport = tcp_header() if protocol == 6 else b"\0" * 8
    length = 20 + len(transport) + payload_size
    addresses = bytes(map(int, source.split("."))) + bytes(map(int, to.split(".")))
    header = struct.pack("!BBHHHBBH", 0x45, tos, length, 0, 0, 64, protocol, 0) + addresses
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    return header + transport + b"\0" * payload_size


def tcp_header() -> bytes:
    """Return a header of TCP with time stamps, 32 bytes."""
    return struct.pack("!HHIIBBHHH", 5000, 5001, 0, 0, 8 << 4, 0x10, 100, 0, 0) + b"\0" * 12


def ipv6(payload_size: int, source: bytes, to: bytes) -> bytes:
    """Return an IPv6 packet with TCP."""
    transport = tcp_header()
    header = struct.pack("!IHBB", 6 << 28, len(transport) + payload_size, 6, 64)
    return header + source + to + transport + b"\0" * payload_size


@dataclass(frozen=True)
class Sent:
    """What became of a packet."""

    value: int
    data: bytes
    tstamp: int
    priority: int
    mark: int
    duration_ns: int

    @property
    def dropped(self) -> bool:
        """Tell whether it was dropped. Raises PacketError for a verdict that no program gives."""
        if self.value not in (GO_ON, DROP):
            raise PacketError(f"a program returned {self.value}, which is neither to go on nor to drop")
        return self.value == DROP


@dataclass
class Bench:
    """A loaded object with one device (loopback), whose packets are of class ``CLASS`` when they come in from FROM."""

    loaded: bpf_object.Loaded
    now: int = START
    hook: str = "shape"
    meta: dict[str, Any] = field(default_factory=dict)

    CLASS = 100
    FROM = 77

    @property
    def layout(self) -> bpf_layout.Layout:
        """Return the structures of the maps."""
        return self.loaded.layout

    def constant(self, name: str) -> int:
        """Return a constant that the programs share with user space."""
        return self.layout.constant(name)

    def put(self, name: str, key: int | bytes, structure: str, values: Mapping[str, Any]) -> None:
        """Write an entry of a map."""
        raw = key if isinstance(key, bytes) else struct.pack("<I", key)
        bpf.update(self.loaded.maps[name], raw, self.layout[structure].pack(values))

    def read(self, name: str, key: int | bytes, structure: str) -> dict[str, Any]:
        """Return an entry of a map. Raises PacketError when there is none."""
        raw = key if isinstance(key, bytes) else struct.pack("<I", key)
        found = bpf.lookup(self.loaded.maps[name], raw)
        if found is None:
            raise PacketError(f"map {name} has no entry {raw!r}")
        return self.layout[structure].unpack(found)

    def set_meta(self, **values: Any) -> None:
        """Change what concerns all programs."""
        self.meta.update(values)
        self.put("meta", 0, "meta", {"layout": bpf_layout.VERSION, **self.meta})

    def set_order(self, *sources: str) -> None:
        """Say what is asked for the class, in which order."""
        numbers = [self.constant(f"SOURCE_{name.upper()}") for name in sources]
        self.set_meta(order=[*numbers, *[0] * (self.constant("SOURCES") - len(numbers))])

    def set_device(self, plane: str = "edt", direction: str = "egress", hook: int = 0, **values: Any) -> None:
        """Shape loopback."""
        numbers = {"plane": self.constant(f"PLANE_{plane.upper()}"),
                   "direction": self.constant(f"DIRECTION_{direction.upper()}")}  # fmt: skip
        self.put("devices", LOOPBACK << 1 | hook, "device", {**numbers, **values})

    def set_pool(
        self, number: int = 0, accounting: str = "wire", generations: tuple[int, ...] = (0, 1), **values: Any
    ) -> None:
        """Write a pool's configuration."""
        usual = {"window_ns": 10 * MS, "hold": 3, "accounting": self.constant(f"ACCOUNT_{accounting.upper()}"),
                 "weights": [10, 20, 70], "high": 10**12}  # fmt: skip
        for generation in generations:
            key = generation * self.constant("POOLS") + number
            self.put("pool_configs", key, "pool_config", {**usual, **values})

    def set_waterline(self, waterline: int, low: int, high: int, flags: int = 0, **values: Any) -> None:
        """Write a pool with a waterline, in bytes a second, and windows of 10 ms."""
        budget = waterline * 10 * MS // SECOND
        step = max((budget // 16).bit_length() - 1, 0)
        flags |= self.constant("POOL_WATERLINE")
        usual = {"clear": waterline * 95 // 100, "budget": budget, "step_shift": step}
        self.set_pool(flags=flags, waterline=waterline, low=low, high=high, **{**usual, **values})

    def set_class(
        self, number: int = CLASS, role: str = "online", generations: tuple[int, ...] = (0, 1), **values: Any
    ) -> None:
        """Write a class's configuration."""
        usual = {"horizon_ns": 50 * MS, "role": self.constant(f"ROLE_{role.upper()}")}
        for generation in generations:
            key = generation * self.constant("CLASSES") + number
            self.put("class_configs", key, "class_config", {**usual, **values})

    def set_member(self, source: str, key: bytes, egress: int = 0, ingress: int = 0) -> None:
        """Say what class a key of a source means."""
        self.put(f"by_{source}", key, "member", {"egress": egress, "ingress": ingress})

    def send(self, frame: bytes | None = None, at: int | None = None, **context: int) -> Sent:
        """Run the program on one packet of the class; ``ingress_ifindex=0`` makes it nobody's."""
        data = ethernet(0x0800, ipv4()) if frame is None else frame
        self.set_meta(test_clock=self.now if at is None else at)
        values = {"ingress_ifindex": self.FROM, "ifindex": LOOPBACK, "wire_len": len(data), **context}
        return self.run(data, values)

    def run(self, data: bytes, values: Mapping[str, int], repeat: int = 1) -> Sent:
        """Run the program on a packet with a context."""
        raw = bytearray(CONTEXT_SIZE)
        for name, value in values.items():
            code, offset = CONTEXT[name]
            struct.pack_into(f"<{code}", raw, offset, value)
        done = bpf.run_program(self.loaded.programs[self.hook], data, bytes(raw), repeat)
        after = {
            name: struct.unpack_from(f"<{code}", done.context, place)[0] for name, (code, place) in CONTEXT.items()
        }
        return Sent(done.value, done.data, after["tstamp"], after["priority"], after["mark"], done.duration_ns)

    def stats(self, number: int = CLASS) -> dict[str, int]:
        """Return the sums over all CPUs (the largest of the maximum)."""
        opened = instance.Instance(instance.Place(), self.loaded.maps, self.layout)
        return readings.class_figures(opened, number, instance.possible_cpus())

    def pool_state(self, number: int = 0) -> dict[str, Any]:
        """Return what a pool has come to."""
        return self.read("pool_states", number, "pool_state")

    def class_state(self, number: int = CLASS) -> dict[str, Any]:
        """Return what a class has come to."""
        return self.read("class_states", number, "class_state")

    def events(self, pool: int = 0) -> list[dict[str, Any]]:
        """Return the changes of a pool, oldest first."""
        count = self.pool_state(pool)["transitions"]
        each = self.constant("EVENTS_EACH")
        return [self.read("events", pool * each + number % each, "event") for number in range(count)]


def load(variant: str) -> bpf_object.Loaded:
    """Load a variant with maps of its own."""
    return bpf_object.load((BUILT / f"{variant}.o").read_bytes(), variant)


def empty(loaded: bpf_object.Loaded) -> None:
    """Take everything out of the maps again: verifying the programs anew for each test would take half a second."""
    for found in loaded.maps.values():
        numbers = [struct.pack("<I", number) for number in range(found.max_entries)]
        if found.type == bpf.ARRAY:
            bpf.update_many(found, dict.fromkeys(numbers, b"\0" * found.value_size))
        elif found.type == bpf.PERCPU_ARRAY:
            # No test uses others; in a guest without a JIT compiler each call takes its time.
            for number in [*range(16), *range(Bench.CLASS, Bench.CLASS + 16)]:
                bpf.update(found, struct.pack("<I", number), b"\0" * found.value_size * instance.possible_cpus())
        elif found.type != bpf.SOCKET_STORAGE:
            for key in bpf.keys(found):
                bpf.delete(found, key)


def prepare(loaded: bpf_object.Loaded) -> Bench:
    """Return a bench on empty maps; the class is found by the device that its packets come from."""
    empty(loaded)
    bench = Bench(loaded)
    bench.set_order("device")
    bench.set_device()
    bench.set_pool()
    bench.set_class()
    bench.set_member("device", struct.pack("<I", Bench.FROM), egress=Bench.CLASS, ingress=Bench.CLASS)
    return bench


def cpus_at_hand() -> list[int]:
    """Return the CPUs that this process may use, a few at most."""
    return sorted(os.sched_getaffinity(0))[:MOST_CPUS]


def on_each_cpu(work: Callable[[], None]) -> int:
    """Run something on every CPU at hand at the same time; returns how many those were. Raises what the work raises."""
    cpus = cpus_at_hand()
    start, failures = threading.Barrier(len(cpus)), list[BaseException]()

    def pinned(cpu: int) -> None:
        try:
            os.sched_setaffinity(0, {cpu})
            start.wait(timeout=30)
            work()
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=pinned, args=(cpu,)) for cpu in cpus]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return len(cpus)
