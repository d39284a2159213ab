"""The long table of a bandwidth run: every figure once, numbers that come back, names that run no formula."""

from __future__ import annotations

import csv
import dataclasses
import io

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import csv_table

from .conftest import KINDS


def rows(view):
    return list(csv.DictReader(io.StringIO(csv_table.render(view))))


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_whole(kind, view_of):
    table = list(csv.reader(io.StringIO(csv_table.render(view_of(kind)))))
    assert tuple(table[0]) == csv_table.COLUMNS
    assert {len(row) for row in table} == {len(csv_table.COLUMNS)}


def test_figures_classes_and_objectives_are_there_once(view_of):
    found = rows(view_of("good"))
    keys = [
        (row["scenario"], row["case"], row["shaper"], row["class"], row["metric"], row["objective"]) for row in found
    ]
    assert len(set(keys)) == len(keys)
    errors = [row for row in found if row["metric"] == "error_pct" and row["case"] == "200_classes"]
    assert len(errors) == 2 * 200
    assert sum(bool(row["objective"]) for row in found) == 22


def test_ratios_stand_beside_the_shaper_that_they_compare_with(view_of):
    found = {row["shaper"]: row for row in rows(view_of("single")) if row["metric"] == "cpu_s_per_gbit"}
    assert float(found["htb"]["ratio_of_ebpf"]) == pytest.approx(0.88, abs=0.02)
    assert found["ebpf"]["ratio_of_ebpf"] == ""


def test_what_is_no_evidence_says_so(view_of):
    found = rows(view_of("busy"))
    assert {row["counts"] for row in found if row["shaper"] == "ebpf"} == {"no"}
    assert {row["counts"] for row in found if row["shaper"] == "tbf"} == {"yes"}


def test_names_run_no_formula(view_of):
    view = view_of("single")
    evil = dataclasses.replace(view, cells=tuple(dataclasses.replace(cell, case="=1+1") for cell in view.cells))
    assert {row["case"] for row in rows(evil)} == {"'=1+1"}
