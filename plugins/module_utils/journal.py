# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of changes to a host: written before each change, replayed backwards by reset.

Format in docs/architecture.md. An entry is durable before the change that it describes, so that a run killed at any
point leaves at worst an entry whose change never happened; every handler therefore accepts "nothing to undo".
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils import files, quantity

SCHEMA = 1
KINDS = (
    "file",
    "value",
    "line",
    "directory",
    "cgroup",
    "process",
    "netns",
    "link",
    "package",
    "unit",
    "resctrl",
    "mount",
    "swap",
    "grub",
    "bandwidth",
    "qdisc",
    "cgroup_tree",
    "mount_namespace",
    "route",
    "nft_table",
    "cluster",
)
LOCK_DEADLINE_S = 30.0
_POLL_S = 0.05
_FLUSH_S = 0.25
_SELF = "journal"


class JournalError(Exception):
    """The journal is unusable; the text says why and what to do, and nothing was touched."""


@dataclass(frozen=True)
class Change:
    """A change about to be made: what was there before (None = nothing), and for values what is written (note)."""

    kind: str
    target: str
    previous: Any = None
    note: str = ""


@dataclass(frozen=True)
class Entry:
    """One line of the journal."""

    id: int
    time: str
    by: str
    kind: str
    target: str
    previous: Any
    note: str


@dataclass(frozen=True)
class Outcome:
    """What a handler did with an entry: ``undone`` (or would), ``kept`` on purpose, ``failed``; and a sentence."""

    result: str
    text: str


@dataclass(frozen=True)
class Undone:
    """An entry and its outcome."""

    entry: Entry
    outcome: Outcome


Handler = Callable[[Entry, bool], Outcome]


def _advice(path: str) -> str:
    return (
        f"nothing was touched; repair {path} from a copy, or move it away and undo the changes on this host by hand "
        "(the file is JSON, one entry for each change)"
    )


def _entry(raw: Any, path: str) -> Entry:
    expected = {"id": int, "time": str, "by": str, "kind": str, "target": str, "note": str}
    if not isinstance(raw, dict) or set(raw) != {*expected, "previous"}:
        raise JournalError(f"journal {path}: an entry does not have the keys of schema {SCHEMA}; {_advice(path)}")
    for key, kind in expected.items():
        if not isinstance(raw[key], kind) or isinstance(raw[key], bool):
            found = quantity.kind_of(raw[key])
            raise JournalError(f"journal {path}: entry {raw['id']!r}: {key} cannot be {found}; {_advice(path)}")
    if raw["kind"] not in KINDS:
        raise JournalError(
            f"journal {path}: entry {raw['id']}: kind {raw['kind']!r} is not one of {', '.join(KINDS)}; where a newer "
            f"version of the collection wrote it, use that one; else: {_advice(path)}"
        )
    return Entry(**raw)


def _check_schema(raw: Any, path: str) -> None:
    """Raise JournalError for what is no journal, and for one that a later version wrote."""
    seen = raw.get("schema") if isinstance(raw, dict) else None
    if isinstance(seen, int) and not isinstance(seen, bool) and seen > SCHEMA:
        raise JournalError(
            f"journal {path}: was written by a newer version of the collection (schema {seen}, this one reads "
            f"{SCHEMA}); nothing was touched; use that version on this host, also for reset"
        )
    if not isinstance(raw, dict) or seen != SCHEMA or not isinstance(raw.get("entries"), list):
        found = repr(seen) if isinstance(raw, dict) else quantity.kind_of(raw)
        raise JournalError(f"journal {path}: is not of schema {SCHEMA} (found {found}); {_advice(path)}")


def parse(text: str, path: str = "journal.json") -> tuple[Entry, ...]:
    """Return the entries in the text of a journal. Raises JournalError for anything but a journal of this schema."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise JournalError(f"journal {path}: is not JSON ({exc}); {_advice(path)}") from exc
    _check_schema(raw, path)
    entries = tuple(_entry(item, path) for item in raw["entries"])
    if len({entry.id for entry in entries}) != len(entries):
        raise JournalError(f"journal {path}: two entries have the same id; {_advice(path)}")
    return entries


def render(entries: Iterable[Entry]) -> str:
    """Return the text of a journal: one line for each entry, so that a person can read and repair it."""
    lines = ",\n ".join(json.dumps(vars(entry), sort_keys=True) for entry in entries)
    return (
        f'{{"schema": {SCHEMA}, "entries": [\n {lines}\n]}}\n' if lines else f'{{"schema": {SCHEMA}, "entries": []}}\n'
    )


def _new_entry(number: int, change: Change, by: str) -> Entry:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return Entry(number, stamp, by, change.kind, change.target, change.previous, change.note)


def _missing_directories(path: str) -> list[str]:
    missing = []
    while path and not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing[::-1]


def _tried_again(item: Undone, handlers: Mapping[str, Handler]) -> Undone:
    handler = handlers.get(item.entry.kind)
    if item.outcome.result != "failed" or handler is None:
        return item
    return Undone(item.entry, handler(item.entry, False))


def check_state_dir(path: str) -> str:
    """Return the path of a state directory unchanged. Raises JournalError for one that depends on where a task runs."""
    if not os.path.isabs(path):
        raise JournalError(f"state_dir {path!r}: is not an absolute path; write one that begins with /")
    if os.path.exists(path) and not os.path.isdir(path):
        raise JournalError(f"state_dir {path}: is not a directory; name the directory that holds journal.json")
    return path


def of(state_dir: str) -> Journal:
    """Return the journal in a state directory. Raises JournalError for a path that cannot be one."""
    return Journal(os.path.join(check_state_dir(state_dir), "journal.json"))


class Journal:
    """The journal file of one host. Methods may be called from several processes at a time."""

    def __init__(self, path: str) -> None:
        """Name the journal file; nothing is read or made yet."""
        self.path = os.path.abspath(path)
        self.directory = os.path.dirname(self.path)

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries, oldest first; none when there is no journal. Raises JournalError."""
        try:
            text = files.read_text_or_none(self.path)
        except files.FilesError as exc:
            raise JournalError(f"journal {exc}") from exc
        return () if text is None else parse(text, self.path)

    def exists(self) -> bool:
        """Tell whether there is a journal, even one without entries."""
        return os.path.exists(self.path)

    def record(self, kind: str, target: str, previous: Any, by: str, note: str = "") -> Entry:
        """Make one change undoable; return only when the entry is on disk. See record_many."""
        return self.record_many([Change(kind, target, previous, note)], by)[0]

    def record_many(self, changes: Sequence[Change], by: str) -> tuple[Entry, ...]:
        """Make several changes undoable with one durable write; call it before the changes.

        The first value wins: for a kind and target that is in the journal already only ``note`` is renewed. Returns the
        entries in the order of ``changes``. Raises JournalError; then nothing must be changed on the host.
        """
        unknown = sorted({change.kind for change in changes} - set(KINDS))
        if unknown:
            raise JournalError(f"journal {self.path}: kind {unknown[0]!r} is not one of {', '.join(KINDS)}")
        with self._locked() as made:
            known = {(entry.kind, entry.target): entry for entry in self.entries()}
            before = dict(known)
            number = 1 + max((entry.id for entry in known.values()), default=0)
            for change, author in [*((item, _SELF) for item in made), *((item, by) for item in changes)]:
                key = (change.kind, change.target)
                old = known.get(key)
                if old is None:
                    known[key] = _new_entry(number, change, author)
                    number += 1
                elif change.note and change.note != old.note:
                    known[key] = Entry(**{**asdict(old), "note": change.note})
            if known != before:
                self._write(known.values())
            return tuple(known[change.kind, change.target] for change in changes)

    def forget(self, kind: str, target: str) -> None:
        """Drop an entry whose change was taken back in an orderly way. Unknown ones are no error."""
        self.forget_many([(kind, target)])

    def forget_many(self, keys: Iterable[tuple[str, str]]) -> None:
        """Drop several (kind, target) entries with one durable write."""
        dropped = set(keys)
        if not dropped or not self.exists():
            return
        with self._locked():
            entries = self.entries()
            left = [entry for entry in entries if (entry.kind, entry.target) not in dropped]
            if len(left) != len(entries):
                self._write(left)

    def undo(
        self,
        handlers: Mapping[str, Handler],
        check: bool = False,
        settle: Callable[[Sequence[Entry]], None] | None = None,
    ) -> tuple[Undone, ...]:
        """Undo all entries, newest first, and return what became of each; with ``check`` only say what would.

        ``settle`` gets the entries that failed, for what can only be taken back together; they are tried once more.
        Undone entries leave the journal within a moment, so a killed undo can go on; kept and failed ones stay.
        When none is left the journal goes, and the state directory with it if the journal had made it. The lock isn't
        held while handlers run: a process that is being ended may itself want to write the journal. Raises
        JournalError before anything is touched when the journal is corrupt.
        """
        entries = self.entries()
        own = [entry for entry in reversed(entries) if entry.kind == "directory" and entry.by == _SELF]
        done: list[Undone] = []
        try:
            flushed_s, waiting = time.monotonic(), 0
            for entry in reversed(entries):
                if entry in own:
                    continue
                handler = handlers.get(entry.kind)
                outcome = handler(entry, check) if handler else Outcome("failed", f"no handler for kind {entry.kind}")
                done.append(Undone(entry, outcome))
                waiting += 1
                # Undoing twice is harmless, and a durable write for each of a thousand entries would take a minute.
                if not check and time.monotonic() - flushed_s > _FLUSH_S:
                    self._forget_undone(done[-waiting:])
                    flushed_s, waiting = time.monotonic(), 0
            failed = [item.entry for item in done if item.outcome.result == "failed"]
            if failed and settle and not check:
                settle(failed)
                done = [_tried_again(item, handlers) for item in done]
        finally:
            if not check:
                self._forget_undone(done)
        if all(item.outcome.result == "undone" for item in done):
            done += self._leave(own, check)
        return tuple(done)

    def _leave(self, own: Sequence[Entry], check: bool) -> list[Undone]:
        """Remove the empty journal and what it made for itself, unless another host's journal inside is needed yet."""
        needed = self._needed_inside()
        if needed and any(entry.target == self.directory for entry in own):
            text = f"{self.directory}: kept, as {needed} still holds changes; undo these first"
            return [Undone(entry, Outcome("kept", text)) for entry in own if entry.target == self.directory]
        if not check:
            self._remove(own)
        return [Undone(entry, Outcome("undone", f"{entry.target}: directory removed")) for entry in own]

    def _needed_inside(self) -> str:
        """Return another journal below the state directory that is not known to be empty; "" where there is none."""
        name = os.path.basename(self.path)
        for place, _below, found in sorted(os.walk(self.directory)):
            path = os.path.join(place, name)
            if name not in found or path == self.path:
                continue
            try:
                if any(entry.by != _SELF for entry in Journal(path).entries()):
                    return path
            except JournalError:
                return path
        return ""

    def _forget_undone(self, done: Sequence[Undone]) -> None:
        self.forget_many([(item.entry.kind, item.entry.target) for item in done if item.outcome.result == "undone"])

    def _write(self, entries: Iterable[Entry]) -> None:
        try:
            files.write_atomic(self.path, render(entries), 0o600)
        except files.FilesError as exc:
            raise JournalError(f"journal {exc}; no change is made without it") from exc

    def _remove(self, own: Sequence[Entry]) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path + ".lock")
        for entry in own:
            if entry.target == self.directory:
                shutil.rmtree(entry.target, ignore_errors=False)
            else:
                # A directory above ours may hold other hosts' state; whoever empties it last removes it.
                with contextlib.suppress(OSError):
                    os.rmdir(entry.target)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[tuple[Change, ...]]:
        """Hold the lock; yields the directories that had to be made, to be recorded as ours."""
        try:
            missing, handle = self._made_and_locked()
        except OSError as exc:
            raise JournalError(
                f"journal {self.path}: cannot be made: {exc.strerror}; check that {self.directory} is writable "
                "and that the run is privileged"
            ) from exc
        try:
            yield tuple(Change("directory", directory, None, "state directory") for directory in missing)
        finally:
            os.close(handle)

    def _made_and_locked(self) -> tuple[list[str], int]:
        """Make the state directory where it is missing, and lock; an undo that ends meanwhile may remove it again."""
        deadline = time.monotonic() + LOCK_DEADLINE_S
        made: dict[str, None] = {}
        while True:
            try:
                for directory in _missing_directories(self.directory):
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(directory, 0o755)
                        made[directory] = None
                return list(made), self._lock()
            except FileNotFoundError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)

    def _lock(self) -> int:
        deadline = time.monotonic() + LOCK_DEADLINE_S
        while True:
            handle = os.open(self.path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # An undo that ended in between has unlinked the file; a lock on the old one excludes nobody.
                if os.path.exists(self.path + ".lock") and os.path.samestat(
                    os.fstat(handle), os.stat(self.path + ".lock")
                ):
                    return handle
            except BlockingIOError:
                pass
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)
            if time.monotonic() > deadline:
                raise JournalError(
                    f"journal {self.path}: locked by another process for {LOCK_DEADLINE_S:g} s; "
                    "wait for the other run on this host to end, or stop it"
                )
            time.sleep(_POLL_S)
