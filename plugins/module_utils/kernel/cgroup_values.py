# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel files of a control group: how a value is read from their text, written to them, and brought back.

Formats: cgroup-v1/*.rst and cgroup-v2.rst of the kernel's documentation.
"""

from __future__ import annotations

import functools
import re
import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup_lines
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError

Value = Union[int, str]
"""A value of one file or line: a number (-1 = no limit), a CPU list or a word."""
Option = Any
"""A value as the options have it: a Value, or a list of limits by device (cgroup_devices)."""

NO_LIMIT = -1
SHARES_LOW, SHARES_HIGH = 2, 262144
WEIGHT_LOW, WEIGHT_HIGH = 1, 10000
WEIGHT_DEFAULT, BFQ_HIGH = 100, 1000
_CFQ_FACTOR, _CFQ_LOW, _CFQ_HIGH = 5, 10, 1000
# A limit below one page is rounded down to none at all, with which nothing can run.
PAGE_BYTES = resource.getpagesize()
_V1_NO_LIMIT_BYTES = 2**62


@dataclass(frozen=True)
class KernelFile:
    """A file in a group's directory: its name, a new group's content, and how values are read and written.

    ``render`` gets the value and the file's present content, since cpu.max holds two values. ``line`` is the part that
    is meant in a file with a line for each device. ``sign`` is a file of the hierarchy's root that tells whether groups
    have this one, where there is no group to look at; without it they are taken to. ``translates``: the file's unit is
    not the option's.
    """

    name: str
    initial: str
    parse: Callable[[str], Value]
    render: Callable[[Value, str], str]
    line: str = ""
    sign: str = ""
    translates: bool = False

    def after(self, written: str, present: str) -> str:
        """Return the content once ``written`` was written over ``present``."""
        return cgroup_lines.put(present, written) if self.line else written

    def restoring(self, present: str) -> str:
        """Return what must be written to have the value of ``present`` again."""
        if self.line:
            return self.render(self.parse(present), present)
        return comparable(self.name, present)


PARTITION = "cpuset.cpus.partition"


def comparable(name: str, text: str) -> str:
    """Return the part of a file's content that can be written: a partition adds why it is invalid, in brackets."""
    return text.split(" ", 1)[0] if name == PARTITION else text


def shares_to_weight(shares: int) -> int:
    """Return the v2 weight for v1 shares as Koordinator does it: 1 + (shares - 2)·9999 / 262142, rounded down."""
    inside = min(max(shares, SHARES_LOW), SHARES_HIGH)
    return 1 + (inside - SHARES_LOW) * (WEIGHT_HIGH - WEIGHT_LOW) // (SHARES_HIGH - SHARES_LOW)


def weight_to_shares(weight: int) -> int:
    """Return v1 shares for a v2 weight, Koordinator's inverse: 2 + (weight - 1)·262142 / 9999, rounded down."""
    inside = min(max(weight, WEIGHT_LOW), WEIGHT_HIGH)
    return SHARES_LOW + (inside - WEIGHT_LOW) * (SHARES_HIGH - SHARES_LOW) // (WEIGHT_HIGH - WEIGHT_LOW)


def weight_to_bfq(weight: int) -> int:
    """Return BFQ's weight (1..1000) for io.weight (1..10000) as systemd does it: equal up to the default of 100.

    Above it 100 + (weight - 100)·900 / 9900, rounded down.
    """
    above = max(weight - WEIGHT_DEFAULT, 0)
    return min(weight, WEIGHT_DEFAULT) + above * (BFQ_HIGH - WEIGHT_DEFAULT) // (WEIGHT_HIGH - WEIGHT_DEFAULT)


def bfq_to_weight(bfq: int) -> int:
    """Return io.weight for BFQ's weight: the inverse of weight_to_bfq, exact since 9900 / 900 is 11."""
    above = max(bfq - WEIGHT_DEFAULT, 0)
    return min(bfq, WEIGHT_DEFAULT) + above * (WEIGHT_HIGH - WEIGHT_DEFAULT) // (BFQ_HIGH - WEIGHT_DEFAULT)


def weight_to_cfq(weight: int) -> int:
    """Return CFQ's weight (10..1000, default 500) for io.weight as systemd does it: weight·5, within the range."""
    return min(max(weight * _CFQ_FACTOR, _CFQ_LOW), _CFQ_HIGH)


def cfq_to_weight(cfq: int) -> int:
    """Return io.weight for CFQ's weight: the inverse of weight_to_cfq, rounded down."""
    return cfq // _CFQ_FACTOR


@functools.lru_cache(maxsize=1024)
def cpu_list(text: str, where: str) -> str:
    """Return a CPU list as the kernel writes it. Raises CgroupError naming ``where``."""
    try:
        return quantity.format_cpu_list(quantity.parse_cpu_list(text))
    except quantity.QuantityError as exc:
        raise CgroupError(f"{where}: {exc}") from exc


def number(text: str) -> int:
    """Parse a number or ``max``. Raises CgroupError for anything else: this kernel writes the file differently."""
    word = text.strip()
    if word.isascii() and word.isdigit():
        return int(word)
    if word == "max":
        return NO_LIMIT
    if not re.fullmatch(r"-?[0-9]+", word):
        raise CgroupError(f"kernel value {word!r}: is neither a number nor 'max'; this kernel is not known, report it")
    return int(word)


def v1_bytes(text: str) -> int:
    """Parse a v1 limit in bytes, where no limit is a number near 2^63."""
    value = number(text)
    return NO_LIMIT if value >= _V1_NO_LIMIT_BYTES else value


def set_text(text: str) -> str:
    """Parse a CPU list or a list of memory nodes."""
    return cpu_list(text, "kernel value")


def page_floor(value: Value) -> int:
    """Round down to pages, as the kernel does with a limit (page_counter_memparse)."""
    return int(value) // PAGE_BYTES * PAGE_BYTES


def plain(value: Value, _current: str) -> str:
    """Render a value as it is."""
    return str(value)


def or_max(value: Value, _current: str) -> str:
    """Render a number, or ``max`` for no limit."""
    return "max" if value == NO_LIMIT else str(value)


def pages(value: Value, _current: str) -> str:
    """Render a v1 limit in bytes."""
    return str(NO_LIMIT) if value == NO_LIMIT else str(page_floor(value))


def pages_or_max(value: Value, _current: str) -> str:
    """Render a v2 limit in bytes."""
    return "max" if value == NO_LIMIT else str(page_floor(value))


def field(text: str, place: int) -> str:
    """Return quota (0) or period (1) of the text of cpu.max."""
    fields = text.split()
    return fields[place] if len(fields) == 2 else ("max", "100000")[place]


def file(
    name: str,
    initial: str,
    parse: Callable[[str], Value] = number,
    render: Callable[[Value, str], str] = plain,
    sign: str = "",
    translates: bool = False,
) -> KernelFile:
    """Return a file with one value; a number unless said otherwise."""
    return KernelFile(name, initial, parse, render, sign=sign, translates=translates)


def line_of(
    name: str,
    address: str,
    absent: str,
    parse: Callable[[str], Value] = number,
    render: Callable[[Value, str], str] = plain,
    initial: str = "",
    sign: str = "",
    translates: bool = False,
) -> KernelFile:
    """Return one line, or one field of it, of a file that has a line for each device (cgroup_lines).

    ``absent`` is what the value reads as where the file has no such line.
    """

    def read(text: str) -> Value:
        found = cgroup_lines.read(text, address)
        return parse(absent if found is None else found)

    def write(value: Value, _current: str) -> str:
        return cgroup_lines.render(address, render(value, ""))

    return KernelFile(name, initial, read, write, address, sign, translates)
