"""What a machine of the resctrl stand-in can do, and its texts: the kernel's number formats (fs/resctrl)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

MASK, BANDWIDTH = "mask", "bandwidth"
UNLIMITED_MBPS = 2**32 - 1
PROC_PID = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+)\Z")


@dataclass(frozen=True)
class Resource:
    """One line of schemata: a cache in bits of a mask, or memory bandwidth in steps."""

    name: str
    kind: str
    ids: tuple[int, ...]
    num_closids: int
    ways: int = 0
    min_cbm_bits: int = 1
    shareable_bits: int = 0
    sparse_masks: bool = False
    cache_bytes: int = 0
    min_bandwidth: int = 10
    bandwidth_gran: int = 10
    max_bandwidth: int = 100
    delay_linear: int = 1

    @property
    def full(self) -> int:
        """Return the value of a group that nobody has restricted."""
        return (1 << self.ways) - 1 if self.kind == MASK else self.max_bandwidth


@dataclass(frozen=True)
class Tasks:
    """The tasks that the stand-in sees: all thread numbers, and what tells a task from a later one of its number."""

    list: Callable[[], Iterable[int]]
    identity: Callable[[int], object | None]


@dataclass(frozen=True)
class Machine:
    """A machine. The defaults are a small Intel server with one L3 cache of 11 ways."""

    tasks: Tasks
    cpus: frozenset[int] = frozenset({0, 1})
    cache_ids: tuple[int, ...] = (0,)
    ways: int = 11
    min_cbm_bits: int = 1
    shareable_bits: int = 0
    sparse_masks: bool = False
    num_closids: int = 16
    mb_closids: int = 16
    num_rmids: int = 64
    l2_ways: int = 0
    bandwidth: bool = True
    absolute_bandwidth: bool = False
    monitoring: bool = True
    cdp: bool = False
    mba_mbps: bool = False
    counters: Callable[[str, str], str] = lambda _group, _event: "0"

    def resources(self) -> tuple[Resource, ...]:
        """Return the lines of schemata in the kernel's order."""
        # Code and data take a number each, so that half as many groups are left.
        closids = self.num_closids // 2 if self.cdp else self.num_closids
        names = ("L3CODE", "L3DATA") if self.cdp else ("L3",)
        found = [self._cache(name, self.ways, closids) for name in names if self.ways]
        if self.l2_ways:
            found.append(self._cache("L2", self.l2_ways, self.num_closids))
        if self.bandwidth:
            found.append(self._memory())
        return tuple(found)

    def _cache(self, name: str, ways: int, closids: int) -> Resource:
        return Resource(
            name=name,
            kind=MASK,
            ids=self.cache_ids,
            num_closids=closids,
            ways=ways,
            min_cbm_bits=self.min_cbm_bits,
            shareable_bits=self.shareable_bits,
            sparse_masks=self.sparse_masks,
            cache_bytes=ways * 2**20,
        )

    def _memory(self) -> Resource:
        amd = self.absolute_bandwidth
        return Resource(
            name="MB",
            kind=BANDWIDTH,
            ids=self.cache_ids,
            num_closids=self.mb_closids,
            min_bandwidth=1 if amd else 10,
            bandwidth_gran=1 if amd else 10,
            max_bandwidth=2048 if amd else 100,
            delay_linear=0 if amd else 1,
        )


def format_mask(cpus: frozenset[int], count: int) -> str:
    """Return CPUs as the kernel prints a mask: hexadecimal words of 32 CPUs, the highest first."""
    value = sum(1 << cpu for cpu in cpus)
    words = []
    while count > 0:
        digits = (min(count, 32) + 3) // 4
        words.append(f"{value & 0xFFFFFFFF:0{digits}x}")
        value >>= 32
        count -= 32
    return ",".join(reversed(words))


def format_list(cpus: frozenset[int]) -> str:
    """Return CPUs as the kernel prints a list."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][1] == cpu - 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def parse_mask(text: str) -> frozenset[int]:
    """Return the CPUs of a mask. Raises ValueError."""
    words = text.strip().split(",")
    if any(len(word) > 8 or not word for word in words):
        raise ValueError(text)
    value = int("".join(word.zfill(8) for word in words), 16)
    return frozenset(bit for bit in range(value.bit_length()) if value >> bit & 1)


def parse_list(text: str) -> frozenset[int]:
    """Return the CPUs of a list. Raises ValueError."""
    found: set[int] = set()
    for part in text.strip().split(",") if text.strip() else []:
        low, dash, high = part.partition("-")
        first, last = int(low), int(high if dash else low)
        if first < 0 or last < first:
            raise ValueError(text)
        found.update(range(first, last + 1))
    return frozenset(found)


def bit_usage(resource: Resource, shared: Mapping[int, int], exclusive: Mapping[int, int]) -> str:
    """Return info/L3/bit_usage: one letter for each way, as rdt_bit_usage_show prints them."""
    shown = []
    for cache in resource.ids:
        letters = ""
        for bit in range(resource.ways - 1, -1, -1):
            hardware, software = resource.shareable_bits >> bit & 1, shared[cache] >> bit & 1
            if hardware:
                letters += "X" if software else "H"
            else:
                letters += "S" if software else "E" if exclusive[cache] >> bit & 1 else "0"
        shown.append(f"{cache}={letters}")
    return ";".join(shown)


def integer(text: str, base: int = 0) -> int:
    """Return a number as kstrtoint takes it. Raises ValueError."""
    stripped = text.removesuffix("\n")
    if base == 0 and not PROC_PID.match(stripped):
        raise ValueError(text)
    if base == 16 and not re.match(r"(?:0[xX])?[0-9a-fA-F]+\Z", stripped):
        raise ValueError(text)
    if base == 10 and not re.match(r"\+?[0-9]+\Z", stripped):
        raise ValueError(text)
    if base == 0 and re.match(r"[+-]?0[0-7]+\Z", stripped):
        return int(stripped, 8)
    return int(stripped, base)
