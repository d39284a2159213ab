# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits for each disk: from the options io_max and io_latency to lines of kernel files, and back.

v1 has four files with a number for each device (blkio-controller.rst), v2 has io.max with four fields and io.latency
(cgroup-v2.rst). Limits are of whole disks: the kernel refuses partitions.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import block, cgroup_lines
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_keys import Key
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_values import (
    NO_LIMIT,
    KernelFile,
    Value,
    line_of,
    number,
    or_max,
)

IO_MAX, IO_LATENCY = "io_max", "io_latency"
_THROTTLE = {
    "rbps": "blkio.throttle.read_bps_device",
    "wbps": "blkio.throttle.write_bps_device",
    "riops": "blkio.throttle.read_iops_device",
    "wiops": "blkio.throttle.write_iops_device",
}
FIELDS: Mapping[str, tuple[str, ...]] = {IO_MAX: tuple(_THROTTLE), IO_LATENCY: ("target_us",)}
# The kernel keeps operations per second in 32 bits, and the largest of them is "no limit" (blk-throttle.c).
_HIGH = {"rbps": 2**62, "wbps": 2**62, "riops": 2**32 - 2, "wiops": 2**32 - 2, "target_us": 2**42}
_NEEDS = {
    IO_MAX: "the blkio (v1) or io (v2) controller with CONFIG_BLK_DEV_THROTTLING",
    IO_LATENCY: "cgroup v2 with CONFIG_BLK_CGROUP_IOLATENCY (Linux 4.19)",
}
FILES: Mapping[int, Mapping[str, tuple[str, ...]]] = {
    1: {IO_MAX: tuple(_THROTTLE.values())},
    2: {IO_MAX: ("io.max",), IO_LATENCY: ("io.latency",)},
}


def _zero_is_none(text: str) -> Value:
    return NO_LIMIT if number(text) == 0 else number(text)


def _none_is_zero(value: Value, _current: str) -> str:
    return "0" if value == NO_LIMIT else str(value)


def _v1(name: str, device: str, field: str) -> KernelFile | None:
    if name != IO_MAX:
        return None
    return line_of(_THROTTLE[field], device, "0", _zero_is_none, _none_is_zero)


def _v2(name: str, device: str, field: str) -> KernelFile:
    if name == IO_LATENCY:
        return line_of("io.latency", f"{device} target", "0", _zero_is_none, _none_is_zero)
    return line_of("io.max", f"{device} {field}", "max", number, or_max)


@functools.cache
def key(name: str, device: str, field: str) -> Key:
    """Return the row for one limit of one device ("8:0")."""
    v1, v2 = _v1(name, device, field), _v2(name, device, field)
    high = _HIGH[field]
    return Key(name, "io", "plain", v1, v2, _NEEDS[name], 1, high, unlimited=True, line=f"{device} {field}")


def expand(name: str, limits: Any, where: str, resolve: Callable[[str], str]) -> Iterator[tuple[Key, Value, str]]:
    """Yield (row, value, where) for each limit in an option; one that is not given stays as it is.

    ``resolve`` turns a device as written into "8:0". Raises CgroupError for limits that are not of that form.
    """
    fields = FIELDS[name]
    example = f"{{device: /dev/sda, {fields[0]}: 1048576}}"
    seen: set[str] = set()
    for place, entry in enumerate(limits if isinstance(limits, (list, tuple)) else [limits]):
        shown = f"{where}[{place}]"
        if not isinstance(entry, Mapping) or set(entry) - {"device", *fields} or not entry.get("device"):
            raise CgroupError(f"{shown}: is not a limit of a device; write it as {example}")
        try:
            device = resolve(str(entry["device"]))
        except block.BlockError as exc:
            raise CgroupError(f"{shown}: {exc}") from exc
        if device in seen:
            raise CgroupError(f"{shown}: device {device} is given twice; give all its limits in one entry")
        seen.add(device)
        if all(entry.get(field) is None for field in fields):
            raise CgroupError(f"{shown}: device {device} has no limit; give one of {', '.join(fields)} (-1 for none)")
        for field in fields:
            if entry.get(field) is not None:
                yield key(name, device, field), entry[field], f"{shown}.{field}"


def collect(limits: Mapping[str, Value]) -> list[dict[str, Value]]:
    """Return limits by "8:0 rbps" as the option has them: one entry for each device, devices in ascending order."""
    found: dict[str, dict[str, Value]] = {}
    for line, value in limits.items():
        device, _space, field = line.partition(" ")
        found.setdefault(device, {"device": device})[field] = value
    return [found[device] for device in sorted(found, key=_order)]


def _order(device: str) -> tuple[int, ...]:
    return tuple(int(part) for part in device.split(":") if part.isdigit())


def present(name: str, version: int, contents: Mapping[str, str]) -> list[dict[str, Value]]:
    """Return the limits of all devices that have one, from the contents of the files of an option."""
    texts = {file: contents[file] for file in FILES[version].get(name, ()) if file in contents}
    devices = {head for text in texts.values() for head in cgroup_lines.heads(text)}
    found: dict[str, Value] = {}
    for device in devices:
        for field in FIELDS[name]:
            file = key(name, device, field).file(version)
            if file is not None and file.name in texts and (value := file.parse(texts[file.name])) != NO_LIMIT:
                found[f"{device} {field}"] = value
    return collect(found)


def names(version: int) -> Iterable[str]:
    """Return the files that have limits for each device on a version."""
    return [file for files in FILES[version].values() for file in files]
