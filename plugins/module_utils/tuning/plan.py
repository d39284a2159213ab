# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare settings with a host: what is as wanted, what is to be written, and what the host lacks. Changes nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.colocation.testbed.plugins.module_utils import own_changes
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import knob, sysctl
from ansible_collections.colocation.testbed.plugins.module_utils.tuning import persisted, swaps, targets
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.settings import Roots, Setting, TuningError
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.swaps import Switch
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.targets import SYSCTL, Resolved, Target

SAME = "same"
CHANGE = "change"
MISSING = "missing"


@dataclass(frozen=True)
class Write:
    """One value to write; ``restore`` is the file and text that bring the old state back.

    ``along`` are files that the kernel changes with it, with their present texts.
    """

    target: Target
    before: str
    restore: tuple[str, str]
    along: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Rewrite:
    """One of our drop-in files to write, or (None) to remove; ``before`` is its present text."""

    path: str
    before: str | None
    text: str | None


@dataclass(frozen=True)
class Kept:
    """A value for the next boot: whether one is asked for, where, which is there and which shall be; or why not."""

    asked: bool = False
    keeper: str = ""
    path: str = ""
    key: str = ""
    before: str | None = None
    wanted: str | None = None
    why: str = ""


@dataclass(frozen=True)
class Row:
    """One file of one setting, as the report shows it."""

    setting: Setting
    path: str
    form: str
    wanted: str
    before: str | None
    state: str
    why: str = ""
    kept: Kept = field(default_factory=Kept)


@dataclass(frozen=True)
class Plan:
    """All rows, the changes in order, and what is worth a warning."""

    rows: tuple[Row, ...]
    writes: tuple[Write, ...]
    switches: tuple[Switch, ...]
    files: tuple[Rewrite, ...]
    warnings: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Tell whether anything is to be done."""
        return bool(self.writes or self.switches or self.files)


def _restore(target: Target, before: str, roots: Roots) -> tuple[str, str]:
    """Return what brings a value back. Of two values that exclude each other that is the one which isn't 0."""
    root = os.path.join(roots.proc, "sys")
    name = os.path.relpath(target.path, root).replace("/", ".")
    partner = sysctl.PARTNER.get(name)
    if partner is not None and target.path.startswith(f"{root}/") and before.strip() == "0":
        path = sysctl.path(partner, roots.proc)
        text = knob.read(path)
        if text is not None and text.strip() != "0":
            return path, text.strip()
    return target.path, knob.previous(target.form, before)


def _along(target: Target, roots: Roots) -> tuple[tuple[str, str], ...]:
    root = os.path.join(roots.proc, "sys")
    if not target.path.startswith(f"{root}/"):
        return ()
    texts = ((path, knob.read(path)) for path in sysctl.affected(os.path.relpath(target.path, root), roots.proc))
    return tuple((path, text.strip()) for path, text in texts if text is not None)


def _kept(
    setting: Setting,
    resolved: Resolved,
    target: Target,
    drop_ins: Mapping[str, persisted.DropIn],
    unkept: Mapping[str, str],
    roots: Roots,
) -> Kept:
    """Return how a value is kept over a boot; a value that shall not be kept is taken out of our file."""
    if not resolved.keeper:
        return Kept(setting.persist, why=resolved.unkept)
    drop_in = drop_ins[resolved.keeper]
    root = os.path.join(roots.proc, "sys")
    key = sysctl.canonical(os.path.relpath(target.path, root)) if resolved.keeper == SYSCTL else target.path
    why = unkept[resolved.keeper]
    wanted = " ".join(target.text.split()) if setting.persist and not why else None
    return Kept(setting.persist, resolved.keeper, drop_in.path, key, drop_in.values.get(key), wanted, why)


class _Planner:
    """Collects rows, changes and problems setting by setting."""

    def __init__(self, roots: Roots) -> None:
        self.roots = roots
        self.drop_ins = {keeper: persisted.read(keeper, roots) for keeper in persisted.KEEPERS}
        self.unkept = {keeper: persisted.unkept(keeper, roots) for keeper in persisted.KEEPERS}
        self.rows: list[Row] = []
        self.writes: list[Write] = []
        self.switches: list[Switch] = []
        self.problems: list[str] = []
        self._owner: dict[str, tuple[Setting, str]] = {}

    def add(self, setting: Setting) -> None:
        """Plan one setting; a problem is kept for the one error that names all."""
        try:
            if setting.kind == "swap":
                self._add_swap(setting)
                return
            resolved = targets.resolve(setting, self.roots)
            if resolved.missing:
                self._add_missing(setting, resolved.missing)
            for target in resolved.targets:
                self._add_target(setting, resolved, target)
        except (TuningError, knob.KnobError) as exc:
            self.problems.append(f"{setting.label}: {exc}")

    def _add_missing(self, setting: Setting, why: str) -> None:
        if not setting.skip_missing:
            raise TuningError(f"{why}; leave the setting out, or set on_missing to skip")
        self.rows.append(Row(setting, "", knob.WORDS, setting.value, None, MISSING, why))

    def _claim(self, setting: Setting, path: str, value: str) -> bool:
        """Tell whether a file is new to this batch. Raises TuningError where two settings contradict each other."""
        other = self._owner.get(path)
        if other is not None and other[1] != value:
            raise TuningError(f"{path} is set to {value!r} here and to {other[1]!r} by {other[0].label}; keep one")
        root = os.path.join(self.roots.proc, "sys")
        partner = sysctl.PARTNER.get(os.path.relpath(path, root).replace("/", "."))
        if partner is not None and sysctl.path(partner, self.roots.proc) in self._owner:
            raise TuningError(f"excludes {partner}, which the kernel sets to 0 then; keep one of the two")
        self._owner.setdefault(path, (setting, value))
        return other is None

    def _add_target(self, setting: Setting, resolved: Resolved, target: Target) -> None:
        before = knob.read(target.path)
        if before is None:
            self._add_missing(setting, f"{target.path} is not there")
            return
        wanted, found = knob.normal(target.form, target.text), knob.normal(target.form, before)
        if not self._claim(setting, target.path, wanted):
            return
        kept = _kept(setting, resolved, target, self.drop_ins, self.unkept, self.roots)
        state = SAME if wanted == found else CHANGE
        self.rows.append(Row(setting, target.path, target.form, wanted, found, state, kept=kept))
        # A change of governor changes the energy preference as well.
        again = setting.kind == "energy_preference" and bool(self.writes)
        if state == CHANGE or again:
            restore = _restore(target, before, self.roots)
            self.writes.append(Write(target, before, restore, _along(target, self.roots)))

    def _add_swap(self, setting: Setting) -> None:
        found, missing = swaps.resolve(setting, self.roots)
        if missing:
            self._add_missing(setting, missing)
        kept = Kept(setting.persist, why=swaps.UNKEPT)
        for item in found:
            if not self._claim(setting, item.path, setting.value):
                continue
            before = "disabled" if item.area is None else "enabled"
            state = SAME if before == setting.value else CHANGE
            self.rows.append(Row(setting, item.path, knob.WORDS, setting.value, before, state, kept=kept))
            if state == CHANGE:
                self.switches.append(item)
        if not found and not missing:
            why = "no area is in use" if setting.name == swaps.ALL else "is not there"
            self.rows.append(Row(setting, setting.name, knob.WORDS, setting.value, setting.value, SAME, why, kept))

    def finish(self, written: Mapping[str, str]) -> Plan:
        """Return the plan. Raises TuningError naming all problems at once."""
        try:
            swaps.require_memory(self.switches, self.roots)
        except TuningError as exc:
            self.problems.append(str(exc))
        if self.problems:
            raise TuningError("; ".join(self.problems))
        rewrites, warnings = [], []
        for keeper, drop_in in self.drop_ins.items():
            wanted = {row.kept.key: row.kept.wanted for row in self.rows if row.kept.keeper == keeper}
            text = drop_in.updated(wanted)
            if text != drop_in.text:
                rewrites.append(Rewrite(drop_in.path, drop_in.text, text))
            by_hand = own_changes.edited(drop_in.path, drop_in.text, written)
            warnings += [by_hand] if by_hand else []
            warnings += [
                f"{path} sets {key} to {value!r} at boot, against {wanted[key]!r} in {drop_in.path}; remove it there"
                for key, path, value in persisted.overriding(keeper, wanted, self.roots)
            ]
        rows, order = tuple(self.rows), sorted(self.switches, key=lambda item: -item.area.priority if item.area else 0)
        return Plan(rows, tuple(self.writes), tuple(order), tuple(rewrites), tuple(warnings))


def plan(settings: tuple[Setting, ...], problems: list[str], roots: Roots, written: Mapping[str, str]) -> Plan:
    """Return what brings the settings about. Raises TuningError with every problem, and then nothing is planned.

    ``problems`` are sentences about settings that could not be understood, ``written`` the fingerprints of our drop-in
    files as the journal notes them.
    """
    planner = _Planner(roots)
    planner.problems += problems
    # A governor decides which energy preferences are allowed, so it goes first whatever the order of the list.
    for setting in sorted(settings, key=lambda item: item.kind == "energy_preference"):
        planner.add(setting)
    return planner.finish(written)
