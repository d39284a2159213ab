# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GRUB as Debian and Ubuntu package it: a drop-in in /etc/default/grub.d, and the grub.cfg made from all of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.boot import cmdline
from ansible_collections.colocation.testbed.plugins.module_utils.boot.cmdline import Argument

FILE_NAME = "90-colocation-testbed.cfg"
UPDATE_TIMEOUT_S = 300.0
_HEADER = (
    "# Made by colocation.testbed, which replaces this file as a whole: put other values into a file of another name.\n"
    "# Only the normal boot entries get these arguments, so that the recovery entries come up without them.\n"
)
_VARIABLE = "GRUB_CMDLINE_LINUX_DEFAULT"
_ASSIGNMENT = re.compile(rf'^{_VARIABLE}="\${{{_VARIABLE}}} ([^"$`\\]*)"$', re.MULTILINE)
_KERNEL_LINE = re.compile(r"^\s*linux(?:16|efi)?\s+\S+\s*(.*)$", re.MULTILINE)


class GrubError(Exception):
    """The boot loader's files cannot be read or made; the text says which, why and what to do."""


@dataclass(frozen=True)
class Roots:
    """Where the host's files are; tests put trees of their own there."""

    etc: str = "/etc"
    usr: str = "/usr"
    boot: str = "/boot"
    proc: str = "/proc"
    sys: str = "/sys"

    @property
    def drop_in(self) -> str:
        """Return the path of our drop-in."""
        return os.path.join(self.etc, "default/grub.d", FILE_NAME)

    @property
    def config(self) -> str:
        """Return the path of the file that GRUB reads at boot."""
        return os.path.join(self.boot, "grub/grub.cfg")

    @property
    def update(self) -> str:
        """Return the path of the program that makes it."""
        return os.path.join(self.usr, "sbin/update-grub")


def unsupported(roots: Roots) -> str:
    """Return why arguments cannot be set on this host, or ''."""
    try:
        script = files.read_text_or_none(os.path.join(roots.usr, "sbin/grub-mkconfig")) or ""
    except files.FilesError:
        script = ""
    if os.access(roots.update, os.X_OK) and "default/grub.d" in script:
        return ""
    entries = os.path.join(roots.boot, "loader/entries")
    if os.path.exists(os.path.join(roots.usr, "sbin/grubby")) or os.path.isdir(entries):
        return (
            f"this host keeps its boot entries in {entries}, and drop-ins for GRUB have no effect on them; "
            "set the arguments with grubby or kernelstub"
        )
    return (
        f"there is no {roots.update} of Debian's or Ubuntu's GRUB that reads {os.path.dirname(roots.drop_in)}; "
        "set the arguments where this host's kernel is started"
    )


def _text(path: str) -> str | None:
    try:
        return files.read_text_or_none(path)
    except files.FilesError as exc:
        raise GrubError(str(exc)) from exc


def running(roots: Roots) -> tuple[Argument, ...]:
    """Return the arguments that the running kernel was started with. Raises GrubError."""
    text = _text(os.path.join(roots.proc, "cmdline"))
    if text is None:
        raise GrubError(f"{roots.proc}/cmdline: is not there; is /proc mounted?")
    return cmdline.parse(text)


def configured(roots: Roots) -> tuple[Argument, ...] | None:
    """Return the arguments of the first entry that GRUB would boot, None where that can't be seen. Raises GrubError."""
    found = _KERNEL_LINE.search(_text(roots.config) or "")
    return None if found is None else cmdline.parse(found.group(1))


def read_drop_in(roots: Roots) -> tuple[str | None, tuple[Argument, ...]]:
    """Return the text of our drop-in (None: there is none) and the arguments in it. Raises GrubError."""
    try:
        files.capture(roots.drop_in)
    except files.FilesError as exc:
        raise GrubError(str(exc)) from exc
    text = _text(roots.drop_in)
    lines = _ASSIGNMENT.findall(text or "")
    return text, tuple(argument for line in lines for argument in cmdline.parse(line))


def render(arguments: Iterable[Argument]) -> str | None:
    """Return the text of a drop-in that adds arguments (whose characters were checked), None when there are none."""
    shown = " ".join(str(argument) for argument in arguments)
    return f'{_HEADER}{_VARIABLE}="${{{_VARIABLE}}} {shown}"\n' if shown else None
