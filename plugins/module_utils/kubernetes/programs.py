# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look whether programs that somebody brought are there, are for this host, and have the version that is needed."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands

_ASK_TIMEOUT_S = 30.0
_HEADER_BYTES = 20
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+(?:-[0-9A-Za-z.]+)?)")
# e_machine of the ELF header (elf(5), elf.h) -> what uname says of such a machine.
_MACHINES = {
    3: ("i386", "i486", "i586", "i686"),
    21: ("ppc64", "ppc64le"),
    22: ("s390x",),
    40: ("armv6l", "armv7l", "armv8l"),
    62: ("x86_64",),
    183: ("aarch64",),
    243: ("riscv64",),
    258: ("loongarch64",),
}

Run = Callable[..., commands.Result]


class ProgramsError(Exception):
    """Programs are missing, are for another machine, or have another version; one sentence for each."""


@dataclass(frozen=True)
class Wanted:
    """A program: what makes it print its version, and the one that it must have (``exactly``, ``at_least``)."""

    name: str
    version_argv: tuple[str, ...] = ()
    exactly: str = ""
    at_least: str = ""
    setting: str = ""


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparing: v2.1.6-rc.1 -> (2, 1, 6)."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("-")[0]))


def machine_of(header: bytes) -> tuple[str, ...] | None:
    """Return what uname calls machines that an ELF file is for, by its first bytes; None for what isn't one."""
    if len(header) < _HEADER_BYTES or header[:4] != b"\x7fELF":
        return None
    order = ">" if header[5] == 2 else "<"
    (number,) = struct.unpack(f"{order}H", header[18:20])
    return _MACHINES.get(number, (f"machine {number}",))


def _why_not_file(path: str, machine: str) -> str:
    """Return why a file can't be run on this machine, "" where it can."""
    try:
        with open(path, "rb") as handle:
            header = handle.read(_HEADER_BYTES)
    except OSError as exc:
        return f"can't be read ({exc.strerror}); correct its mode"
    if header[:2] != b"#!":
        machines = machine_of(header)
        if machines is None:
            return "is no program (neither ELF nor a script); it may be an error page or an archive: bring the program"
        if machine not in machines:
            return f"is for {machines[0]}, and this host is {machine}; bring the one for {machine}"
    return "" if os.access(path, os.X_OK) else f"may not be executed; run: chmod +x {path}"


def check(
    directory: str, wanted: Sequence[Wanted], advice: str, run: Run = commands.run, machine: str = ""
) -> dict[str, str]:
    """Return the version of each program in a directory ("" where it can't be asked), after checking all of them.

    ``advice`` says how a missing one is brought. Changes nothing. Raises ProgramsError with all that is wrong.
    """
    on = machine or os.uname().machine
    problems: list[str] = []
    versions: dict[str, str] = {}
    for item in wanted:
        path = os.path.join(directory, item.name)
        if not os.path.isfile(path):
            problems.append(f"program {item.name}: is not in {directory}; {advice}")
            continue
        why = _why_not_file(path, on)
        versions[item.name] = "" if why or not item.version_argv else _printed(path, item, run)
        found = [why] if why else list(_wrong_version(item, versions[item.name]))
        problems += [f"program {path}: {text}" for text in found]
    if problems:
        raise ProgramsError("; ".join(problems))
    return versions


def _printed(path: str, item: Wanted, run: Run) -> str:
    try:
        done = run([path, *item.version_argv], timeout_s=_ASK_TIMEOUT_S, check=False)
    except commands.CommandError as exc:
        return f"nothing ({exc})"
    text = f"{done.stdout}\n{done.stderr}".strip()
    found = _VERSION.search(text)
    return found.group(1) if found else f"{text.splitlines()[0][:80]!r}" if text else "nothing"


def _wrong_version(item: Wanted, version: str) -> Iterator[str]:
    bring = f"bring that one{f', or set {item.setting}' if item.setting else ''}"
    is_version = _VERSION.fullmatch(version) is not None
    if item.exactly and version != item.exactly.lstrip("v"):
        yield f"is version {version}, and {item.exactly} is needed; {bring}"
    elif item.at_least and (not is_version or numbers(version) < numbers(item.at_least)):
        yield f"is version {version}, and {item.at_least} or newer is needed; {bring}"
