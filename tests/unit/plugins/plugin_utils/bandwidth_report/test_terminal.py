"""The result of a bandwidth run in a terminal: fits every width, says what was missed and what tripped."""

from __future__ import annotations

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import terminal
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import text_table
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.numerals import MINUS
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.terminal import as_text

from .conftest import KINDS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [40, 79, 120])
def test_lines_fit(kind, width, view_of):
    lines = terminal.render(view_of(kind), width)
    assert max(text_table.display_width(line.text) for line in lines) <= width
    assert lines[0].text.startswith("Run ")


def test_every_scenario_has_its_table(view_of):
    text = as_text(terminal.render(view_of("good"), 120))
    for title in ("Single priority", "Waterline (waterline)", "Number of classes", "Latency of the service"):
        assert title in text
    assert "Objectives: 22 of 22 met." in text
    assert "Guards: all 12 held." in text
    assert "3 of 28 published figures that report.html shows beside these are physically impossible" in text


def test_the_columns_are_those_that_have_figures(view_of):
    text = as_text(terminal.render(view_of("water"), 140))
    assert "gives way ms" in text
    assert "ours costs" not in text
    single = as_text(terminal.render(view_of("single"), 140))
    assert "gives way ms" not in single
    assert "of 19 in 20 %" not in single
    assert f"{MINUS}11." in single or f"{MINUS}12." in single


def test_what_was_missed_is_told_with_its_reason(view_of):
    lines = terminal.render(view_of("slow"), 120)
    told = [
        line for line in lines if line.tone == "fail" and line.text.startswith("✕ waterline.dynamic, giving way P95")
    ]
    assert told
    assert "allowed are 10" in as_text(lines)


def test_what_tripped_is_told(view_of):
    text = as_text(terminal.render(view_of("busy"), 120))
    assert "INVALID" in text
    assert "Receiver had CPU to spare: 99 % of its CPUs, limit 95 % of its CPUs" in text


def test_failed_measurements_are_counted(view_of):
    assert "1 measurement failed and do not count" in as_text(terminal.render(view_of("repeated"), 120))


def test_a_plain_terminal_gets_ascii(view_of):
    for line in terminal.render(view_of("good"), 100, unicode=False):
        assert line.text.isascii()
