"""Where a mode's latency comes from: what is said follows from two counters."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import causes, terminal
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.causes import Cause

MICROS = st.floats(0, 1e6, allow_nan=False)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Cause(379, 271, 331, 3), "queues for the CPU, which scheduling can change"),
        (Cause(386, 1, 331, 3), "runs slower (caches that others used, a lower clock)"),
        (Cause(400, 70, 331, 3), "queues for the CPU, and runs slower once it has it"),
        (Cause(333, 4, 331, 3), ""),
        (Cause(300, 0, 331, 3), ""),
    ],
)
def test_meaning_follows_from_what_was_added(found, words):
    assert words in found.meaning
    assert bool(words) == bool(found.meaning)


@given(MICROS, MICROS, st.floats(1, 1e6), MICROS)
def test_nothing_is_blamed_that_did_not_grow(running, waiting, base_running, base_waiting):
    found = Cause(running, waiting, base_running, base_waiting)
    assert "queues" not in found.meaning or waiting > base_waiting
    assert "slower" not in found.meaning or running > base_running


def test_every_colocated_mode_has_a_line_and_a_row(view_of):
    view = view_of("good")
    text = " ".join(terminal.as_text(terminal.render(view, 140)).split())
    table = str(causes.causes_table(view, view.conditions[0]))
    for mode in view.candidates:
        assert f"· {mode.name}: a request runs" in text
        assert f"{mode.name}</span>" in table
    assert "· baseline" not in text


def test_without_readings_nothing_is_said(view_of):
    view = view_of("good")
    cells = {
        key: dataclasses.replace(
            cell, metrics={name: item for name, item in cell.metrics.items() if name != "service_wait_us_per_request"}
        )
        for key, cell in view.cells.items()
    }
    blind = dataclasses.replace(view, cells=cells)
    assert causes.causes_table(blind, view.conditions[0]) is None
    assert "a request runs" not in terminal.as_text(terminal.render(blind, 140))
