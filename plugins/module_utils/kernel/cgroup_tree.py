# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control groups as they are and as they will be: reads the kernel's files, keeps planned changes on top of them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_keys import KernelFile


class Tree:
    """A view of group directories in which planning can make changes that the kernel doesn't see.

    So the same code predicts (check mode, diff) and decides what to do, and cannot drift apart.
    """

    def __init__(self) -> None:
        """Start from what is there; nothing is planned yet."""
        self._read: dict[str, str | None] = {}
        self._planned: dict[str, str | None] = {}
        self._made: set[str] = set()
        self._removed: set[str] = set()
        self._enabled: set[tuple[str, str]] = set()
        self._probed: dict[str, str | None] = {}

    def is_new(self, directory: str) -> bool:
        """Tell whether the directory is planned to be made."""
        return directory in self._made

    def exists(self, directory: str) -> bool:
        """Tell whether the directory is there or will be."""
        return directory in self._made or (directory not in self._removed and os.path.isdir(directory))

    def make(self, directory: str) -> None:
        """Plan a new directory."""
        self._made.add(directory)

    def remove(self, directory: str) -> None:
        """Plan the removal of a directory."""
        self._removed.add(directory)

    def enable(self, directory: str, controller: str) -> None:
        """Plan that the directory's children get a controller's files (v2)."""
        self._enabled.add((directory, controller))

    def enabled(self, directory: str, controller: str) -> bool:
        """Tell whether enabling a controller for the directory's children is planned."""
        return (directory, controller) in self._enabled

    def real(self, path: str) -> str | None:
        """Return the content of a file as the kernel has it, without its line end; None when there is no such file."""
        if path not in self._read:
            try:
                text = files.read_text_or_none(path)
            except files.FilesError as exc:
                # A group that vanishes between listing and reading answers ENODEV.
                if not os.path.isdir(os.path.dirname(path)):
                    text = None
                else:
                    raise cgroup.CgroupError(str(exc)) from exc
            self._read[path] = None if text is None else text.strip()
        return self._read[path]

    def text(self, directory: str, file: KernelFile, mount: str) -> str | None:
        """Return the content of a group's file as it will be, None when this kernel lacks the file.

        For a directory that is still to be made, that is a new group's content if other groups have the file.
        """
        path = f"{directory}/{file.name}"
        if path in self._planned:
            return self._planned[path]
        if directory in self._made:
            return file.initial if self._known(mount, file.name) else None
        found = self.real(path)
        if found is None and (os.path.dirname(directory), _controller(file.name)) in self._enabled:
            return file.initial
        return found

    def write(self, directory: str, name: str, text: str) -> None:
        """Plan a file's content."""
        self._planned[f"{directory}/{name}"] = text

    def planned(self) -> Mapping[str, str | None]:
        """Return all planned contents by path."""
        return dict(self._planned)

    def _known(self, mount: str, name: str) -> bool:
        """Tell whether groups have a file on this kernel, by some existing group; assumed when there is none to ask.

        The hierarchy's root is no example: it lacks many files. Nor is a v2 group without the controller.
        """
        if mount not in self._probed:
            names = cgroup.children(mount)
            self._probed[mount] = f"{mount}/{names[0]}" if names else None
        example = self._probed[mount]
        if example is None or os.path.exists(f"{example}/{name}"):
            return True
        enabled = self.real(f"{example}/cgroup.controllers")
        return enabled is not None and _controller(name) not in enabled.split()


def _controller(name: str) -> str:
    return name.split(".", 1)[0]
