from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.plugin_utils import compare
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import comparison, terminal, text_table
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.text_table import Column, display_width

from .conftest import KINDS


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("width", [40, 60, 79, 100, 140])
@pytest.mark.parametrize("unicode", [True, False])
def test_lines_fit_and_use_only_what_the_terminal_has(view_of, kind, width, unicode):
    lines = terminal.render(view_of(kind), width, unicode)
    text = terminal.as_text(lines)
    words = max(len(word) for word in text.split())
    assert all(display_width(line.text) <= max(width, words + 4) for line in lines)
    assert unicode or text.isascii()
    assert "\u00a0" not in text
    assert all(not line.text.endswith(" ") for line in lines if line.text)
    assert not ({"nan", "None", "inf"} & set(text.split()))


def test_wide_terminal_has_every_column_and_a_narrow_one_the_price(view_of):
    def head(width):
        lines = [line.text for line in terminal.render(view_of("good"), width)]
        return next(line for line in lines if line.startswith("  mode"))

    for name in ("P50 ms", "P90 ms", "P99 ms", "P99.9 ms", "CPU use %", "frames/s", "kept %", "used/tried"):
        assert name in head(140)
    assert "P50 ms" not in head(79)
    assert all(name in head(79) for name in ("P90 ms", "P99 ms", "CPU use %"))
    assert "P99 ms" in head(50)


def test_figures_are_those_of_the_summary(view_of):
    text = terminal.as_text(terminal.render(view_of("good"), 140))
    effect = view_of("good").effect("colocation", view_of("good").conditions[0], "p99_us")
    row = next(line for line in text.splitlines() if line.startswith("  colocation"))
    assert f"(+{effect.change_pct.value:.0f} %)" in row


def test_tripped_guard_names_figure_limit_and_count(view_of):
    text = " ".join(terminal.as_text(terminal.render(view_of("invalid"), 200)).split())
    assert "100 % of samples, limit 0 % of samples, in 9 of 9 measurements" in text


@pytest.mark.parametrize("width", [40, 100])
def test_pods_that_were_not_injected_are_the_first_words_of_the_verdict(view_of, width):
    lines = terminal.render(view_of("not_injected"), width)
    assert [line.tone for line in lines if line.text.startswith("✕ invalid: pods not injected: ")] == ["invalid"]
    assert "INVALID" not in terminal.as_text(lines)
    assert "INVALID  This run does not count" in terminal.as_text(terminal.render(view_of("invalid"), 100))


def test_open_question_says_what_could_have_been_seen(view_of):
    text = " ".join(terminal.as_text(terminal.render(view_of("partial"), 200)).split())
    assert "INCONCLUSIVE" in text


def test_comparison_lists_regressions_and_doubts(run_of):
    found = compare.compare([run_of("good"), run_of("good")], {"p99_us": 5.0})
    text = terminal.as_text(comparison.render(found, 100))
    assert "PASS  no regression against run synthetic" in text
    worse = {**found, "result": "fail", "failures": ["P99 of slo_aware became worse"]}
    lines = comparison.render(worse, 100, unicode=False)
    assert lines[0].tone == "fail"
    assert "1 regression against" in lines[0].text
    assert terminal.as_text(lines).isascii()
    assert all(display_width(line.text) <= 60 for line in comparison.render(found, 60))


def test_a_comparison_without_thresholds_is_not_called_a_pass(run_of):
    lines = comparison.render(compare.compare([run_of("good"), run_of("good")]), 200)
    assert lines[0].text.endswith("are shown without a verdict: compare_thresholds is empty")
    assert "NOT JUDGED" in lines[0].text
    assert "PASS" not in terminal.as_text(lines)


TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=60)


@given(TEXT, st.integers(4, 40))
def test_shortened_name_fits(name, most):
    assert display_width(text_table.shorten("".join(c for c in name if display_width(c) == 1), most)) <= most


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5), st.integers(20, 120))
def test_rows_of_a_table_are_equally_wide(rows, width):
    columns = [
        Column("name", tuple(text_table.shorten(row[0]) for row in rows), left=True),
        Column("value", tuple(row[1] for row in rows), drop=1),
    ]
    lines = text_table.render(columns, width)
    if lines[0].lstrip().startswith("name") and "─" in lines[1]:
        assert all(display_width(line) <= max(width, display_width(lines[1])) for line in lines)


@given(TEXT)
def test_ascii_keeps_the_length(text):
    assert len(text_table.to_ascii(text)) == len(text)


@given(st.text(st.sampled_from("ab \u00e9"), max_size=200), st.integers(10, 60))
def test_wrapping_loses_no_word(text, width):
    lines = text_table.wrap(text, width, "- ", "  ")
    assert " ".join(line[2:] for line in lines).split() == text.split()
    assert all(len(line) <= width or len(line.split()) <= 2 for line in lines)
