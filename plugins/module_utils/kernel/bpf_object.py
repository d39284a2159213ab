# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Load a compiled object into the kernel: make or reuse its maps, put them into the programs, load those."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf, bpf_elf, bpf_layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.bpf import BpfError, Map

_INSTRUCTION = struct.Struct("<BBhi")
_LOAD_64 = 0x18
_MAP_BY_FD = 1 << 4
_CALL, _EXIT = 0x85, 0x95
_SET_R0 = 0xB7
_SPIN_LOCK = 93
_SET = 0xB7
_LOCK = "lock"
Instruction = tuple[int, int, int, int]
_LEAVE: tuple[Instruction, ...] = ((_SET_R0, 0, 0, 0), (_EXIT, 0, 0, 0))


@dataclass(frozen=True)
class Optional:
    """Helpers that a kernel may lack without harm, as their results are 0 there: what is missing then, and a probe."""

    helpers: tuple[int, ...]
    missing: str
    probe: tuple[Instruction, ...]


OPTIONAL = (
    Optional((151,), "classes by net_cls classid", ((_CALL, 0, 0, 151), *_LEAVE)),
    Optional(
        (192,),
        "times of reception behind an intermediate device",
        ((_SET, 2, 0, 0), (_SET, 3, 0, 0), (_CALL, 0, 0, 192), *_LEAVE),
    ),
)
# A map type that a kernel may lack, the helpers that go with it, and what is missing then.
OPTIONAL_MAP = "sockets"
MAP_HELPERS, _MAP_USE = (69, 84, 85, 86, 95, 107), "classes by control group for what arrives"


@dataclass(frozen=True)
class Loaded:
    """A loaded object: maps by name, file descriptors of programs by name, its layout, and what this kernel lacks."""

    maps: Mapping[str, Map]
    programs: Mapping[str, int]
    layout: bpf_layout.Layout
    missing: tuple[str, ...]

    def close(self) -> None:
        """Close all file descriptors; what is neither pinned nor attached goes away."""
        for fd in [*(item.fd for item in self.maps.values()), *self.programs.values()]:
            os.close(fd)


def instructions(code: bytes) -> list[Instruction]:
    """Return (operation, registers, offset, immediate) of each instruction."""
    return list(_INSTRUCTION.iter_unpack(code))


def calls(code: bytes) -> set[int]:
    """Return the numbers of the helpers that a program calls."""
    found = set()
    for operation, registers, _offset, immediate in instructions(code):
        # A source register of 1 or 2 would mean a call of another function.
        if operation == _CALL and registers >> 4 == 0:
            found.add(immediate)
    return found


def loads(code: Sequence[Instruction]) -> bool:
    """Tell whether the kernel takes a traffic-control program."""
    try:
        os.close(bpf.load_program("probe", b"".join(_INSTRUCTION.pack(*item) for item in code), "GPL"))
    except BpfError:
        return False
    return True


def without_calls(code: bytes, helpers: Sequence[int]) -> bytes:
    """Return the program with 0 in the place of the result of each call of some helpers."""
    parts = []
    for operation, registers, offset, immediate in instructions(code):
        if operation == _CALL and registers >> 4 == 0 and immediate in helpers:
            parts.append(_INSTRUCTION.pack(_SET_R0, 0, 0, 0))
        else:
            parts.append(_INSTRUCTION.pack(operation, registers, offset, immediate))
    return b"".join(parts)


def with_maps(program: bpf_elf.Program, maps: Mapping[str, Map]) -> bytes:
    """Return the program with the file descriptors of its maps in it. Raises BpfError when one is missing."""
    code = bytearray(program.instructions)
    for offset, name in program.maps:
        operation, registers, _offset, _immediate = _INSTRUCTION.unpack_from(code, offset)
        if operation != _LOAD_64 or name not in maps:
            raise BpfError(f"program {program.name}: does not load map {name} at byte {offset}; rebuild the object")
        _INSTRUCTION.pack_into(code, offset, operation, registers & 15 | _MAP_BY_FD, 0, maps[name].fd)
    return bytes(code)


def _structure_of(name: str, layout: bpf_layout.Layout) -> bpf_layout.Structure | None:
    """Return the structure of a map's values: pool_states holds pool_state."""
    return layout.structures.get(name[:-1] if name.endswith("s") else name)


def _lock_offset(name: str, layout: bpf_layout.Layout) -> int | None:
    structure = _structure_of(name, layout)
    field = structure.fields.get(_LOCK) if structure else None
    return field.offset if field else None


def _check_reused(found: Map, wanted: bpf_elf.MapDefinition) -> None:
    have = (found.type, found.key_size, found.value_size, found.max_entries)
    if have != (wanted.type, wanted.key_size, wanted.value_size, wanted.max_entries):
        raise BpfError(
            f"map {wanted.name}: exists with another layout; remove the bandwidth instance and make it again"
        )


def _make_maps(
    wanted: Sequence[bpf_elf.MapDefinition], maps: dict[str, Map], layout: bpf_layout.Layout, locks: bool
) -> list[int]:
    """Make the maps that aren't there and add them to ``maps``; return their file descriptors. Raises BpfError."""
    opened: list[int] = []
    try:
        for item in wanted:
            if item.name in maps:
                _check_reused(maps[item.name], item)
                continue
            lock = _lock_offset(item.name, layout) if locks else None
            try:
                maps[item.name] = bpf.create_map(
                    item.name, item.type, item.key_size, item.value_size, item.max_entries, item.flags, lock
                )
            except BpfError as exc:
                if item.name != OPTIONAL_MAP or exc.number == errno.EPERM:
                    raise
                continue
            opened.append(maps[item.name].fd)
    except BpfError:
        for fd in opened:
            os.close(fd)
        raise
    return opened


def load(
    content: bytes,
    name: str = "object",
    reused: Mapping[str, Map] | None = None,
    probe: Callable[[Sequence[Instruction]], bool] = loads,
) -> Loaded:
    """Load an object; ``reused`` are maps that exist already. Raises BpfError, and then leaves nothing open."""
    parts = bpf_elf.parse(content, name)
    layout = bpf_layout.parse(parts.layout)
    called = {number for program in parts.programs for number in calls(program.instructions)}
    lacking = [item for item in OPTIONAL if called & set(item.helpers) and not probe(item.probe)]
    without, missing = [number for item in lacking for number in item.helpers], [item.missing for item in lacking]
    maps, programs = dict(reused or {}), dict[str, int]()
    opened = _make_maps(parts.maps, maps, layout, _SPIN_LOCK in called)
    there = dict(maps)
    if any(item.name == OPTIONAL_MAP for item in parts.maps) and OPTIONAL_MAP not in maps:
        without, missing = [*without, *MAP_HELPERS], [*missing, _MAP_USE]
        # A program must name some map where it names this one, although no call is left that would use it.
        there[OPTIONAL_MAP] = next(iter(maps.values()))
    try:
        for program in parts.programs:
            code = without_calls(with_maps(program, there), without)
            programs[program.name] = bpf.load_program(program.name, code, parts.license)
            opened.append(programs[program.name])
    except BpfError:
        for fd in opened:
            os.close(fd)
        raise
    return Loaded(maps, programs, layout, tuple(missing))


def load_first(objects: Sequence[tuple[str, bytes]]) -> tuple[str, Loaded]:
    """Load the first of several variants that the kernel takes, and return its name too. Raises BpfError, the last."""
    refused = BpfError("no variant of the BPF object was given")
    for name, content in objects:
        try:
            return name, load(content, name)
        except BpfError as exc:
            refused = exc
    raise refused
