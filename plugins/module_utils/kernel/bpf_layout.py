# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Structures shared with the BPF programs, as the object file itself describes them (files/bpf/describe.h)."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Union

from ansible_collections.colocation.testbed.plugins.module_utils.kernel.bpf import BpfError

Value = Union[int, Sequence[int]]
Values = Mapping[str, Value]

VERSION = 2
_ENTRY = struct.Struct("<40s4I")
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


@dataclass(frozen=True)
class Field:
    """A field: offset in bytes, size of one element in bytes, number of elements."""

    offset: int
    size: int
    count: int


@dataclass(frozen=True)
class Structure:
    """A structure of unsigned little-endian integers."""

    name: str
    size: int
    fields: Mapping[str, Field]

    def pack(self, values: Values) -> bytes:
        """Return the bytes of a structure; fields that aren't named are 0. Raises BpfError for what doesn't fit."""
        data = bytearray(self.size)
        for name, value in values.items():
            field = self.fields.get(name)
            numbers = [value] if isinstance(value, int) else list(value)
            if field is None or len(numbers) != field.count:
                raise BpfError(f"{self.name}.{name}: is not a field with {len(numbers)} numbers in this layout")
            try:
                struct.pack_into(f"<{field.count}{_CODES[field.size]}", data, field.offset, *numbers)
            except struct.error as exc:
                raise BpfError(f"{self.name}.{name}: {value} does not fit into {field.size} bytes") from exc
        return bytes(data)

    def unpack(self, data: bytes) -> dict[str, int | list[int]]:
        """Return all fields of a structure. Raises BpfError when the bytes are of another size."""
        if len(data) < self.size:
            raise BpfError(f"{self.name}: has {len(data)} bytes, not {self.size}; it is of another layout")
        found: dict[str, int | list[int]] = {}
        for name, field in self.fields.items():
            numbers = struct.unpack_from(f"<{field.count}{_CODES[field.size]}", data, field.offset)
            found[name] = numbers[0] if field.count == 1 else list(numbers)
        return found

    def number(self, data: bytes, name: str) -> int:
        """Return one field that is a single number. Raises BpfError."""
        value = self.unpack(data)[name]
        if not isinstance(value, int):
            raise BpfError(f"{self.name}.{name}: is an array")
        return value


@dataclass(frozen=True)
class Layout:
    """All structures by name, and the constants."""

    structures: Mapping[str, Structure]
    constants: Mapping[str, int]

    def __getitem__(self, name: str) -> Structure:
        """Return a structure by its name. Raises BpfError."""
        try:
            return self.structures[name]
        except KeyError as exc:
            raise BpfError(f"structure {name}: is not in this object; install the collection again") from exc

    def constant(self, name: str) -> int:
        """Return a constant by its name. Raises BpfError."""
        try:
            return self.constants[name]
        except KeyError as exc:
            raise BpfError(f"constant {name}: is not in this object; install the collection again") from exc


def parse(data: bytes) -> Layout:
    """Return the layout in an object's section. Raises BpfError for another version or damaged data."""
    structures: dict[str, tuple[int, dict[str, Field]]] = {}
    constants: dict[str, int] = {}
    if len(data) % _ENTRY.size:
        raise BpfError("layout of the BPF object: is cut short; install the collection again")
    for raw, offset, size, count, _spare in _ENTRY.iter_unpack(data):
        name = raw.split(b"\0")[0].decode("ascii", "replace")
        owner, dot, field = name.partition(".")
        if name.startswith("="):
            constants[name[1:]] = offset
        elif not dot:
            structures[name] = (size, {})
        elif owner not in structures or size not in _CODES or offset + size * count > structures[owner][0]:
            raise BpfError(f"layout of the BPF object: {name} lies outside; install the collection again")
        else:
            structures[owner][1][field] = Field(offset, size, count)
    if constants.get("LAYOUT_VERSION") != VERSION:
        raise BpfError(
            f"BPF object: is of layout {constants.get('LAYOUT_VERSION')}, but this code works with {VERSION}; "
            "install object and code of the same version of the collection"
        )
    return Layout({name: Structure(name, size, fields) for name, (size, fields) in structures.items()}, constants)
