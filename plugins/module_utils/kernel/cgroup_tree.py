# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control groups as they are and as they will be: reads the kernel's files, keeps planned changes on top of them."""

from __future__ import annotations

import os

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_values import KernelFile


class Tree:
    """A view of group directories in which planning can make changes that the kernel doesn't see.

    So the same code predicts (check mode, diff) and decides what to do, and cannot drift apart.
    """

    def __init__(self) -> None:
        """Start from what is there; nothing is planned yet."""
        self._read: dict[str, str | None] = {}
        self._listed: dict[str, frozenset[str]] = {}
        self._planned: dict[str, str | None] = {}
        self._made: set[str] = set()
        self._removed: set[str] = set()
        self._enabled: set[tuple[str, str]] = set()
        self._probed: dict[tuple[str, str], str | None] = {}

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
                text = files.read_kernel(path)
            except files.FilesError as exc:
                # A group that vanishes between listing and reading answers ENODEV.
                if not os.path.isdir(os.path.dirname(path)):
                    text = None
                else:
                    raise cgroup.CgroupError(str(exc)) from exc
            self._read[path] = None if text is None else text.strip()
        return self._read[path]

    def names(self, directory: str) -> frozenset[str]:
        """Return the names of the files of a group as the kernel has it; none when there is no such group."""
        if directory not in self._listed:
            try:
                self._listed[directory] = frozenset(os.listdir(directory))
            except OSError:
                self._listed[directory] = frozenset()
        return self._listed[directory]

    def text(self, directory: str, file: KernelFile, mount: str) -> str | None:
        """Return the content of a group's file as it will be, None when this kernel lacks the file.

        For a directory that is still to be made, that is a new group's content if other groups have the file.
        """
        path = f"{directory}/{file.name}"
        if path in self._planned:
            return self._planned[path]
        if directory in self._made:
            return file.initial if self._known(mount, file) else None
        found = self.real(path)
        if found is None and (os.path.dirname(directory), _controller(file.name)) in self._enabled:
            return file.initial if self._known(mount, file) else None
        return found

    def write(self, directory: str, name: str, text: str) -> None:
        """Plan a file's content."""
        self._planned[f"{directory}/{name}"] = text

    def untouched(self) -> Tree:
        """Return a view without the plans, of what has been read for them."""
        found = Tree()
        found._read = self._read
        return found

    def _known(self, mount: str, file: KernelFile) -> bool:
        """Tell whether groups have a file on this kernel, by some existing group or by the file's sign.

        The hierarchy's root is no example: it lacks many files. Where nothing tells, groups are taken to have it.
        """
        example = self._example(mount, _controller(file.name))
        if example is not None:
            return file.name in self.names(example)
        return not file.sign or os.path.exists(f"{mount}/{file.sign}")

    def guessed(self, mount: str, file: KernelFile) -> bool:
        """Tell whether no group and no sign could be asked about a file."""
        return self._example(mount, _controller(file.name)) is None and not file.sign

    def _example(self, mount: str, controller: str) -> str | None:
        """Return some group that has a controller's files; on v2 many groups don't have it."""
        place = (mount, controller)
        if place not in self._probed:
            found = (f"{mount}/{name}" for name in cgroup.children(mount))
            self._probed[place] = next((path for path in found if self._has(path, controller)), None)
        return self._probed[place]

    def _has(self, directory: str, controller: str) -> bool:
        enabled = self.real(f"{directory}/cgroup.controllers")
        return enabled is None or controller in enabled.split()


def _controller(name: str) -> str:
    return name.split(".", 1)[0]
