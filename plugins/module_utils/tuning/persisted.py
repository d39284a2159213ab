# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values for the next boot, in drop-in files of our own: sysctl.d(5), and ``w`` lines of tmpfiles.d(5) for the rest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netns_value, sysctl
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.settings import Roots, TuningError
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.targets import SYSCTL, TMPFILES

FILE_NAME = "90-colocation-testbed.conf"
_HEADER = (
    "# Made by colocation.testbed, which replaces this file as a whole: put other values into a file of another name.\n"
)
KEEPERS = (SYSCTL, TMPFILES)


@dataclass(frozen=True)
class DropIn:
    """Our file of one keeper: its text now and its values by key, both empty where there is no file."""

    keeper: str
    path: str
    text: str | None
    values: Mapping[str, str]

    def updated(self, wanted: Mapping[str, str | None]) -> str | None:
        """Return the text with values set and (None) left out; None when no value is left."""
        values = {**self.values, **wanted}
        kept = sorted((key, value) for key, value in values.items() if value is not None)
        if kept == sorted(self.values.items()):
            return self.text
        lines = sysctl.render(kept) if self.keeper == SYSCTL else _render_writes(kept)
        return _HEADER + lines if kept else None


def read(keeper: str, roots: Roots) -> DropIn:
    """Return our drop-in of a keeper. Raises TuningError when something else than a file is in its place."""
    path = os.path.join(roots.etc, keeper, FILE_NAME)
    try:
        files.capture(path)
        text = files.read_text_or_none(path)
    except files.FilesError as exc:
        raise TuningError(str(exc)) from exc
    parse = sysctl.assignments if keeper == SYSCTL else writes
    return DropIn(keeper, path, text, dict(parse(text or "")))


def writes(text: str) -> Iterable[tuple[str, str]]:
    """Yield path and value of each ``w`` line in a file of tmpfiles.d(5)."""
    for line in text.splitlines():
        fields = line.split(None, 6)
        if len(fields) == 7 and fields[0].rstrip("!-+=~^$") == "w":
            yield fields[1].strip('"').replace("%%", "%"), fields[6].replace("%%", "%").replace("\\\\", "\\").strip()


def _render_writes(values: Iterable[tuple[str, str]]) -> str:
    """Return ``w`` lines. Percent signs and backslashes would be specifiers and escapes."""
    lines = []
    for path, value in values:
        shown = value.replace("\\", "\\\\").replace("%", "%%")
        lines.append(f"w {path.replace('%', '%%')} - - - - {shown}\n")
    return "".join(lines)


def unkept(keeper: str, roots: Roots) -> str:
    """Return why a keeper cannot keep values on this host, or ''."""
    if netns_value.current(roots.proc, roots.netns) is not None:
        return "the host is a network namespace, whose files are those of the machine"
    if keeper == TMPFILES and not os.path.isdir(os.path.join(roots.run, "systemd/system")):
        return "systemd does not run here, and nothing else reads tmpfiles.d at boot"
    return ""


def _folders(keeper: str, roots: Roots) -> tuple[str, ...]:
    """Return where files of a keeper are looked for, the one that hides the others' files first."""
    return tuple(
        os.path.join(root, keeper)
        for root in (roots.etc, roots.run, os.path.join(roots.usr, "local/lib"), os.path.join(roots.usr, "lib"))
    )


def _others(keeper: str, roots: Roots) -> list[str]:
    """Return the files of a keeper that are in effect, in the order in which they are read, without ours."""
    found: dict[str, str] = {}
    for folder in reversed(_folders(keeper, roots)):
        if os.path.isdir(folder):
            found.update((name, os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(".conf"))
    return [found[name] for name in sorted(found) if name != FILE_NAME]


def overriding(keeper: str, wanted: Mapping[str, str | None], roots: Roots) -> list[tuple[str, str, str]]:
    """Return key, file and value wherever another file gives a value of ours another value at boot.

    Of sysctl.d only files that are read after ours; in tmpfiles.d which of two lines for a path wins is not defined.
    A link to /dev/null, or a file that cannot be read, says nothing.
    """
    values = {key: value for key, value in wanted.items() if value is not None}
    parse = sysctl.assignments if keeper == SYSCTL else writes
    found: dict[str, tuple[str, str]] = {}
    for path in _others(keeper, roots) if values else []:
        if keeper == SYSCTL and os.path.basename(path) < FILE_NAME:
            continue
        try:
            text = files.read_text(path)
        except files.FilesError:
            continue
        found.update((key, (path, value)) for key, value in parse(text) if key in values)
    return [(key, path, value) for key, (path, value) in sorted(found.items()) if value != values[key]]
