"""Live lines and what is left."""

from __future__ import annotations

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import progress


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"), (3720, "1 h 02 min"), (-3, "0 s")],
)
def test_durations_read_well(seconds, text):
    assert progress.duration(seconds) == text


def test_lines_come_while_a_window_passes_and_count_down(monkeypatch):
    clock = {"now": 100.0}
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(progress.time, "sleep", lambda s: clock.__setitem__("now", clock["now"] + s))
    lines = []
    shown = progress.Progress(lines.append, guess_s=15)
    shown.wait(12, "1/3 baseline", remaining=2)
    assert clock["now"] == pytest.approx(112)
    assert [line.split()[2] for line in lines] == ["0/12", "5/12", "10/12"]
    assert lines[0].endswith("42 s left")
    assert lines[2].endswith("32 s left")


def test_a_killed_playbook_ends_the_measurement(monkeypatch):
    clock = {"now": 0.0}
    parents = iter([100, 100, 100, 1])
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(progress.time, "sleep", lambda s: clock.__setitem__("now", clock["now"] + s))
    monkeypatch.setattr(progress.os, "getppid", lambda: next(parents))
    shown = progress.Progress(lambda line: None, guess_s=15)
    with pytest.raises(progress.ControllerGoneError, match="run it again to resume"):
        shown.wait(60, "1/3", remaining=2)
    assert clock["now"] < 5


def test_what_is_left_follows_the_measured_lengths(monkeypatch):
    clock = {"now": 0.0}
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock["now"])
    shown = progress.Progress(lambda line: None, guess_s=15)
    assert shown.left_s(4) == 60
    shown.start()
    clock["now"] = 20.0
    shown.done()
    assert shown.left_s(4) == 80
