# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bpf(2) system call from the standard library: programs, maps, pins, test runs. No other program is started.

Numbers and structures are those of linux/bpf.h, which is kept compatible for ever.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

MAP_CREATE, MAP_LOOKUP, MAP_UPDATE, MAP_DELETE, MAP_NEXT_KEY, PROG_LOAD, PIN, GET = range(8)
PROG_TEST_RUN, PROG_NEXT_ID, MAP_NEXT_ID, PROG_BY_ID, MAP_BY_ID, INFO_BY_FD = range(10, 16)
BTF_LOAD = 18
MAP_LOOKUP_BATCH, _LOOKUP_AND_DELETE, MAP_UPDATE_BATCH = 24, 25, 26
ENABLE_STATISTICS = 32
SCHED_CLS = 3
HASH, ARRAY, PERCPU_ARRAY, LPM_TRIE, SOCKET_STORAGE = 1, 2, 6, 11, 24
NAME_LENGTH = 15
_SYSTEM_CALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "loongarch64": 280}
_ATTRIBUTES_SIZE = 152
_LOG_SIZE = 1 << 20
_MACHINE = platform.machine()
_LIBC = ctypes.CDLL(None, use_errno=True)
# The kernel's ENOTSUPP, which has no name in user space: this type of map has no batch operations there.
_NOT_SUPPORTED = 524
_NO_BATCHES = (errno.EINVAL, _NOT_SUPPORTED, errno.EOPNOTSUPP)
# A second in all for the kernel to find memory for elements.
_REFILL_S, _REFILLS = 0.01, 100
_HINTS = {
    errno.EPERM: "run as root; in a container, CAP_BPF and CAP_NET_ADMIN are needed",
    errno.ENOSYS: "the kernel has no bpf(2); CONFIG_BPF_SYSCALL is needed",
    errno.ENOMEM: "raise the limit of locked memory (ulimit -l)",
}


class BpfError(Exception):
    """The kernel refused a call, or an object file is unusable; the text says what, why, and what to do."""

    def __init__(self, text: str, number: int = 0) -> None:
        """Keep the kernel's error number beside the text; 0 when it wasn't the kernel."""
        super().__init__(text)
        self.number = number


@dataclass(frozen=True)
class Map:
    """An open map: file descriptor, type, sizes in bytes, capacity."""

    name: str
    fd: int
    type: int
    key_size: int
    value_size: int
    max_entries: int


@dataclass(frozen=True)
class ProgramInfo:
    """What the kernel tells of a loaded program: its id, tag (hex), and what it has run with statistics switched on."""

    id: int
    tag: str
    name: str
    run_time_ns: int
    run_count: int


@dataclass(frozen=True)
class ProgramRun:
    """What a test run gave: return value, mean duration in ns, the packet and context afterwards."""

    value: int
    duration_ns: int
    data: bytes
    context: bytes


def _error(what: str, number: int) -> BpfError:
    return BpfError(f"{what}: {os.strerror(number)}; {_HINTS.get(number, 'see the kernel log')}", number)


def _call(what: str, command: int, attributes: ctypes.Array[ctypes.c_char]) -> int:
    """Make the call; raises BpfError that begins with ``what``."""
    number = _SYSTEM_CALL.get(_MACHINE)
    if number is None:
        known = ", ".join(_SYSTEM_CALL)
        raise BpfError(f"bpf(2): its number is not known for {_MACHINE}; run on one of {known}")
    for _attempt in range(5):
        done = int(_LIBC.syscall(number, command, ctypes.byref(attributes), len(attributes)))
        if done >= 0:
            return done
        # The verifier gives up with EAGAIN when a signal is waiting.
        if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
            break
    raise _error(what, ctypes.get_errno())


def _attributes(layout: str, *values: int | bytes) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(
        struct.pack("<" + layout, *values).ljust(_ATTRIBUTES_SIZE, b"\0"), _ATTRIBUTES_SIZE
    )


def _buffer(data: bytes) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(data, max(len(data), 1))


def _address(buffer: ctypes.Array[ctypes.c_char]) -> int:
    return ctypes.addressof(buffer)


def create_map(
    name: str, kind: int, key_size: int, value_size: int, max_entries: int, flags: int, lock_offset: int | None = None
) -> Map:
    """Make a map; with ``lock_offset`` its values hold a spin lock there. Raises BpfError."""
    btf_fd = key_type = value_type = 0
    if kind == SOCKET_STORAGE:
        btf_fd, key_type, value_type = load_btf(integers_btf(key_size, value_size)), 1, 2
    elif lock_offset is not None:
        btf_fd, key_type, value_type = load_btf(lock_btf(value_size, lock_offset)), 1, 3
    try:
        attributes = _attributes(
            "7I16s4I", kind, key_size, value_size, max_entries, flags, 0, 0, name.encode()[:NAME_LENGTH],
            0, btf_fd, key_type, value_type,
        )  # fmt: skip
        return Map(name, _call(f"map {name}", MAP_CREATE, attributes), kind, key_size, value_size, max_entries)
    finally:
        if btf_fd:
            os.close(btf_fd)


def integers_btf(key_size: int, value_size: int) -> bytes:
    """Return type information of two integers of some sizes in bytes: a key (1) and a value (2)."""
    sizes = {b"key": key_size, b"value": value_size}
    strings = b"\0" + b"".join(name + b"\0" for name in sizes)
    types = b"".join(struct.pack("<4I", strings.index(name), 1 << 24, size, 8 * size) for name, size in sizes.items())
    return _btf(types, strings)


def lock_btf(value_size: int, lock_offset: int) -> bytes:
    """Return type information of an integer (1), a spin lock (2) and a value with that lock in it (3).

    The kernel finds a lock by its type only (Documentation/bpf/btf.rst); the rest of the value needs no description.
    """
    strings = b"\0int\0bpf_spin_lock\0val\0value\0lock\0"

    def place(name: bytes) -> int:
        return strings.index(b"\0" + name + b"\0") + 1

    types = struct.pack("<4I", place(b"int"), 1 << 24, 4, 32)
    types += struct.pack("<6I", place(b"bpf_spin_lock"), 4 << 24 | 1, 4, place(b"val"), 1, 0)
    types += struct.pack("<6I", place(b"value"), 4 << 24 | 1, value_size, place(b"lock"), 2, lock_offset * 8)
    return _btf(types, strings)


def _btf(types: bytes, strings: bytes) -> bytes:
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(strings))
    return header + types + strings


def load_btf(data: bytes) -> int:
    """Load type information and return its file descriptor. Raises BpfError."""
    buffer = _buffer(data)
    return _call("type information", BTF_LOAD, _attributes("QQIII", _address(buffer), 0, len(data), 0, 0))


def load_program(name: str, instructions: bytes, license_text: str, kind: int = SCHED_CLS) -> int:
    """Load a program and return its file descriptor. Raises BpfError with the end of the verifier's log."""
    code, text = _buffer(instructions), _buffer(license_text.encode() + b"\0")
    shown = name.encode()[:NAME_LENGTH]
    what = f"program {name}"

    def attempt(level: int, log: ctypes.Array[ctypes.c_char] | None) -> int:
        place, size = (_address(log), len(log)) if log is not None else (0, 0)
        count = len(instructions) // 8
        attributes = _attributes(
            "IIQQIIQII16s", kind, count, _address(code), _address(text), level, size, place, 0, 0, shown
        )
        return _call(what, PROG_LOAD, attributes)

    try:
        return attempt(0, None)
    except BpfError as exc:
        if exc.number == errno.EPERM:
            raise
        first = exc
    log = ctypes.create_string_buffer(_LOG_SIZE)
    try:
        return attempt(1, log)
    except BpfError:
        lines = [line for line in log.value.decode("utf-8", "replace").splitlines() if line.strip()]
        said = " | ".join([line for line in lines if not line.startswith("processed ")][-3:]) or "it gave no reason"
        raise BpfError(
            f"{what}: the verifier refused it: {said}; use a kernel that has what it asks for", first.number
        ) from first


def lookup(found: Map, key: bytes, cpus: int = 1) -> bytes | None:
    """Return the value of a key or None. A per-CPU map gives ``cpus`` values, each padded to 8 bytes."""
    each = (found.value_size + 7) // 8 * 8 if found.type == PERCPU_ARRAY else found.value_size
    value, place = ctypes.create_string_buffer(each * cpus), _buffer(key)
    try:
        _call(f"map {found.name}", MAP_LOOKUP, _attributes("IIQQQ", found.fd, 0, _address(place), _address(value), 0))
    except BpfError as exc:
        if exc.number == errno.ENOENT:
            return None
        raise
    return value.raw


def update(found: Map, key: bytes, value: bytes) -> None:
    """Set the value of a key. Raises BpfError, with ENOSPC or E2BIG when the map is full."""
    place, data = _buffer(key), _buffer(value)
    _call(f"map {found.name}", MAP_UPDATE, _attributes("IIQQQ", found.fd, 0, _address(place), _address(data), 0))


def update_many(found: Map, items: dict[bytes, bytes]) -> None:
    """Set the values of many keys in as few calls as the kernel allows (batches: Linux 5.6). Raises BpfError."""
    left, waited = list(items.items()), 0
    while left:
        number, done = _update_batch(found, left)
        if number in _NO_BATCHES and not done:
            for key, value in left:
                update(found, key, value)
            return
        left = left[done:]
        # A hash table that isn't allocated beforehand has a small stock of elements, which the kernel fills up again a
        # moment later: by the next tick where a processor cannot interrupt itself.
        if number == errno.ENOMEM and waited < _REFILLS:
            waited += 1
            time.sleep(_REFILL_S)
        elif number:
            raise _error(f"map {found.name}", number)


def _update_batch(found: Map, items: Sequence[tuple[bytes, bytes]]) -> tuple[int, int]:
    """Make one call; returns the kernel's error number, 0 for none, and how many elements were set."""
    keys, values = _buffer(b"".join(key for key, _value in items)), _buffer(b"".join(value for _key, value in items))
    attributes = _attributes("QQQQIIQQ", 0, 0, _address(keys), _address(values), len(items), found.fd, 0, 0)
    try:
        _call(f"map {found.name}", MAP_UPDATE_BATCH, attributes)
    except BpfError as exc:
        (done,) = struct.unpack_from("<I", attributes.raw, 32)
        # Where there are no batches the kernel has not touched the number.
        return exc.number, 0 if exc.number in _NO_BATCHES else done
    return 0, len(items)


def _read_batch(found: Map) -> tuple[int, bytes, bytes] | None:
    """Return number, keys and values of all elements by one call; None where the kernel has none (before Linux 5.6)."""
    size, count = found.value_size, found.max_entries
    # Hash tables give back the number of a bucket there, other types a key.
    following = ctypes.create_string_buffer(max(found.key_size, 4))
    numbers, values = ctypes.create_string_buffer(found.key_size * count), ctypes.create_string_buffer(size * count)
    places = (0, _address(following), _address(numbers), _address(values))
    attributes = _attributes("QQQQIIQQ", *places, count, found.fd, 0, 0)
    try:
        _call(f"map {found.name}", MAP_LOOKUP_BATCH, attributes)
    except BpfError as exc:
        if exc.number in _NO_BATCHES:
            return None
        # ENOENT says that this was the end; everything has been copied.
        if exc.number != errno.ENOENT:
            raise
    (filled,) = struct.unpack_from("<I", attributes.raw, 32)
    return filled, numbers.raw, values.raw


def array_values(found: Map) -> bytes:
    """Return the values of an array one behind the other, in the order of their numbers. Raises BpfError."""
    read = _read_batch(found)
    if read is not None:
        # Arrays are read in order, so the keys tell nothing new.
        return read[2]
    empty = bytes(found.value_size)
    return b"".join(lookup(found, struct.pack("<I", number)) or empty for number in range(found.max_entries))


def items(found: Map) -> dict[bytes, bytes]:
    """Return all keys of a map that isn't per CPU with their values. Raises BpfError."""
    read = _read_batch(found)
    if read is not None:
        filled, keys_raw, values_raw = read
        step, size = found.key_size, found.value_size
        return {keys_raw[n * step : n * step + step]: values_raw[n * size : n * size + size] for n in range(filled)}
    pairs = ((key, lookup(found, key)) for key in keys(found))
    return {key: value for key, value in pairs if value is not None}


def delete(found: Map, key: bytes) -> None:
    """Remove a key; one that isn't there is no error. Raises BpfError."""
    place = _buffer(key)
    try:
        _call(f"map {found.name}", MAP_DELETE, _attributes("IIQ", found.fd, 0, _address(place)))
    except BpfError as exc:
        if exc.number != errno.ENOENT:
            raise


def keys(found: Map) -> list[bytes]:
    """Return all keys of a map, in the kernel's order. Raises BpfError."""
    result: list[bytes] = []
    following, place = ctypes.create_string_buffer(found.key_size), 0
    while len(result) <= found.max_entries:
        attributes = _attributes("IIQQ", found.fd, 0, place, _address(following))
        try:
            _call(f"map {found.name}", MAP_NEXT_KEY, attributes)
        except BpfError as exc:
            if exc.number == errno.ENOENT:
                return result
            raise
        result.append(following.raw)
        current = _buffer(following.raw)
        place = _address(current)
    raise BpfError(f"map {found.name}: changes while it is read; try again")


def pin(fd: int, path: str) -> None:
    """Give an object a name in a BPF file system. Raises BpfError."""
    place = _buffer(path.encode() + b"\0")
    _call(f"{path}: cannot be pinned", PIN, _attributes("QII", _address(place), fd, 0))


def get(path: str) -> int:
    """Return a file descriptor of a pinned object. Raises BpfError with ENOENT when there is none."""
    place = _buffer(path.encode() + b"\0")
    return _call(f"{path}: cannot be opened", GET, _attributes("QII", _address(place), 0, 0))


def _info(fd: int, size: int) -> bytes:
    info = ctypes.create_string_buffer(size)
    _call("object information", INFO_BY_FD, _attributes("IIQ", fd, size, _address(info)))
    return info.raw


def map_of(fd: int) -> Map:
    """Return the map behind a file descriptor. Raises BpfError."""
    kind, _id, key_size, value_size, entries, _flags, name = struct.unpack_from("<6I16s", _info(fd, 80))
    return Map(name.split(b"\0")[0].decode("ascii", "replace"), fd, kind, key_size, value_size, entries)


def program_info(fd: int) -> ProgramInfo:
    """Return what the kernel tells of a program. Raises BpfError."""
    # struct bpf_prog_info: type, id, tag[8], 2 lengths, 2 addresses, load_time, uid, map count, map ids, name[16], ...
    raw = _info(fd, 232)
    number, tag = struct.unpack_from("<I8s", raw, 4)
    name = raw[64:80].split(b"\0")[0].decode("ascii", "replace")
    run_time_ns, run_count = struct.unpack_from("<QQ", raw, 192)
    return ProgramInfo(number, tag.hex(), name, run_time_ns, run_count)


def run_program(fd: int, data: bytes, context: bytes, repeat: int = 1) -> ProgramRun:
    """Run a program on a packet and a ``struct __sk_buff`` as the kernel's own tests do. Raises BpfError."""
    packet, before = _buffer(data), _buffer(context)
    after, sent = ctypes.create_string_buffer(len(context)), ctypes.create_string_buffer(len(data) + 256)
    attributes = _attributes(
        "4I2Q4I2Q3I", fd, 0, len(data), len(sent), _address(packet), _address(sent), repeat, 0,
        len(context), len(context), _address(before), _address(after), 0, 0, 0,
    )  # fmt: skip
    _call("test run", PROG_TEST_RUN, attributes)
    value, _in, out = struct.unpack_from("<III", attributes.raw, 4)
    (duration_ns,) = struct.unpack_from("<I", attributes.raw, 36)
    return ProgramRun(value, duration_ns, sent.raw[:out], after.raw)


def enable_statistics() -> int:
    """Let the kernel count run time of all programs until the returned file descriptor is closed. Raises BpfError."""
    return _call("run-time statistics", ENABLE_STATISTICS, _attributes("I", 0))
