# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out a plan: journalled first, every value read back, all or nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal, own_changes
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import interrupts, knob, netns_value, swap
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.plan import Plan, Rewrite, Write
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.settings import Roots, TuningError
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.swaps import Switch

BY = "host_tuning"


@dataclass(frozen=True)
class Tools:
    """The host's files, its journal, and what runs programs; tests bring their own."""

    roots: Roots
    book: journal.Journal
    run: swap.Run = commands.run


def _value_change(path: str, text: str, note: str, roots: Roots, space: netns_value.Space | None) -> journal.Change:
    own = space is not None and path.startswith(os.path.join(roots.proc, "sys/net/"))
    return journal.Change("value", path, netns_value.recorded(text, space) if own and space else text, note)


def _note(write: Write) -> str:
    """Return what undoing compares the file's text with; the kernel spells a mask in its own width."""
    if write.target.form == knob.MASK:
        return ""
    return write.target.text if write.restore[0] == write.target.path else "0"


def _switch_change(item: Switch) -> journal.Change:
    return journal.Change("swap", item.path, None if item.area is None else {"priority": item.area.priority})


def changes(plan: Plan, roots: Roots) -> list[journal.Change]:
    """Return the journal's entries for a plan.

    Undoing goes backwards, and values must be undone in the order in which they are set: a governor before the energy
    preference that it allows, swap areas by falling priority. So they are recorded last first. What the kernel changes
    along with a value is looked at when all values are back.
    """
    space = netns_value.current(roots.proc, roots.netns)
    found: list[journal.Change] = []
    for item in plan.files:
        found += own_changes.rewriting(item.path, item.text)
    found += [_switch_change(item) for item in reversed(plan.switches)]
    along = [item for write in plan.writes for item in write.along]
    found += [_value_change(path, text, "", roots, space) for path, text in along]
    found += [_value_change(*write.restore, _note(write), roots, space) for write in reversed(plan.writes)]
    return found


def _switch(item: Switch, on: bool, tools: Tools) -> None:
    if on:
        swap.switch_on(item.path, item.area.priority if item.area else None, tools.run)
    else:
        swap.switch_off(item.path, tools.run)
    if on != any(area.path == item.path for area in swap.areas(tools.roots.proc)):
        raise swap.SwapError(
            f"swap {item.path}: is {'not ' if on else 'still '}in use after switching; see the kernel log"
        )


class _Batch:
    """What was done so far, so that it can be taken back."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.writes: list[Write] = []
        self.switches: list[Switch] = []
        self.files: list[Rewrite] = []
        self.refused: dict[str, str] = {}

    def carry_out(self, plan: Plan) -> None:
        for write in plan.writes:
            self._write(write)
        for switch in plan.switches:
            _switch(switch, switch.on, self.tools)
            self.switches.append(switch)
        for item in plan.files:
            self.files.append(item)
            own_changes.rewrite(item.path, item.text)
        # A later value may have changed an earlier one, and the kernel may have taken back what it had accepted.
        for write in self.writes:
            found = knob.read(write.target.path)
            form, text = write.target.form, write.target.text
            if found is None or knob.normal(form, found) != knob.normal(form, text):
                raise TuningError(f"{write.target.path}: wrote {text!r}, read {found!r} when all values were written")

    def _write(self, write: Write) -> None:
        target = write.target
        try:
            # A refused write may have been taken in part, so it is taken back too.
            self.writes.append(write)
            knob.write_checked(target.path, target.form, target.text)
        except knob.KnobError as exc:
            if not target.refusable or exc.number not in interrupts.REFUSALS:
                raise
            self.writes.remove(write)
            self.refused[target.path] = str(exc)

    def take_back(self) -> list[str]:
        """Put back what was done, and return a sentence for each thing that could not be."""
        failed: list[str] = []
        for item in reversed(self.files):
            with self._noting(item.path, failed):
                own_changes.rewrite(item.path, item.before)
        for switch in self.switches:
            with self._noting(switch.path, failed):
                _switch(switch, not switch.on, self.tools)
        for write in self.writes:
            with self._noting(write.restore[0], failed):
                text = knob.read(write.target.path)
                if text is not None and text != write.before:
                    knob.write(*write.restore)
        for path, before in [item for write in self.writes for item in write.along]:
            with self._noting(path, failed):
                text = knob.read(path)
                if text is not None and text.strip() != before:
                    knob.write(path, before)
        return failed

    @contextlib.contextmanager
    def _noting(self, path: str, failed: list[str]) -> Iterator[None]:
        try:
            yield
        except (files.FilesError, knob.KnobError, swap.SwapError) as exc:
            failed.append(f"{path} ({exc})")


def apply(plan: Plan, tools: Tools) -> dict[str, str]:
    """Carry out a plan; all or nothing. Returns the files that their device refused, each with the reason.

    Raises TuningError (taken back), or JournalError (nothing was changed). What cannot be taken back stays in the
    journal and is named in the error.
    """
    wanted = changes(plan, tools.roots)
    before = tools.book.entries()
    known = {(entry.kind, entry.target) for entry in before}
    tools.book.record_many(wanted, BY)
    batch = _Batch(tools)
    try:
        batch.carry_out(plan)
    except (files.FilesError, knob.KnobError, swap.SwapError, TuningError) as exc:
        failed = batch.take_back()
        if failed:
            raise TuningError(f"{exc}; could not be taken back: {', '.join(failed)}; run reset") from exc
        own_changes.forget_failed(tools.book, wanted, before)
        raise TuningError(f"{exc}; what came before it was taken back") from exc
    tools.book.forget_many({("value", path) for path in batch.refused} - known)
    return batch.refused


def verify(plan: Plan, tools: Tools) -> dict[str, str | None]:
    """Return what each file of a plan holds now, in the spelling of its form. Raises KnobError or SwapError."""
    used = {area.path for area in swap.areas(tools.roots.proc)}
    found: dict[str, str | None] = {}
    for row in plan.rows:
        if row.setting.kind == "swap":
            found[row.path] = "enabled" if row.path in used else "disabled"
        elif row.path:
            text = knob.read(row.path)
            found[row.path] = None if text is None else knob.normal(row.form, text)
    return found
