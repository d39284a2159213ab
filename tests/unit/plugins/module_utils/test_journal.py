# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import fcntl
import json
import multiprocessing
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils import files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Change, Journal, JournalError, Outcome


def _done(entry: journal.Entry, _check: bool) -> Outcome:
    return Outcome("undone", entry.target)


HANDLERS = dict.fromkeys(journal.KINDS, _done)


@pytest.fixture
def book(tmp_path: Path) -> Journal:
    return Journal(str(tmp_path / "journal.json"))


def test_the_first_value_wins_and_the_note_is_renewed(book: Journal) -> None:
    first = book.record("value", "/sys/x", "1", "role a", "2")
    second = book.record("value", "/sys/x", "2", "role b", "3")
    assert (second.id, second.previous, second.by, second.note) == (first.id, "1", "role a", "3")
    assert len(book.entries()) == 1


def test_entries_are_undone_newest_first_and_leave_soon(book: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_FLUSH_S", -1.0)
    book.record_many([Change("value", name, "0") for name in "abc"], "test")
    seen: list[tuple[str, int]] = []

    def handler(entry: journal.Entry, _check: bool) -> Outcome:
        seen.append((entry.target, len(book.entries())))
        return Outcome("undone", "")

    book.undo({"value": handler})
    assert seen == [("c", 3), ("b", 2), ("a", 1)]
    assert not book.exists()
    assert not os.path.exists(book.path + ".lock")


def test_an_undo_that_is_cut_short_keeps_what_is_left(book: Journal) -> None:
    book.record_many([Change("value", name, "0") for name in "abc"], "test")

    def handler(entry: journal.Entry, _check: bool) -> Outcome:
        if entry.target == "b":
            raise KeyboardInterrupt
        return Outcome("undone", "")

    with pytest.raises(KeyboardInterrupt):
        book.undo({"value": handler})
    assert [entry.target for entry in book.entries()] == ["a", "b"]


def test_check_changes_nothing(book: Journal) -> None:
    book.record("value", "a", "0", "test")
    text = Path(book.path).read_text()
    assert [item.outcome.result for item in book.undo(HANDLERS, check=True)] == ["undone"]
    assert Path(book.path).read_text() == text


@pytest.mark.parametrize("result", ["kept", "failed"])
def test_what_is_not_undone_stays(book: Journal, result: str) -> None:
    book.record_many([Change("value", "a", "0"), Change("package", "nginx")], "test")
    done = book.undo({"value": _done, "package": lambda *_: Outcome(result, "why")})
    assert [item.outcome.result for item in done] == [result, "undone"]
    assert [entry.target for entry in book.entries()] == ["nginx"]


def test_a_kind_without_handler_is_a_failure(book: Journal) -> None:
    book.record("unit", "a.service", None, "test")
    assert [item.outcome.result for item in book.undo({})] == ["failed"]
    assert len(book.entries()) == 1


def test_directories_that_the_journal_made_go_with_it(tmp_path: Path) -> None:
    book = Journal(str(tmp_path / "a" / "b" / "journal.json"))
    book.record("value", "x", "0", "test")
    (tmp_path / "a" / "b" / "samples.jsonl").write_text("ours")
    book.undo(HANDLERS)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_was_there_stays(tmp_path: Path) -> None:
    book = Journal(str(tmp_path / "journal.json"))
    (tmp_path / "foreign").write_text("x")
    book.record("value", "x", "0", "test")
    book.undo(HANDLERS)
    assert [item.name for item in tmp_path.iterdir()] == ["foreign"]


def test_a_parent_with_other_hosts_state_stays(tmp_path: Path) -> None:
    first, second = (Journal(str(tmp_path / "hosts" / name / "journal.json")) for name in ("one", "two"))
    first.record("value", "x", "0", "test")
    second.record("value", "x", "0", "test")
    first.undo(HANDLERS)
    assert [item.name for item in (tmp_path / "hosts").iterdir()] == ["two"]


def test_forget_drops_and_tolerates_unknown(book: Journal) -> None:
    book.forget("value", "nothing")
    book.record("value", "a", "0", "test")
    book.forget("value", "b")
    book.forget("value", "a")
    assert book.entries() == ()


def test_undo_twice_is_nothing(book: Journal) -> None:
    book.record("value", "a", "0", "test")
    book.undo(HANDLERS)
    assert book.undo(HANDLERS) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[]", "is not of schema 1 (found 'list')"),
        ('{"schema": 2, "entries": []}', "found 2"),
        ('{"schema": 1, "entries": {}}', "is not of schema 1"),
        ('{"schema": 1, "entries": [{}]}', "does not have the keys"),
        ('{"schema": 1, "entries": [1]}', "does not have the keys"),
        (
            '{"schema": 1, "entries": [{"id": "1", "time": "", "by": "", "kind": "value", "target": "", "note": "",'
            ' "previous": null}]}',
            "id is not int",
        ),
        (
            '{"schema": 1, "entries": [{"id": 1, "time": "", "by": "", "kind": "magic", "target": "", "note": "",'
            ' "previous": null}]}',
            "'magic' is not one of",
        ),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_corrupt_journal_is_one_sentence_and_nothing_is_touched(book: Journal, text: str, words: str) -> None:
    Path(book.path).write_text(text)
    for call in (book.entries, lambda: book.record("value", "a", "0", "test"), lambda: book.undo(HANDLERS)):
        with pytest.raises(JournalError) as caught:
            call()
        assert words in str(caught.value)
        assert "nothing was touched" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert Path(book.path).read_text() == text


def test_an_unknown_kind_is_not_recorded(book: Journal) -> None:
    with pytest.raises(JournalError, match="'magic' is not one of"):
        book.record("magic", "a", None, "test")
    assert not book.exists()


def test_a_full_disk_stops_before_the_change(book: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    book.record("value", "a", "0", "test")

    def full(*_args: object) -> None:
        raise files.FilesError(f"{book.path}: cannot be written: No space left on device; check")

    monkeypatch.setattr(files, "write_atomic", full)
    with pytest.raises(JournalError, match=r"No space left on device.*no change is made without it"):
        book.record("value", "b", "0", "test")
    assert len(book.entries()) == 1


def test_a_held_lock_is_a_sentence(book: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    book.record("value", "a", "0", "test")
    monkeypatch.setattr(journal, "LOCK_DEADLINE_S", 0.1)
    with open(book.path + ".lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(JournalError, match="locked by another process"):
            book.record("value", "b", "0", "test")


def _record(path: str, start: int) -> None:
    for number in range(start, start + 10):
        Journal(path).record("value", str(number), "0", "test")


def test_several_writers_lose_nothing(book: Journal) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_record, args=(book.path, start)) for start in (0, 10, 20)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert {entry.target for entry in book.entries()} == {str(number) for number in range(30)}
    assert len({entry.id for entry in book.entries()}) == 30


def _write_until_killed(path: str) -> None:
    number = 0
    while True:
        Journal(path).record("value", str(number), "0" * 1000, "test")
        number += 1


def test_kill_at_any_moment_leaves_a_whole_journal(book: Journal) -> None:
    context = multiprocessing.get_context("fork")
    for _ in range(5):
        worker = context.Process(target=_write_until_killed, args=(book.path,))
        worker.start()
        worker.join(0.05)
        os.kill(worker.pid or 0, signal.SIGKILL)
        worker.join()
        numbers = sorted(int(entry.target) for entry in book.entries())
        assert numbers == list(range(len(numbers)))
    book.record("value", "after", "0", "test")


ENTRIES = st.lists(
    st.builds(
        Change,
        st.sampled_from(journal.KINDS),
        st.text(min_size=1, max_size=8),
        st.recursive(
            st.none() | st.text() | st.integers(), lambda inner: st.dictionaries(st.text(), inner), max_leaves=3
        ),
        st.text(max_size=5),
    ),
    max_size=8,
)


@given(ENTRIES)
def test_a_journal_survives_writing_and_reading(changes: list[Change]) -> None:
    entries = [
        journal.Entry(number, "2026-01-01T00:00:00Z", "x", item.kind, item.target, item.previous, item.note)
        for number, item in enumerate(changes)
    ]
    text = journal.render(entries)
    assert json.loads(text)["schema"] == 1
    assert list(journal.parse(text)) == entries


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    with contextlib.suppress(JournalError):
        journal.parse(text)


def test_what_fails_alone_is_tried_again_once_it_was_settled(tmp_path: Path) -> None:
    book = Journal(str(tmp_path / "journal.json"))
    book.record_many([Change("value", "a", "1"), Change("value", "b", "1")], "test")
    settled: list[str] = []

    def handler(entry: journal.Entry, _check: bool) -> Outcome:
        done = entry.target == "b" or settled == ["a"]
        return Outcome("undone" if done else "failed", entry.target)

    def settle(failed: Sequence[journal.Entry]) -> None:
        settled.extend(entry.target for entry in failed)

    assert [item.outcome.result for item in book.undo({"value": handler}, check=True, settle=settle)][1] == "failed"
    assert settled == []
    assert [item.outcome.result for item in book.undo({"value": handler}, settle=settle)] == ["undone", "undone"]
    assert not book.exists()


def test_a_state_directory_with_another_hosts_needed_journal_stays_until_that_is_empty(tmp_path: Path) -> None:
    outer = Journal(str(tmp_path / "state" / "journal.json"))
    inner = Journal(str(tmp_path / "state" / "hosts" / "one" / "journal.json"))
    outer.record("value", "/outer", "1", "lab")
    inner.record("package", "nginx", None, "packages")
    good = {kind: lambda entry, check: Outcome("undone", entry.target) for kind in ("value", "package")}
    first = outer.undo(good)
    assert [item.outcome.result for item in first] == ["undone", "kept"]
    assert "still holds changes" in first[-1].outcome.text
    assert inner.entries()[-1].target == "nginx"
    assert [item.outcome.result for item in outer.undo(good)] == ["kept"]
    inner.undo(good)
    assert outer.undo(good)[-1].outcome.result == "undone"
    assert not (tmp_path / "state").exists()


def test_a_corrupt_journal_inside_counts_as_needed(tmp_path: Path) -> None:
    outer = Journal(str(tmp_path / "state" / "journal.json"))
    outer.record("value", "/outer", "1", "lab")
    inner = tmp_path / "state" / "hosts" / "one" / "journal.json"
    inner.parent.mkdir(parents=True)
    inner.write_text("{")
    done = outer.undo({"value": lambda entry, check: Outcome("undone", entry.target)})
    assert done[-1].outcome.result == "kept"
    assert inner.exists()


def test_a_directory_that_another_undo_removes_meanwhile_is_made_again(
    book: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = Journal._lock
    lost = [True]

    def lock(self: Journal) -> int:
        if lost.pop() if lost else False:
            os.rmdir(self.directory)
        return locked(self)

    monkeypatch.setattr(Journal, "_lock", lock)
    assert book.record("value", "/x", "1", "test").target == "/x"
