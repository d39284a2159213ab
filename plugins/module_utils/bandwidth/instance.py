# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance of the bandwidth programs on a host: its pins in a BPF file system, its maps, its state file.

The maps are the truth about rates; the state file keeps what maps cannot: names, and what devices had before.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.tables import MEMBER_MAPS, Tables
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import BandwidthError, check_name
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf, bpf_layout, bpf_object, mounts

BPFFS = "/sys/fs/bpf"
PROGRAMS = ("shape", "police", "stamp", "divert", "learn")
_OURS = "colocation-testbed"
_SCHEMA = 1
# Files that the kernel itself puts into each BPF file system (CONFIG_BPF_PRELOAD).
_KERNELS_OWN = {"maps.debug", "progs.debug"}
_LOCK_DEADLINE_S = 30.0
_POLL_S = 0.02


@dataclass(frozen=True)
class Place:
    """Where an instance lives: name, BPF file system, state directory."""

    name: str = "main"
    bpffs: str = BPFFS
    state_dir: str = "/var/lib/colocation-testbed"

    @property
    def pins(self) -> str:
        """Return the directory of the pins."""
        return os.path.join(self.bpffs, _OURS, check_name(self.name, "instance"))

    @property
    def state_file(self) -> str:
        """Return the state file."""
        return os.path.join(self.state_dir, f"bandwidth-{check_name(self.name, 'instance')}.json")


@dataclass(frozen=True)
class State:
    """What is kept in the state file; devices, pools and classes by name."""

    variant: str = ""
    object_sha256: str = ""
    mounted: bool = False
    missing: Sequence[str] = ()
    pools: Mapping[str, Any] = field(default_factory=dict)
    classes: Mapping[str, Any] = field(default_factory=dict)
    devices: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Instance:
    """An open instance."""

    place: Place
    maps: Mapping[str, bpf.Map]
    layout: bpf_layout.Layout

    def close(self) -> None:
        """Close the maps; the pins keep them."""
        for item in self.maps.values():
            os.close(item.fd)


def read_state(place: Place) -> State | None:
    """Return the state of an instance, None when there is none. Raises BandwidthError for a damaged file."""
    try:
        if not os.path.exists(place.state_file):
            return None
        raw = files.read_json(place.state_file)
        if raw.pop("schema") != _SCHEMA:
            raise BandwidthError(f"{place.state_file}: is of another version; remove the instance with that version")
        return State(**raw)
    except (files.FilesError, AttributeError, KeyError, TypeError) as exc:
        raise BandwidthError(f"{place.state_file}: cannot be used: {exc}; undo by the journal, or remove it") from exc


def write_state(place: Place, state: State) -> None:
    """Replace the state file as a whole. Raises BandwidthError."""
    try:
        os.makedirs(place.state_dir, exist_ok=True)
        # One line: with indentation, writing two hundred classes takes longer than all the rest.
        text = json.dumps({"schema": _SCHEMA, **vars(state)}, sort_keys=True)
        files.write_atomic(place.state_file, text + "\n", 0o600)
    except (files.FilesError, OSError) as exc:
        raise BandwidthError(f"{place.state_file}: cannot be written: {exc}; check the directory") from exc


@contextlib.contextmanager
def locked(place: Place) -> Iterator[None]:
    """Hold the lock of all bandwidth modules on this host. Raises BandwidthError when it isn't had in time."""
    path = os.path.join("/run", f"{_OURS}-bandwidth.lock")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise BandwidthError(f"{path}: cannot be opened: {exc.strerror}; run as root") from exc
    try:
        deadline = time.monotonic() + _LOCK_DEADLINE_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as exc:
                if time.monotonic() > deadline:
                    raise BandwidthError(f"{path}: is held by another run; wait for it to end, or stop it") from exc
                time.sleep(_POLL_S)
        yield
    finally:
        os.close(handle)


def is_bpffs(path: str, proc_root: str = "/proc") -> bool:
    """Tell whether a directory is the root of a mounted BPF file system. Raises BandwidthError."""
    try:
        found = mounts.at(path, proc_root)
    except mounts.MountsError as exc:
        raise BandwidthError(str(exc)) from exc
    return found is not None and found.fs_type == "bpf"


def check_bpffs(place: Place, proc_root: str = "/proc") -> None:
    """Refuse a host on which no instance can be pinned. Raises BandwidthError."""
    if not os.path.isdir(place.bpffs):
        raise BandwidthError(f"bpffs {place.bpffs}: is not a directory; make it, or give the usual {BPFFS}")
    known = files.read_text(os.path.join(proc_root, "filesystems")).split()
    if not is_bpffs(place.bpffs, proc_root) and "bpf" not in known:
        raise BandwidthError(
            f"bpffs {place.bpffs}: this kernel has no BPF file system; use one with CONFIG_BPF_SYSCALL"
        )


def open_instance(place: Place, layout: bpf_layout.Layout, names: Sequence[str]) -> Instance | None:
    """Open the pinned maps; None when there are none. Raises BpfError."""
    maps: dict[str, bpf.Map] = {}
    try:
        for name in names:
            try:
                maps[name] = bpf.map_of(bpf.get(os.path.join(place.pins, "maps", name)))
            except bpf.BpfError as exc:
                if name != bpf_object.OPTIONAL_MAP or exc.number != errno.ENOENT:
                    raise
    except bpf.BpfError as exc:
        for item in maps.values():
            os.close(item.fd)
        if exc.number == errno.ENOENT:
            return None
        raise
    version = struct.unpack_from("<I", bpf.lookup(maps["meta"], bytes(4)) or bytes(4))[0]
    if version != bpf_layout.VERSION:
        raise BandwidthError(
            f"instance {place.name}: has layout {version}, this collection {bpf_layout.VERSION}; remove it with the "
            "collection that made it, or undo by the journal"
        )
    return Instance(place, maps, layout)


def create(place: Place, variants: Sequence[tuple[str, bytes]], before: State) -> tuple[Instance, State]:
    """Load the programs and pin them and their maps; leaves nothing behind when that fails. Raises BpfError.

    What was mounted is written down first: whoever takes back a run that was killed must know it.
    """
    mounted = before.mounted or not is_bpffs(place.bpffs)
    write_state(place, replace(before, mounted=mounted))
    if not is_bpffs(place.bpffs):
        commands.run(["mount", "-t", "bpf", "bpf", place.bpffs])
    # Left by a run that was killed while it made them.
    remove_pins(place, False)
    try:
        variant, loaded = bpf_object.load_first(variants)
        meta = loaded.layout["meta"].pack({"layout": bpf_layout.VERSION})
        bpf.update(loaded.maps["meta"], bytes(4), meta)
        for kind, fds in (
            ("maps", {name: item.fd for name, item in loaded.maps.items()}),
            ("programs", loaded.programs),
        ):
            os.makedirs(os.path.join(place.pins, kind), exist_ok=True)
            for name, fd in fds.items():
                bpf.pin(fd, os.path.join(place.pins, kind, name))
    except BaseException:
        remove_pins(place, mounted)
        raise
    for fd in loaded.programs.values():
        os.close(fd)
    digest = hashlib.sha256(dict(variants)[variant]).hexdigest()
    made = replace(before, variant=variant, object_sha256=digest, mounted=mounted, missing=list(loaded.missing))
    return Instance(place, loaded.maps, loaded.layout), made


def remove_pins(place: Place, mounted: bool) -> None:
    """Remove an instance's pins and the directories that were made for them; unmount what we mounted, when empty."""
    for directory, below, names in os.walk(place.pins, topdown=False):
        for name in names:
            os.unlink(os.path.join(directory, name))
        for name in below:
            os.rmdir(os.path.join(directory, name))
    with contextlib.suppress(OSError):
        os.rmdir(place.pins)
        os.rmdir(os.path.dirname(place.pins))
    if mounted and is_bpffs(place.bpffs) and not set(os.listdir(place.bpffs)) - _KERNELS_OWN:
        commands.run(["umount", place.bpffs])


def possible_cpus(sys_root: str = "/sys") -> int:
    """Return how many values a per-CPU map has for each key. Raises FilesError."""
    text = files.read_text(os.path.join(sys_root, "devices", "system", "cpu", "possible")).strip()
    return int(re.split("[-,]", text)[-1]) + 1


def present_tables(instance: Instance) -> Tables:
    """Return what the maps hold now, as far as it is in use. Raises BpfError."""
    layout, maps = instance.layout, instance.maps
    meta = layout["meta"].unpack(bpf.lookup(maps["meta"], bytes(4)) or b"")
    generation = layout["meta"].number(bpf.lookup(maps["meta"], bytes(4)) or b"", "generation") & 1
    pools, classes = layout.constant("POOLS"), layout.constant("CLASSES")
    order, mask, carrier = meta["order"], meta["levels_mask"], meta["carrier"]
    members = {name: bpf.items(maps[name]) for name in MEMBER_MAPS}
    return Tables(
        pools=_used(maps["pool_configs"], generation * pools, pools),
        classes=_used(maps["class_configs"], generation * classes, classes),
        members=members,
        order=tuple(order) if isinstance(order, list) else (order,),
        levels_mask=mask if isinstance(mask, int) else 0,
        carrier=carrier if isinstance(carrier, int) else 0,
        sockets=bool(meta["sockets"]),
    )


def _used(found: bpf.Map, first: int, count: int) -> dict[int, bytes]:
    size = found.value_size
    values, empty = bpf.array_values(found), bytes(size)
    part = (values[place : place + size] for place in range(first * size, (first + count) * size, size))
    return {number: value for number, value in enumerate(part) if value != empty}


def write_tables(instance: Instance, before: Tables, wanted: Tables) -> None:
    """Bring the maps from one content to another; packets see the old configuration or the new one. Raises BpfError.

    Members of new classes come after the configuration, those of old ones go before it, so that no packet ever finds a
    class that has no rates. Runtime state is reset only for numbers that get a new class.
    """
    layout, maps = instance.layout, instance.maps
    for name in MEMBER_MAPS:
        for key in set(before.members[name]) - set(wanted.members[name]):
            bpf.delete(maps[name], key)
    raw = bpf.lookup(maps["meta"], bytes(4)) or b""
    generation = 1 - (layout["meta"].number(raw, "generation") & 1)
    for name, values, count in (
        ("pool_configs", wanted.pools, layout.constant("POOLS")),
        ("class_configs", wanted.classes, layout.constant("CLASSES")),
    ):
        empty = bytes(maps[name].value_size)
        numbers = range(count)
        content = {struct.pack("<I", generation * count + number): values.get(number, empty) for number in numbers}
        bpf.update_many(maps[name], content)
    cpus = possible_cpus()
    classes, pools = set(wanted.classes) - set(before.classes), set(wanted.pools) - set(before.pools)
    _reset(maps["class_states"], classes)
    _reset(maps["pool_states"], pools)
    _reset(maps["pool_shards"], pools)
    _reset(maps["class_stats"], classes | pools, cpus)
    kept: dict[str, bpf_layout.Value] = dict(layout["meta"].unpack(raw))
    changed: dict[str, bpf_layout.Value] = {
        "generation": generation,
        "order": wanted.order,
        "levels_mask": wanted.levels_mask,
        "carrier": wanted.carrier,
        "sockets": 0,
    }
    bpf.update(maps["meta"], bytes(4), layout["meta"].pack({**kept, **changed}))
    for name in MEMBER_MAPS:
        old = before.members[name]
        bpf.update_many(
            maps[name], {key: value for key, value in wanted.members[name].items() if old.get(key) != value}
        )
    if wanted.sockets:
        # Only now, or sockets would keep what members said before. Never a number that was used since the start.
        changed["sockets"] = time.monotonic_ns() // 1_000_000 % 2**32 or 1
        bpf.update(maps["meta"], bytes(4), layout["meta"].pack({**kept, **changed}))


def _reset(found: bpf.Map, numbers: set[int], cpus: int = 1) -> None:
    empty = bytes(found.value_size * cpus)
    bpf.update_many(found, {struct.pack("<I", number): empty for number in numbers})
