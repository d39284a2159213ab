# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the guests that are there to those that are wanted: decide for each, then make, start or end it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.lab import boot, command_line, guest, ssh
from ansible_collections.colocation.testbed.plugins.module_utils.lab.guest import Guest, Machine, Paths

BY = "lab"
MAKE = "make"
START = "start"
END = "remove"
ACCESS = "access"


@dataclass(frozen=True)
class Lab:
    """The guests of one state directory."""

    state_dir: str
    machine: Machine
    guests: tuple[Guest, ...]

    @property
    def access(self) -> ssh.Access:
        """How they are reached."""
        return ssh.Access.of(self.state_dir)

    def paths(self, name: str) -> Paths:
        """Return the files of a guest."""
        return Paths.of(self.state_dir, name)


@dataclass(frozen=True)
class Action:
    """What has to be done with one guest, and why, in words."""

    kind: str
    name: str
    text: str


def present(state_dir: str) -> tuple[str, ...]:
    """Return the names of the guests that were made, whether they run or not."""
    folder = os.path.join(state_dir, guest.GUESTS)
    return tuple(sorted(os.listdir(folder))) if os.path.isdir(folder) else ()


def plan(lab: Lab) -> tuple[Action, ...]:
    """Return what has to be done, in order; reads only. Raises ProcessError, FilesError."""
    wanted = {item.name for item in lab.guests}
    there = present(lab.state_dir)
    actions = [Action(END, name, f"remove guest {name}") for name in there if name not in wanted]
    for item in lab.guests:
        paths = lab.paths(item.name)
        if item.name not in there:
            actions.append(Action(MAKE, item.name, f"make guest {item.name}"))
        elif _recorded_digest(paths) != _wanted_digest(lab, item):
            actions.append(Action(MAKE, item.name, f"make guest {item.name} anew: its options or image have changed"))
        elif boot.pid(paths) is None:
            actions.append(Action(START, item.name, f"start guest {item.name}"))
    if not actions and not ssh.is_written(lab.access, lab.guests, lab.machine.namespace):
        actions.append(Action(ACCESS, "", "write keys and configuration for ssh"))
    return tuple(actions)


def _recorded_digest(paths: Paths) -> str | None:
    return str(files.read_json(paths.record).get("digest")) if os.path.exists(paths.record) else None


def _wanted_digest(lab: Lab, item: Guest) -> str | None:
    """Return the digest of a guest, or None where its keys are missing, as they are in its second disk."""
    if not os.path.exists(f"{lab.access.host_key(item.name)}.pub"):
        return None
    return command_line.digest(item, lab.machine, lab.paths(item.name), _seed(lab, item))


def _seed(lab: Lab, item: Guest) -> bytes:
    return guest.seed(item, lab.machine, ssh.keys(lab.access, item.name))


def end_surplus(lab: Lab, actions: Sequence[Action], book: journal.Journal) -> None:
    """End the guests that must not run as they are, before the network changes under them."""
    if any(action.kind != ACCESS for action in actions):
        ssh.close_shared(lab.access)
    for action in actions:
        paths = lab.paths(action.name)
        if action.kind != ACCESS and os.path.isdir(paths.directory):
            boot.end(paths)
        if action.kind == END:
            _remove(paths, book)
            for path in (lab.access.host_key(action.name), f"{lab.access.host_key(action.name)}.pub"):
                files.restore(path, None)


def _remove(paths: Paths, book: journal.Journal) -> None:
    if os.path.isdir(paths.directory):
        shutil.rmtree(paths.directory)
    book.forget("process", paths.pid)


def prepare(lab: Lab, book: journal.Journal) -> None:
    """Journal and make the directories, and what ssh needs."""
    places = (os.path.join(lab.state_dir, guest.GUESTS), lab.access.directory)
    book.record_many([journal.Change("directory", place, {"tree": True}) for place in places], BY)
    os.makedirs(places[0], mode=0o700, exist_ok=True)
    ssh.make_keys(lab.access, [item.name for item in lab.guests])
    ssh.write(lab.access, lab.guests, lab.machine.namespace)


def start(lab: Lab, actions: Sequence[Action], book: journal.Journal) -> None:
    """Make and start the guests of the plan. All boot at the same time. Raises BootError, FilesError, JournalError."""
    by_name = {item.name: item for item in lab.guests}
    for action in actions:
        if action.kind not in (MAKE, START):
            continue
        item, paths = by_name[action.name], lab.paths(action.name)
        book.record("process", paths.pid, None, BY)
        if action.kind == MAKE:
            _make(lab, item)
        files.write_atomic(paths.launcher, command_line.launcher(lab.machine, sys.executable), 0o700)
        boot.launch(command_line.argv(item, lab.machine, paths), paths, item.cpus)


def _make(lab: Lab, item: Guest) -> None:
    paths, seed = lab.paths(item.name), _seed(lab, item)
    if os.path.isdir(paths.directory):
        shutil.rmtree(paths.directory)
    os.makedirs(paths.directory, mode=0o700)
    files.write_atomic(paths.seed, seed, 0o600)
    disk_argv = command_line.disk(lab.machine, paths)
    if disk_argv:
        commands.run(disk_argv)
    # Last: a guest that was left half made has no record, and is made again.
    digest = command_line.digest(item, lab.machine, paths, seed)
    files.write_json(paths.record, {"digest": digest, "image": lab.machine.image})


def remove_all(state_dir: str, book: journal.Journal) -> None:
    """End all guests and remove what belongs to them. Raises ProcessError, FilesError, JournalError."""
    access = ssh.Access.of(state_dir)
    ssh.close_shared(access)
    for name in present(state_dir):
        boot.end(Paths.of(state_dir, name))
    places = (os.path.join(state_dir, guest.GUESTS), access.directory)
    for place in places:
        if os.path.isdir(place):
            shutil.rmtree(place)
    processes = [("process", Paths.of(state_dir, name).pid) for name in _journalled(state_dir, book)]
    book.forget_many([*processes, *(("directory", place) for place in places)])


def _journalled(state_dir: str, book: journal.Journal) -> list[str]:
    folder = os.path.join(state_dir, guest.GUESTS)
    targets = [entry.target for entry in book.entries() if entry.kind == "process"]
    return [os.path.basename(os.path.dirname(item)) for item in targets if item.startswith(f"{folder}/")]
