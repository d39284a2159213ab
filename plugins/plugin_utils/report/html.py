# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Assemble the self-contained page: a pure function of the run directory and its summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import MeasurementRecord
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import (
    best_effort_section,
    calibration_section,
    causes,
    cluster_facts,
    digest,
    evidence,
    figures,
    hero,
    matrix_tables,
    model,
    page,
    setup_facts,
    words,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.digest import Digest
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import Html, join, tag
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import Condition, View
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Json
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.page import Section
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectory


def render(run: RunDirectory, summary: Json) -> str:
    """Make the page of a run.

    Raises ReportError when the summary does not follow its schema or a template is missing, and
    RunDirectoryError when a file of the run cannot be read.
    """
    return _page(model.build(summary, run.manifest), run)


def _page(view: View, run: RunDirectory) -> str:
    tiles = None if view.summary.get("calibration") else hero.tiles(view)
    return page.assemble(view, _sections(view, run), tiles, _chooser(view))


def _chooser(view: View) -> Html | None:
    if not view.is_grid:
        return None
    chosen = hero.headline_condition(view)
    options = [
        tag(
            "option",
            words.condition_short(condition),
            value=words.condition_id(view, condition),
            selected=condition == chosen,
        )
        for condition in view.conditions
    ]
    return tag("label", tag("span", "Condition"), tag("select", options, id="condition-chooser"), class_="chooser")


def _each(view: View, make: Callable[[Condition], Html | None]) -> Html:
    return join([make(condition) for condition in view.conditions])


def _sections(view: View, run: RunDirectory) -> list[Section]:
    found = run.measurements()
    return [
        _calibration(view),
        *_result_sections(view, run, digest.digests(run)),
        *_evidence_sections(view, found),
        *_setup_sections(view, run, found),
    ]


def _calibration(view: View) -> Section:
    found = view.summary.get("calibration")
    return Section(
        "calibration",
        "Calibration",
        "Can the judge be trusted on this machine?",
        "The same mode was measured twice under two names, where nothing may be found, and beside a service slowed "
        "by a known amount, which must be found.",
        calibration_section.render(found) if found else None,
    )


def _result_sections(view: View, run: RunDirectory, shrunk: Sequence[Digest]) -> list[Section]:
    return [*_table_sections(view), *_figure_sections(view, run, shrunk)]


def _table_sections(view: View) -> list[Section]:
    return [
        Section(
            "modes",
            "Modes",
            "What each mode costs and wins",
            "Latency of the service as its clients saw it; how much of the tested node was in use; how much "
            "batch work was done meanwhile.",
            join(matrix_tables.mode_sentences(view), _each(view, lambda condition: _modes(view, condition))),
        ),
        Section(
            "heat",
            "Heat map",
            "Tail latency under every condition",
            "Where along load and kind of pressure a policy stops protecting the service.",
            _heat(view),
        ),
    ]


def _figure_sections(view: View, run: RunDirectory, shrunk: Sequence[Digest]) -> list[Section]:
    cpu = _each(view, lambda condition: figures.cpu_time(view, run, shrunk, condition))
    return [
        Section(
            "latency",
            "Latency",
            "Latency distribution",
            "Nine of ten requests lie left of 90, all but one in a hundred left of 99. Lines are the median block, "
            "bands reach from the least to the greatest block. The further right a line stays low, the better.",
            _each(view, lambda condition: figures.distribution(view, shrunk, condition)),
        ),
        Section(
            "blocks",
            "Blocks",
            "How sure: block by block",
            "Each block measures every mode under the same arrivals, so each dot compares with the baseline of its own "
            "block. The line is the estimate over all blocks, the band its 95 % interval, the dashed line the "
            "objective. \u201cSmallest detectable\u201d is the effect that so many blocks of such noise can show at "
            "all; below it, no difference found is not the same as no difference.",
            _each(view, lambda condition: _blocks(view, shrunk, condition)),
        ),
        Section(
            "cpu",
            "CPU",
            "Where the CPU time went",
            "Share of the measured CPUs in each second of one window, and below it how long the service's tasks "
            "waited for a CPU although they could have run. Waiting is what the service's clients feel.",
            join(_each(view, lambda condition: _causes(view, condition)), figures.cpu_legend(), cpu) if cpu else None,
        ),
        _best_effort(view, run, shrunk),
    ]


def _best_effort(view: View, run: RunDirectory, shrunk: Sequence[Digest]) -> Section:
    return Section(
        "best-effort",
        "Best effort",
        "How far best effort was held back",
        "The quota of the group of all best-effort pods, sampled each second. Where Koordinator's suppress is at work, "
        "it falls as the service uses more, and rises when that rests.",
        _each(view, lambda condition: best_effort_section.render(view, run, shrunk, condition)),
    )


def _modes(view: View, condition: Condition) -> Html:
    return matrix_tables.per_condition(view, condition, matrix_tables.modes_table(view, condition))


def _causes(view: View, condition: Condition) -> Html | None:
    found = causes.causes_table(view, condition)
    return matrix_tables.per_condition(view, condition, found) if found else None


def _heat(view: View) -> Html | None:
    if not view.is_grid or not view.candidates:
        return None
    return join(
        matrix_tables.heat_legend(), matrix_tables.heat_map(view, "p99_us"), matrix_tables.heat_map(view, "p90_us")
    )


def _blocks(view: View, shrunk: Sequence[Digest], condition: Condition) -> Html | None:
    if not view.candidates:
        return None
    drawn = figures.pairing(view, shrunk, condition)
    listed = matrix_tables.effects_table(view, condition)
    if drawn is None:
        return matrix_tables.per_condition(view, condition, listed)
    return join(drawn, tag("div", listed, data_condition=words.condition_id(view, condition)))


def _evidence_sections(view: View, found: Sequence[MeasurementRecord]) -> list[Section]:
    return [
        page.guards_section(view),
        Section("failed", "Failed", "Measurements that do not count", "", evidence.failed(found)),
        Section("published", "Published", "Beside the published results", "", evidence.reference(view)),
    ]


def _setup_sections(view: View, run: RunDirectory, found: Sequence[MeasurementRecord]) -> list[Section]:
    return [
        Section(
            "policies",
            "Policies",
            "Modes and policies as applied",
            "The values were read back from the kernel inside a window, not copied from the settings.",
            setup_facts.modes(view, run, found),
        ),
        Section("substrate", "Substrate", "What the workloads ran on", "", cluster_facts.render(view)),
        *page.origin_sections(
            view, Section("load", "Load", "Load, workloads, limits", "", setup_facts.parameters(view))
        ),
    ]
