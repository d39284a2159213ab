# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring an instance from what it is to what is wanted: look, plan, journal, change, read back; all or nothing."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import (
    devices,
    instance,
    intermediate,
    objects,
    plan,
    shaping,
    tables,
    values,
)
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.instance import Instance, Place, State
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.plan import Host, Wanted
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import BandwidthError, Class, Pool
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf, bpf_elf, bpf_layout

JOURNAL_KIND = "bandwidth"
# What a caller turns into the message of a failure.
ERRORS = (BandwidthError, bpf.BpfError, commands.CommandError, files.FilesError, journal.JournalError)

Edit = Callable[[Wanted], Wanted]


@dataclass(frozen=True)
class Outcome:
    """What was found and what is now (or would be), as a person reads it; lines for tc(8); what should be known."""

    changed: bool
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    variant: str = ""
    elapsed_ms: float = 0.0


@dataclass(frozen=True)
class _Plan:
    policy: values.Policy
    tables: tables.Tables
    shaping: shaping.Shaping
    warnings: tuple[str, ...]

    @property
    def entries(self) -> dict[bytes, bytes] | None:
        """Return what the map of devices must hold, None where they weren't looked at."""
        if not self.shaping.seen:
            return None
        return {item.key: item.entry for _key, item in self.shaping.plans if item.key}

    @property
    def records(self) -> dict[str, Any]:
        return {key: item.record for key, item in self.shaping.plans}


@functools.lru_cache(maxsize=1)
def _layout() -> tuple[bpf_layout.Layout, list[str]]:
    parts = bpf_elf.parse(objects.variants()[0][1])
    return bpf_layout.parse(parts.layout), [item.name for item in parts.maps]


def open_at(place: Place) -> Instance | None:
    """Open an instance by its pins; None when there is none. Raises BpfError, BandwidthError."""
    layout, names = _layout()
    return instance.open_instance(place, layout, names)


def _plan(wanted: Wanted, state: State, place: Place, named: frozenset[str], host: Host, look: bool = True) -> _Plan:
    layout, _names = _layout()
    policy = plan.policy_of(wanted, state)
    resolved, found, warnings = plan.find(wanted, named, host)
    marks = any(item.hook == "pod" for item in wanted.devices.values())
    parts = None if look else shaping.as_recorded(state)
    if parts is None:
        parts = shaping.plan_devices(wanted, state, policy, place, layout, named, host)
    content = tables.tables(replace(policy, classes=resolved.classes), found, layout, marks, parts.diverts)
    if content.sockets:
        warnings += [f"instance {place.name}: this kernel lacks {text}" for text in state.missing]
    return _Plan(policy, content, parts, (*warnings, *parts.warnings))


def _entries(opened: Instance) -> dict[bytes, bytes]:
    return bpf.items(opened.maps["devices"])


def _write_entries(opened: Instance, wanted: Mapping[bytes, bytes]) -> None:
    before = _entries(opened)
    for key in set(before) - set(wanted):
        bpf.delete(opened.maps["devices"], key)
    bpf.update_many(opened.maps["devices"], {key: value for key, value in wanted.items() if before.get(key) != value})


def _plain(item: Pool | Class) -> dict[str, Any]:
    """Return the fields as the state file gives them back: JSON has no tuples."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in vars(item).items()}


def _state(wanted: Wanted, made: _Plan, base: State) -> State:
    pools, classes = made.policy.pool_numbers, made.policy.class_numbers
    # Devices that are gone stay listed, so that they are shaped again once they are back.
    gone = {key: base.devices[key] for key in wanted.devices if key not in made.records and key in base.devices}
    return replace(
        base,
        pools={name: {**_plain(item), "number": pools[name]} for name, item in wanted.pools.items()},
        classes={name: {**_plain(item), "number": classes[name]} for name, item in wanted.classes.items()},
        devices={**gone, **made.records},
    )


def reconcile(
    place: Place, edit: Edit, named: frozenset[str], book: journal.Journal, by: str, check: bool, host: Host,
    look: bool = True,
) -> Outcome:  # fmt: skip
    """Change what ``edit`` changes; ``named`` are the classes and devices whose absence from the host is an error.

    Without ``look`` devices are taken to be as they were left, where classes have no places on them. Raises what ERRORS
    lists, and then the instance is as it was.
    """
    with instance.locked(place):
        state = instance.read_state(place) or State()
        wanted = edit(plan.wanted_of(state))
        if not (wanted.pools or wanted.classes or wanted.devices):
            return _remove(place, state, book, check, host)
        early = _foresee(wanted, state) if check else None
        if early is not None:
            return early
        opened = open_at(place)
        try:
            made = _plan(wanted, state, place, named, host, look or opened is None)
            after = _state(wanted, made, state)
            before = instance.present_tables(opened) if opened else None
            same = opened is not None and before == made.tables and made.entries in (None, _entries(opened))
            changed = not same or bool(made.shaping.lines) or after != state
            if opened is None:
                instance.check_bpffs(place, host.proc_root)
            variant = state.variant
            if changed and not check:
                variant = _carry_out(place, state, wanted, made, opened, before, book, by, host)
        finally:
            if opened is not None:
                opened.close()
        shown = plan.picture(state), plan.picture(after)
        return Outcome(changed, *shown, made.shaping.lines, made.warnings, variant)


def _foresee(wanted: Wanted, state: State) -> Outcome | None:
    """Return what a check says on a bare host, where the task that makes the pool has not made it."""
    used = [item.pool for item in wanted.classes.values()] + [item.pool for item in wanted.devices.values()]
    missing = sorted(set(used) - set(wanted.pools))
    if not missing or state.pools:
        return None
    after = {
        "pools": {},
        "classes": {name: _plain(item) for name, item in wanted.classes.items()},
        "devices": {name: dict(vars(item)) for name, item in wanted.devices.items()},
    }
    text = f"pool {', '.join(missing)}: does not exist yet; unless a task before this one makes it, this one will fail"
    return Outcome(True, plan.picture(state), after, warnings=(text,))


def _carry_out(
    place: Place, state: State, wanted: Wanted, made: _Plan, opened: Instance | None, before: tables.Tables | None,
    book: journal.Journal, by: str, host: Host,
) -> str:  # fmt: skip
    where = {"instance": place.name, "bpffs": place.bpffs, "state_dir": place.state_dir}
    book.record(JOURNAL_KIND, place.pins, where, by)
    if opened is None or before is None:
        return _make(place, state, wanted, made, host, book)
    after = _state(wanted, made, state)
    # Both, so that whatever point this is killed at, undoing knows all devices that may have been touched.
    both = replace(after, devices={**state.devices, **after.devices})
    instance.write_state(place, both)
    entries = _entries(opened)
    try:
        _change(place, opened, before, wanted, made, after, host)
    except BaseException:
        _roll_back(place, opened, before, entries, state, after, host)
        raise
    if both != after:
        instance.write_state(place, after)
    return state.variant


def _make(place: Place, state: State, wanted: Wanted, made: _Plan, host: Host, book: journal.Journal) -> str:
    """Make an instance that isn't there, or none at all."""
    try:
        opened, base = instance.create(place, objects.variants(), state)
    except BaseException:
        _take_down(place, instance.read_state(place) or state, host)
        book.forget(JOURNAL_KIND, place.pins)
        raise
    after = _state(wanted, made, base)
    try:
        instance.write_state(place, after)
        _change(place, opened, instance.present_tables(opened), wanted, made, after, host)
    except BaseException:
        opened.close()
        _take_down(place, after, host)
        book.forget(JOURNAL_KIND, place.pins)
        raise
    opened.close()
    return base.variant


def _change(
    place: Place, opened: Instance, before: tables.Tables, wanted: Wanted, made: _Plan, after: State, host: Host
) -> None:
    lines = made.shaping.lines
    if made.shaping.makes_links:
        devices.apply([line for line in lines if line.startswith("link ") and " delete " not in line], host.run)
        # Now they have indexes, by which the maps know them.
        made = _plan(wanted, after, place, frozenset(), host)
    instance.write_tables(opened, before, made.tables)
    if made.entries is not None:
        _write_entries(opened, made.entries)
    devices.apply(made.shaping.lines, host.run)
    left = _left_to_do(place, wanted, made, after, host) if lines else []
    if left or instance.present_tables(opened) != made.tables:
        raise BandwidthError(
            f"instance {place.name}: reads back other than written ({'; '.join(left) or 'maps'}); retry"
        )


def _left_to_do(place: Place, wanted: Wanted, made: _Plan, after: State, host: Host) -> list[str]:
    """Return the lines that devices lack still: none, unless something did not take effect."""
    layout, _names = _layout()
    return list(shaping.plan_devices(wanted, after, made.policy, place, layout, frozenset(), host).lines)


def _roll_back(
    place: Place, opened: Instance, before: tables.Tables, entries: Mapping[bytes, bytes], state: State, after: State,
    host: Host,
) -> None:  # fmt: skip
    instance.write_tables(opened, instance.present_tables(opened), before)
    _write_entries(opened, entries)
    # From what is there now back to what was asked for before; the devices of both are known.
    both = replace(state, devices={**after.devices, **state.devices})
    devices.apply(_plan(plan.wanted_of(state), both, place, frozenset(), host).shaping.lines, host.run)
    instance.write_state(place, state)


def _remove(place: Place, state: State, book: journal.Journal, check: bool, host: Host) -> Outcome:
    there = os.path.isdir(place.pins) or os.path.exists(place.state_file)
    if there and not check:
        _take_down(place, state, host)
        book.forget(JOURNAL_KIND, place.pins)
    before = plan.picture(state)
    return Outcome(there, before, plan.picture(State()), variant=state.variant)


def _take_down(place: Place, state: State, host: Host) -> None:
    """Detach everything, give the devices back what they had, remove pins and state file."""
    while True:
        there = host.indexes()
        try:
            devices.apply(_detaching(place, state, host, there), host.run)
            break
        except commands.CommandError:
            # A device that goes away meanwhile takes its own along, and the others are looked at anew.
            if host.indexes() == there:
                raise
    instance.remove_pins(place, state.mounted)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(place.state_file)


def _detaching(place: Place, state: State, host: Host, there: Mapping[str, int]) -> list[str]:
    """Return the lines that take everything of an instance off the devices that are there."""
    ids = frozenset(shaping.program_ids(place).values())
    records = {(raw["name"], raw["hook"]): raw for raw in state.devices.values()}
    names = set(there) if ids else {name for name, _hook in records}
    seen = devices.look_now(names, there, host.indexes, host.run, host.classes)
    lines: list[str] = []
    for name, found in seen.items():
        # Another device may have the name now.
        kept = {hook: records.get((name, hook), {}) for hook in devices.HOOKS}
        kept = {hook: raw if raw.get("index") == found.index else {} for hook, raw in kept.items()}
        lines += devices.detach_lines(name, kept, ids, found, False)
    recorded = shaping.recorded_links(state)
    links = intermediate.look(place.name, recorded, host.run) if recorded else {}
    return [*lines, *intermediate.delete_lines((), links)]


def undo(entry: journal.Entry, check: bool, host: Host | None = None) -> journal.Outcome:
    """Take an instance back as the journal's entry names it; ``host`` is this one by default."""
    raw = entry.previous if isinstance(entry.previous, Mapping) else {}
    try:
        place = Place(raw["instance"], raw["bpffs"], raw["state_dir"])
        if not os.path.isdir(place.pins) and not os.path.exists(place.state_file):
            return journal.Outcome("undone", f"bandwidth {place.name}: not there")
        if not check:
            with instance.locked(place):
                _take_down(place, instance.read_state(place) or State(), host or Host())
        return journal.Outcome("undone", f"bandwidth {place.name}: removed, devices as they were")
    except KeyError as exc:
        return journal.Outcome("failed", f"{entry.target}: its entry lacks {exc}; remove it by hand")
    except ERRORS as exc:
        return journal.Outcome("failed", str(exc))
