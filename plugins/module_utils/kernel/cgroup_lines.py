# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files with a line for each device, of which only the line that is written changes (cgroup-v2.rst, nested keyed).

Lines are ``8:0 rbps=1048576 wbps=max``, ``8:0 1048576`` or ``default 100``. An address is ``8:0 rbps``, ``8:0`` or
``default``: the line's first word, and a field's name where the line has several.
"""

from __future__ import annotations

NOTHING = ("max", "0")
"""What a limit reads as that is not set; the kernel then leaves the line out."""


def _fields(line: str) -> dict[str, str]:
    """Return the fields of a line by name; a word without name has the empty one."""
    fields: dict[str, str] = {}
    for word in line.split()[1:]:
        name, equals, text = word.partition("=")
        fields[name if equals else ""] = text if equals else word
    return fields


def _heads(content: str) -> dict[str, str]:
    return {line.split()[0]: line for line in content.splitlines() if line.split()}


def heads(content: str) -> list[str]:
    """Return the first words of all lines."""
    return list(_heads(content))


def read(content: str, address: str) -> str | None:
    """Return the word at an address, None where the file has no such line or field."""
    head, _space, name = address.partition(" ")
    return _fields(_heads(content).get(head, "")).get(name)


def render(address: str, word: str) -> str:
    """Return the line that sets the word at an address and nothing else."""
    return f"{address}={word}" if " " in address else f"{address} {word}"


def put(content: str, written: str) -> str:
    """Return the content after a line was written: fields of the same device stay, other lines too."""
    found = _heads(content)
    head = written.split()[0]
    fields = {**_fields(found.get(head, "")), **_fields(written)}
    found[head] = " ".join([head, *(f"{name}={text}" if name else text for name, text in fields.items())])
    return "\n".join(found.values())


def same(found: str | None, wanted: str | None) -> bool:
    """Tell whether two words at an address mean the same: a line that is left out is no limit."""
    return found == wanted or ((found or "max") in NOTHING and (wanted or "max") in NOTHING)


def target(path: str, address: str) -> str:
    """Return how the journal names a part of a file."""
    return f"{path}#{address}"


def split_target(text: str) -> tuple[str, str]:
    """Return (path, address) of what target() returned."""
    path, _mark, address = text.rpartition("#")
    return path, address
