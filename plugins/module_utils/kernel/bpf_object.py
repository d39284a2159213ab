# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Load a compiled object into the kernel: make or reuse its maps, put them into the programs, load those."""

from __future__ import annotations

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
# Helpers that a kernel may lack without harm: their result is 0 there (number -> what is missing then).
OPTIONAL_HELPERS = {151: "classes by net_cls classid"}
_LOCK = "lock"


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


def instructions(code: bytes) -> list[tuple[int, int, int, int]]:
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


def has_helper(number: int) -> bool:
    """Tell whether the kernel lets a traffic-control program call a helper with the packet as its argument."""
    code = b"".join(_INSTRUCTION.pack(*item) for item in ((_CALL, 0, 0, number), (_SET_R0, 0, 0, 0), (_EXIT, 0, 0, 0)))
    try:
        os.close(bpf.load_program("probe", code, "GPL"))
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


def load(
    content: bytes,
    name: str = "object",
    reused: Mapping[str, Map] | None = None,
    helper_probe: Callable[[int], bool] = has_helper,
) -> Loaded:
    """Load an object; ``reused`` are maps that exist already. Raises BpfError, and then leaves nothing open."""
    parts = bpf_elf.parse(content, name)
    layout = bpf_layout.parse(parts.layout)
    called = {number for program in parts.programs for number in calls(program.instructions)}
    lacking = [number for number in sorted(called & set(OPTIONAL_HELPERS)) if not helper_probe(number)]
    maps, programs, opened = dict(reused or {}), dict[str, int](), list[int]()
    try:
        for wanted in parts.maps:
            if wanted.name in maps:
                _check_reused(maps[wanted.name], wanted)
                continue
            lock = _lock_offset(wanted.name, layout) if _SPIN_LOCK in called else None
            maps[wanted.name] = bpf.create_map(
                wanted.name, wanted.type, wanted.key_size, wanted.value_size, wanted.max_entries, wanted.flags, lock
            )
            opened.append(maps[wanted.name].fd)
        for program in parts.programs:
            code = without_calls(with_maps(program, maps), lacking)
            programs[program.name] = bpf.load_program(program.name, code, parts.license)
            opened.append(programs[program.name])
    except BpfError:
        for fd in opened:
            os.close(fd)
        raise
    return Loaded(maps, programs, layout, tuple(OPTIONAL_HELPERS[number] for number in lacking))


def load_first(objects: Sequence[tuple[str, bytes]]) -> tuple[str, Loaded]:
    """Load the first of several variants that the kernel takes, and return its name too. Raises BpfError, the last."""
    refused = BpfError("no variant of the BPF object was given")
    for name, content in objects:
        try:
            return name, load(content, name)
        except BpfError as exc:
            refused = exc
    raise refused
