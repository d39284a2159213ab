from __future__ import annotations

import csv
import dataclasses
import io

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import csv_table


def rows_of(view):
    return list(csv.DictReader(io.StringIO(csv_table.render(view))))


def test_each_cell_and_metric_has_a_line_with_its_effect(view_of):
    view = view_of("grid")
    rows = rows_of(view)
    assert len({(r["mode"], r["load_point"], r["aggressor"], r["metric"]) for r in rows}) == len(rows)
    row = next(r for r in rows if (r["mode"], r["load_point"], r["aggressor"], r["metric"]) ==
               ("colocation", "0.5", "ffmpeg", "p99_us"))  # fmt: skip
    cell = view.cell("colocation", view.conditions[-2])
    assert float(row["median"]) == pytest.approx(cell.median("p99_us"), rel=1e-5)
    effect = view.effect("colocation", cell.condition, "p99_us")
    assert float(row["change_pct"]) == pytest.approx(effect.change_pct.value, rel=1e-5)
    assert row["result"] == effect.result
    assert row["blocks_kept"] == "3"


def test_gains_are_lines_too(view_of):
    metrics = {row["metric"] for row in rows_of(view_of("good")) if row["mode"] == "slo_aware"}
    assert {"utilisation_won_points", "batch_work_kept_pct"} <= metrics


def test_cell_without_data_has_empty_fields(view_of):
    rows = [row for row in rows_of(view_of("lost")) if row["mode"] == "slo_aware"]
    assert rows
    assert all(row["median"] == "" for row in rows)


def test_name_cannot_become_a_formula(view_of):
    view = view_of("good")
    cells = {key: dataclasses.replace(cell, mode="=cmd()") for key, cell in view.cells.items()}
    text = csv_table.render(dataclasses.replace(view, cells=cells))
    assert ",'=cmd()," in text
    assert ",=cmd()," not in text


def test_the_quota_of_best_effort_has_a_line_for_each_figure_that_is_a_limit(view_of):
    rows = [
        row for row in csv.DictReader(io.StringIO(csv_table.render(view_of("pods")))) if "best_eff" in row["metric"]
    ]
    assert {row["mode"] for row in rows} == {"slo_aware"}
    assert {row["metric"]: row["median"] for row in rows if "before_load" in row["metric"]} == {
        "best_effort_quota_before_load_least_us": "98000",
        "best_effort_quota_before_load_median_us": "98050",
        "best_effort_quota_before_load_greatest_us": "98200",
    }
    assert len(rows) == 6
