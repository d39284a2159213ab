# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on a run of the bandwidth experiment, in one sentence for who has ten seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.colocation.testbed.plugins.module_utils.measure import effects, objectives
from ansible_collections.colocation.testbed.plugins.module_utils.measure.verdict import Verdict
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ansible_collections.colocation.testbed.plugins.module_utils.measure.verdict import Reason
    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.judging import Judged


def verdict(plane: str, found: Sequence[Judged], cut_short: str | None, notes: Sequence[str]) -> Verdict:
    """Return the verdict of a run.

    :param plane: what holds packets back in this run.
    :param cut_short: how far a partial run came, or None.
    :param notes: what a reader should know beside the verdict.
    """
    broken = tuple(dict.fromkeys(reason for item in found for reason in item.broken))
    if broken:
        return Verdict(effects.INVALID, _invalid(broken), tuple(reason.full for reason in broken))
    reasons = [
        f"{item.point.place}: {names.objective(item.objective)} {text}"
        for item in sorted(found, key=lambda item: effects.ORDER.index(item.judgement.result))
        for text in item.judgement.reasons
        if item.judgement.result != effects.PASS or item.objective.name not in objectives.ALWAYS
    ]
    if cut_short:
        sentence = f"This run was cut short: {cut_short}; run it again to resume."
        return Verdict(effects.INCONCLUSIVE, sentence, (cut_short, *reasons, *notes))
    result = effects.worst([item.judgement.result for item in found])
    if result == effects.NONE:
        return Verdict(
            effects.PASS,
            "No case has objectives: only the guards were judged.",
            ("no case has objectives: only the guards were judged", *notes),
        )
    return Verdict(result, _sentence(plane, found, result), (*reasons, *notes))


def _invalid(broken: Sequence[Reason]) -> str:
    briefs = list(dict.fromkeys(reason.brief for reason in broken))
    more = f" (and {len(briefs) - 1} more)" if len(briefs) > 1 else ""
    return f"This run does not count: {briefs[0]}{more}."


def _sentence(plane: str, found: Sequence[Judged], result: str) -> str:
    concerned = [item for item in found if item.judgement.result == result]
    count = f"{len(found)} objective{'' if len(found) == 1 else 's'}"
    if result == effects.PASS:
        clauses = "; ".join(_headlines(found))
        return f"On plane {plane} the programs kept all of {count}{': ' if clauses else ''}{clauses}."
    first = concerned[0]
    told = f"{names.objective(first.objective)} in {first.point.place} {first.judgement.reasons[0]}"
    more = f" (and {len(concerned) - 1} more)" if len(concerned) > 1 else ""
    if result == effects.FAIL:
        return f"On plane {plane} the programs missed {len(concerned)} of {count}: {told}{more}."
    return (
        f"Too noisy or too few blocks to tell whether {len(concerned)} of {count} {_are(concerned)} met: {told}{more}."
    )


def _are(items: Sequence[Judged]) -> str:
    return "is" if len(items) == 1 else "are"


def _headlines(found: Sequence[Judged]) -> list[str]:
    """Return what a run that passed has to show, the worst case of each kind."""
    clauses = []
    exact = _worst(found, "accuracy_pct")
    if exact is not None:
        clauses.append(f"rates within {max(0.0, 100.0 - exact):.2f} %")
    many = _worst(found, "accuracy_p95_pct")
    if many is not None:
        clauses.append(f"19 of 20 classes within {max(0.0, 100.0 - many):.2f} %")
    quick = _worst(found, "switch_p95_ms", most=True)
    if quick is not None:
        clauses.append(f"offline traffic gives way within {quick:.1f} ms (P95)")
    cost = [_saved(found, shaper) for shaper in dict.fromkeys(item.objective.against for item in found) if shaper]
    if cost:
        clauses.append(f"CPU per Gbit {' and '.join(cost)}")
    return clauses


def _worst(found: Sequence[Judged], metric: str, most: bool = False) -> float | None:
    values = [
        item.figure.value
        for item in found
        if item.objective.metric == metric and item.objective.against is None and item.figure is not None
    ]
    if not values:
        return None
    return max(values) if most else min(values)


def _saved(found: Sequence[Judged], shaper: str) -> str:
    ratio = max(item.figure.value for item in found if item.objective.against == shaper and item.figure is not None)
    change = 100.0 * (ratio - 1.0)
    return f"{abs(change):.0f} % {'below' if change < 0 else 'above'} {names.shaper(shaper)}"
