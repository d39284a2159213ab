# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a compiled BPF object holds: programs with the maps that they name, maps, description of the structures.

Only what files/bpf produces is understood (ELF, 64 bits, little endian, own map definitions): no type information is
needed, so an object loads on kernels without BTF.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.kernel.bpf import BpfError

_MACHINE_BPF = 247
_SYMBOLS, _RELOCATIONS = 2, 9
_ABSOLUTE_64 = 1
_FUNCTION = 2
_MAP_SIZE = 20
PROGRAM_PREFIX = "classifier/"


@dataclass(frozen=True)
class MapDefinition:
    """A map as the object asks for it, numbers as in linux/bpf.h."""

    name: str
    type: int
    key_size: int
    value_size: int
    max_entries: int
    flags: int


@dataclass(frozen=True)
class Program:
    """A program's instructions, and at which byte of them the address of which map is wanted."""

    name: str
    instructions: bytes
    maps: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class ObjectFile:
    """The parts of an object file."""

    programs: tuple[Program, ...]
    maps: tuple[MapDefinition, ...]
    layout: bytes
    license: str


@dataclass(frozen=True)
class _Section:
    name: str
    type: int
    data: bytes
    info: int


@dataclass(frozen=True)
class _Symbol:
    name: str
    type: int
    section: int
    offset: int


def parse(content: bytes, name: str = "object") -> ObjectFile:
    """Return the parts of an object. Raises BpfError for anything that isn't one of ours."""
    try:
        return _parse(content)
    except (struct.error, IndexError, ValueError) as exc:
        raise BpfError(f"{name}: is not a BPF object of this collection ({exc}); install the collection again") from exc


def _parse(content: bytes) -> ObjectFile:
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no ELF header of 64 bits, little endian")
    machine = struct.unpack_from("<H", content, 18)[0]
    if machine != _MACHINE_BPF:
        raise ValueError(f"for machine {machine}, not BPF")
    sections = _sections(content)
    symbols = _symbols(sections)
    by_name = {section.name: section.data for section in sections}
    if "layout" not in by_name or "license" not in by_name:
        raise ValueError("section layout or license is missing")
    return ObjectFile(
        programs=_programs(sections, symbols),
        maps=_maps(sections, symbols),
        layout=by_name["layout"],
        license=by_name["license"].split(b"\0")[0].decode("ascii"),
    )


def _text(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode("ascii")


def _sections(content: bytes) -> list[_Section]:
    (offset,) = struct.unpack_from("<Q", content, 40)
    size, count, names = struct.unpack_from("<HHH", content, 58)
    raw = [struct.unpack_from("<IIQQQQIIQQ", content, offset + number * size) for number in range(count)]

    def data(header: tuple[int, ...]) -> bytes:
        found = content[header[4] : header[4] + header[5]]
        # SHT_NOBITS takes no room in the file.
        if header[1] != 8 and len(found) != header[5]:
            raise ValueError("a section ends behind the file")
        return found

    table = data(raw[names])
    return [_Section(_text(table, header[0]), header[1], data(header), header[7]) for header in raw]


def _symbols(sections: list[_Section]) -> list[_Symbol]:
    (table,) = (section for section in sections if section.type == _SYMBOLS)
    (strings,) = (section.data for section in sections if section.name == ".strtab")
    found = []
    for name, info, _other, section, value, _size in struct.iter_unpack("<IBBHQQ", table.data):
        found.append(_Symbol(_text(strings, name), info & 15, section, value))
    return found


def _maps(sections: list[_Section], symbols: list[_Symbol]) -> tuple[MapDefinition, ...]:
    found = []
    for symbol in symbols:
        if symbol.section < len(sections) and symbol.name and sections[symbol.section].name == "maps":
            numbers = struct.unpack_from("<5I", sections[symbol.section].data, symbol.offset)
            found.append(MapDefinition(symbol.name, *numbers))
    if len(found) * _MAP_SIZE != sum(len(section.data) for section in sections if section.name == "maps"):
        raise ValueError("section maps does not hold one definition for each symbol")
    return tuple(sorted(found, key=lambda item: item.name))


def _programs(sections: list[_Section], symbols: list[_Symbol]) -> tuple[Program, ...]:
    wanted = {section.info: section.data for section in sections if section.type == _RELOCATIONS}
    found = []
    for number, section in enumerate(sections):
        if not section.name.startswith(PROGRAM_PREFIX):
            continue
        (name,) = (item.name for item in symbols if item.section == number and item.type == _FUNCTION)
        maps = []
        for offset, info in struct.iter_unpack("<QQ", wanted.get(number, b"")):
            symbol = symbols[info >> 32]
            if info & 0xFFFFFFFF != _ABSOLUTE_64 or sections[symbol.section].name != "maps":
                raise ValueError(f"program {name} refers to {symbol.name or 'a section'}, which is no map")
            maps.append((offset, symbol.name))
        found.append(Program(name, section.data, tuple(maps)))
    if not found:
        raise ValueError("no program in it")
    return tuple(found)
