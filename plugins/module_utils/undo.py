# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How each kind of journal entry is taken back. A handler accepts that there is nothing (left) to undo."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, recorded_process, undo_places
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Entry, Handler, Outcome
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cgroup_lines,
    cgroup_restore,
    cgroup_values,
    knob,
    mounts,
    netns,
    netns_value,
    processes,
    procfs,
    resctrl,
    resctrl_undo,
    swap,
)

SUBTREE_CONTROL = "cgroup.subtree_control"
_APT_TIMEOUT_S = 900.0
_GRUB_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Undo:
    """What undoing may do, and with what; roots and the command runner are injected for tests."""

    remove_packages: bool = False
    packages: tuple[str, ...] = ()
    term_deadline_s: float = 10.0
    proc_root: str = procfs.PROC_ROOT
    netns_root: str = netns.RUN_ROOT
    run: Callable[..., commands.Result] = commands.run

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handler of every kind; a foreseeable failure becomes an outcome, so that the others go on."""
        ahead = undo_places.Foreseen()
        table: dict[str, Callable[[Entry, bool], Outcome]] = {
            "file": lambda entry, check: ahead.noted(entry, undo_file(entry, check)),
            "value": self._value,
            "line": undo_line,
            "directory": lambda entry, check: undo_places.undo_directory(entry, check, ahead),
            "cgroup": lambda entry, check: undo_places.undo_cgroup(entry, check, ahead, self.proc_root),
            "process": lambda entry, check: self._process(entry, check, ahead),
            "netns": self._netns,
            "link": self._link,
            "package": self._package,
            "unit": self._unit,
            "resctrl": lambda entry, check: resctrl_undo.undo_resctrl(entry, check, self.proc_root),
            "mount": lambda entry, check: resctrl_undo.undo_mount(entry, check, self.proc_root, self.run),
            "swap": self._swap,
            "grub": self._grub,
        }
        return {kind: _guarded(handler) for kind, handler in table.items()}

    def settle(self, failed: Sequence[Entry]) -> None:
        """Bring values of control groups back together that could not be brought back one by one."""
        found = [(entry.target, entry.previous) for entry in failed if entry.kind == "value"]
        cgroup_restore.together([(path, text) for path, text in found if isinstance(text, str)], self.proc_root)

    def _value(self, entry: Entry, check: bool) -> Outcome:
        owned = netns_value.parse(entry.previous)
        if owned is None:
            return undo_value(entry, check)
        wanted, space = owned
        prefix = netns_value.entering(space, self.proc_root, self.netns_root)
        if prefix is None:
            return _undone(f"{entry.target}: is gone with its network namespace {space.name}".rstrip())
        if not prefix:
            return undo_value(replace(entry, previous=wanted), check)
        if check:
            found = left = netns_value.read(entry.target, prefix, self.run)
        else:
            found, left = netns_value.put_back(entry.target, wanted, prefix, self.run)
        if not check and not knob.holds(left, wanted):
            return _failed(f"{entry.target}: wrote {wanted}, read {left}; set it by hand")
        return _undone(f"{entry.target}: {found} put back to {wanted} in network namespace {space.name}".rstrip())

    def _swap(self, entry: Entry, check: bool) -> Outcome:
        was_on = isinstance(entry.previous, Mapping)
        is_on = any(area.path == entry.target for area in swap.areas(self.proc_root))
        if was_on and not is_on and not os.path.exists(entry.target):
            return _undone(f"swap {entry.target}: is gone")
        if not check and was_on != is_on:
            if was_on:
                swap.switch_on(entry.target, entry.previous.get("priority"), self.run)
            else:
                swap.switch_off(entry.target, self.run)
        return _undone(f"swap {entry.target}: {'in use again' if was_on else 'not in use'}")

    def _grub(self, entry: Entry, check: bool) -> Outcome:
        argv = entry.previous if isinstance(entry.previous, list) else []
        if not argv or not os.path.exists(argv[0]):
            return _undone(
                f"{entry.target}: is not generated any more, as there is no {argv[0] if argv else 'program'}"
            )
        if not check:
            self.run(argv, timeout_s=_GRUB_TIMEOUT_S)
        return _undone(f"{entry.target}: generated anew")

    def _process(self, entry: Entry, check: bool, ahead: undo_places.Foreseen) -> Outcome:
        recorded = recorded_process.from_entry(entry.target, entry.previous)
        members = recorded.members(self.proc_root)
        if not members:
            return _undone(f"process {entry.target}: has ended already")
        ahead.pids.update(member.pid for member in members)
        if not check:
            recorded_process.end(recorded, self.term_deadline_s, self.proc_root)
        return _undone(f"process {entry.target}: ended {', '.join(str(member.pid) for member in members)}")

    def _netns(self, entry: Entry, check: bool) -> Outcome:
        if not os.path.lexists(netns.path(entry.target, self.netns_root)):
            return _undone(f"network namespace {entry.target}: not there")
        inside = netns.pids(entry.target, self.netns_root, self.proc_root)
        if inside and not check:
            shown = ", ".join(str(pid) for pid in inside)
            return _failed(f"network namespace {entry.target}: processes {shown} are in it; end them and undo again")
        if not check:
            self.run(["ip", "netns", "delete", entry.target])
        return _undone(f"network namespace {entry.target}: deleted")

    def _link(self, entry: Entry, check: bool) -> Outcome:
        space, slash, name = entry.target.rpartition("/")
        if slash and not os.path.lexists(netns.path(space, self.netns_root)):
            return _undone(f"interface {entry.target}: gone with its namespace")
        ip = ["ip", "-n", space] if slash else ["ip"]
        if self.run([*ip, "link", "show", "dev", name], check=False).status != 0:
            return _undone(f"interface {entry.target}: not there")
        if not check:
            self.run([*ip, "link", "delete", "dev", name])
        return _undone(f"interface {entry.target}: deleted")

    def _package(self, entry: Entry, check: bool) -> Outcome:
        names = entry.previous if isinstance(entry.previous, list) else [entry.target]
        if not self.remove_packages:
            return Outcome("kept", f"packages {', '.join(names)}: kept; set remove_packages to remove them")
        if not check:
            # All at once: one by one, a package would take those with it that depend on it, and each costs a second.
            wanted = sorted({*names, *self.packages})
            query = self.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}\n", *wanted], check=False)
            there = [line.split()[0] for line in query.stdout.splitlines() if line.split()[1:2] not in (["un"], [])]
            if there:
                argv = ["apt-get", "purge", "-y", "-q", *there]
                self.run(argv, timeout_s=_APT_TIMEOUT_S, environment={"DEBIAN_FRONTEND": "noninteractive"})
        return _undone(f"packages {', '.join(names)}: removed")

    def _unit(self, entry: Entry, check: bool) -> Outcome:
        before = entry.previous if isinstance(entry.previous, Mapping) else {}
        shown = self.run(["systemctl", "show", "--property=LoadState", "--value", entry.target], check=False)
        if shown.status == 0 and shown.stdout.strip() == "not-found":
            return _undone(f"unit {entry.target}: not there")
        if not check:
            for key, yes, no in (("enabled", "enable", "disable"), ("active", "start", "stop")):
                self.run(["systemctl", yes if before.get(key) else no, entry.target])
        return _undone(f"unit {entry.target}: {'put back' if before else 'stopped and disabled'}")


def _guarded(handler: Callable[[Entry, bool], Outcome]) -> Handler:
    def call(entry: Entry, check: bool) -> Outcome:
        try:
            return handler(entry, check)
        except (
            files.FilesError,
            commands.CommandError,
            cgroup.CgroupError,
            mounts.MountsError,
            netns.NetnsError,
            processes.ProcessError,
            procfs.ProcError,
            resctrl.ResctrlError,
            swap.SwapError,
        ) as exc:
            return _failed(str(exc))
        except OSError as exc:
            return _failed(f"{exc.filename or entry.target}: {exc.strerror}; put it back by hand")

    return call


def _undone(text: str) -> Outcome:
    return Outcome("undone", text)


def _failed(text: str) -> Outcome:
    return Outcome("failed", text)


def undo_file(entry: Entry, check: bool) -> Outcome:
    """Put a file back as it was, or remove it when there was none."""
    if files.capture(entry.target) == entry.previous:
        return _undone(f"{entry.target}: is as it was")
    if not check:
        files.restore(entry.target, entry.previous)
    return _undone(f"{entry.target}: {'removed' if entry.previous is None else 'put back'}")


def undo_value(entry: Entry, check: bool) -> Outcome:
    """Write the previous text into a kernel file; ``note`` is what we wrote last, to notice that others wrote too."""
    if not isinstance(entry.previous, str):
        return _failed(f"{entry.target}: its previous value was not recorded; set it by hand")
    current = files.read_text_or_none(entry.target)
    if current is None:
        return _undone(f"{entry.target}: is gone, with its value")
    wanted, found = entry.previous.strip(), current.strip()
    if os.path.basename(entry.target) == SUBTREE_CONTROL:
        return _undo_subtree_control(entry.target, wanted, found, check)
    if knob.holds(found, wanted):
        return _undone(f"{entry.target}: is {wanted} as it was")
    ours = not entry.note.strip() or knob.holds(found, entry.note)
    foreign = "" if ours else f", although someone else had set it to {found}"
    if not check:
        files.write_kernel(entry.target, wanted)
        left = files.read_text(entry.target).strip()
        if not knob.holds(cgroup_values.comparable(os.path.basename(entry.target), left), wanted):
            return _failed(f"{entry.target}: wrote {wanted}, read {left}; set it by hand")
    return _undone(f"{entry.target}: {found} put back to {wanted}{foreign}")


def undo_line(entry: Entry, check: bool) -> Outcome:
    """Bring one line back in a file that has a line for each device; ``previous`` is what must be written for that."""
    path, address = cgroup_lines.split_target(entry.target)
    if not isinstance(entry.previous, str):
        return _failed(f"{entry.target}: its previous value was not recorded; set it by hand")
    content = files.read_text_or_none(path)
    if content is None:
        return _undone(f"{path}: is gone, with its value")
    found, wanted = cgroup_lines.read(content, address), cgroup_lines.read(entry.previous, address)
    if cgroup_lines.same(found, wanted):
        return _undone(f"{path}: {address} is {wanted} as it was")
    if not check:
        files.write_kernel(path, entry.previous)
        left = cgroup_lines.read(files.read_text(path), address)
        if not cgroup_lines.same(left, wanted):
            return _failed(f"{path}: wrote {entry.previous}, read {left}; set it by hand")
    ours = cgroup_lines.read(entry.note, address)
    foreign = "" if ours is None or cgroup_lines.same(found, ours) else ", although someone else had set it"
    return _undone(f"{path}: {address} {found} put back to {wanted}{foreign}")


def _undo_subtree_control(path: str, wanted: str, found: str, check: bool) -> Outcome:
    """Disable what we enabled: the file is a set that is written as differences (cgroup-v2.rst)."""
    extra = [name for name in found.split() if name not in wanted.split()]
    if extra and not check:
        files.write_kernel(path, " ".join(f"-{name}" for name in extra))
    return _undone(f"{path}: {'disabled ' + ' '.join(extra) if extra else 'is as it was'}")


def describe(entry: Entry) -> dict[str, Any]:
    """Return what a report shows of an entry."""
    return {"id": entry.id, "kind": entry.kind, "target": entry.target, "by": entry.by, "time": entry.time}
