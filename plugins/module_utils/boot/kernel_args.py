# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel arguments: what shall be, what the drop-in, GRUB's configuration and the running kernel have; making it so."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal, own_changes, quantity
from ansible_collections.colocation.testbed.plugins.module_utils.boot import cmdline, grub
from ansible_collections.colocation.testbed.plugins.module_utils.boot.cmdline import Argument
from ansible_collections.colocation.testbed.plugins.module_utils.boot.grub import GrubError, Roots

BY = "kernel_args"
Run = Callable[..., commands.Result]


@dataclass(frozen=True)
class Wanted:
    """An argument that shall be there, or shall not be added by us any more."""

    argument: Argument
    present: bool


@dataclass(frozen=True)
class Row:
    """One argument: its values on the running kernel, in our drop-in before, and in GRUB's first entry before."""

    wanted: Wanted
    running: tuple[str | None, ...]
    drop_in: str | None
    configured: tuple[str | None, ...] | None
    reboot: bool
    why: str = ""


@dataclass(frozen=True)
class Plan:
    """What is to be written, and whether GRUB's configuration has to be made anew."""

    rows: tuple[Row, ...]
    before: str | None
    text: str | None
    stale: bool
    arguments: tuple[Argument, ...]
    unsupported: str
    warnings: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Tell whether anything is to be done."""
        return self.text != self.before or self.stale

    @property
    def reboot(self) -> bool:
        """Tell whether the running kernel differs from what shall be."""
        return any(row.reboot for row in self.rows)


def parse(raw: list[Mapping[str, Any]], sys_root: str) -> tuple[Wanted, ...]:
    """Return the wanted arguments. Raises CmdlineError with a sentence for each that is refused, all at once."""
    found: dict[str, Wanted] = {}
    problems = []
    for index, item in enumerate(raw):
        try:
            wanted = _wanted(item, sys_root)
        except cmdline.CmdlineError as exc:
            problems.append(f"arguments[{index}]: {exc}")
            continue
        if found.setdefault(wanted.argument.name.replace("-", "_"), wanted) is not wanted:
            problems.append(f"arguments[{index}]: {item['name']} is in the list twice; write one entry with one value")
    if problems:
        raise cmdline.CmdlineError("; ".join(problems))
    return tuple(found.values())


def _wanted(item: Mapping[str, Any], sys_root: str) -> Wanted:
    if item["state"] == "absent":
        cmdline.check_name(item["name"])
        return Wanted(Argument(item["name"], None), False)
    argument = Argument(item["name"], _value(item.get("value")))
    cmdline.check(argument, sys_root)
    return Wanted(argument, True)


def _value(raw: Any) -> str | None:
    if raw is None:
        return None
    if isinstance(raw, bool) or not isinstance(raw, (str, int)):
        raise cmdline.CmdlineError(
            f"the value {raw!r} is {quantity.kind_of(raw)}, not a text or a whole number; write it in quotes"
        )
    return str(raw)


def _row(item: Wanted, state: _State) -> Row:
    name = item.argument.name
    running, ours = cmdline.values(state.running, name), cmdline.values(state.drop_in, name)
    configured = None if state.configured is None else cmdline.values(state.configured, name)
    if item.present:
        reboot = not cmdline.satisfied(state.running, item.argument)
        why = ""
    else:
        others = running if configured is None else configured
        elsewhere = len(others) > len(ours)
        reboot = bool(running) and not elsewhere
        why = "it comes from elsewhere, which is not edited; remove it there" if elsewhere else ""
    shown = None if configured is None else tuple(configured)
    return Row(item, tuple(running), (ours or [None])[-1], shown, reboot, why)


@dataclass(frozen=True)
class _State:
    """The three places that have arguments, as they are now."""

    running: tuple[Argument, ...]
    drop_in: tuple[Argument, ...]
    configured: tuple[Argument, ...] | None


def _next_drop_in(wanted: tuple[Wanted, ...], now: tuple[Argument, ...]) -> tuple[Argument, ...]:
    """Return the arguments of our drop-in after the change; those that nobody asks about stay."""
    left = list(now)
    for item in wanted:
        name = item.argument.name
        old = cmdline.values(left, name)
        index = next((index for index, argument in enumerate(left) if argument.named(name)), len(left))
        left = [argument for argument in left if not argument.named(name)]
        if item.present:
            value = cmdline.merged(name, old[-1] if old else None, item.argument.value)
            left.insert(index, Argument(name, value))
    return tuple(left)


def plan(wanted: tuple[Wanted, ...], roots: Roots, written: Mapping[str, str]) -> Plan:
    """Compare. ``written`` are the fingerprints of our files as the journal notes them. Raises GrubError."""
    text, drop_in = grub.read_drop_in(roots)
    state = _State(grub.running(roots), drop_in, grub.configured(roots))
    rows = tuple(_row(item, state) for item in wanted)
    why = grub.unsupported(roots)
    after = _next_drop_in(wanted, drop_in)
    if why and all(not row.reboot for row in rows):
        after = drop_in
    new_text = text if after == drop_in else grub.render(after)
    absent = [item for item in wanted if not item.present]
    stale = state.configured is not None and not (
        all(cmdline.satisfied(state.configured, argument) for argument in after)
        and all(row.why or not row.configured for row in rows if row.wanted in absent)
    )
    warnings = [f"{row.wanted.argument.name}: {row.why}" for row in rows if row.why]
    by_hand = own_changes.edited(roots.drop_in, text, written)
    warnings += [by_hand] if by_hand else []
    return Plan(rows, text, new_text, stale and not why, after, why, tuple(warnings))


def _changes(made: Plan, roots: Roots) -> list[journal.Change]:
    """Return the journal's entries; undoing goes backwards, so that GRUB's configuration is made last."""
    return [journal.Change("grub", roots.config, [roots.update]), *own_changes.rewriting(roots.drop_in, made.text)]


def apply(made: Plan, roots: Roots, book: journal.Journal, run: Run = commands.run) -> None:
    """Write the drop-in and make GRUB's configuration anew; both or none.

    Raises GrubError (taken back), or JournalError (nothing was changed).
    """
    changes = _changes(made, roots)
    before = book.entries()
    book.record_many(changes, BY)
    try:
        own_changes.rewrite(roots.drop_in, made.text)
        run([roots.update], timeout_s=grub.UPDATE_TIMEOUT_S)
        _read_back(made, roots)
    except (commands.CommandError, files.FilesError, GrubError) as exc:
        _take_back(made, roots, run, exc)
        own_changes.forget_failed(book, changes, before)
        raise GrubError(f"{exc}; what came before it was taken back") from exc


def _read_back(made: Plan, roots: Roots) -> None:
    found = grub.configured(roots)
    lacking = [item for item in made.arguments if found is not None and not cmdline.satisfied(found, item)]
    if lacking:
        raise GrubError(
            f"{roots.config}: lacks {lacking[0]} in its first entry after {roots.update}; look for another file in "
            f"{os.path.dirname(roots.drop_in)} that sets GRUB_CMDLINE_LINUX_DEFAULT after ours"
        )


def _take_back(made: Plan, roots: Roots, run: Run, cause: Exception) -> None:
    try:
        own_changes.rewrite(roots.drop_in, made.before)
        run([roots.update], timeout_s=grub.UPDATE_TIMEOUT_S, check=not isinstance(cause, commands.CommandError))
    except (commands.CommandError, files.FilesError) as exc:
        raise GrubError(f"{cause}; could not be taken back: {exc}; run reset") from exc
