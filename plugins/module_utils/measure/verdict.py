# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict in words that somebody understands who has ten seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.measure import effects
from ansible_collections.colocation.testbed.plugins.module_utils.measure.statistics import Interval


@dataclass(frozen=True)
class ModeOutcome:
    """What the sentence about a mode needs. ``where`` names the cell when the mode has several, else it is empty.

    ``missed`` has a clause for each objective that failed: the mode, the figure, what it is and what is allowed.
    """

    title: str
    judged: bool
    batch: bool
    result: str
    where: str
    utilisation_baseline_pct: float | None
    utilisation_pct: float | None
    p99_change: Interval | None
    p99_blocks: int
    p99_detectable_pct: float | None
    reasons: tuple[str, ...]
    missed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reason:
    """Why a run does not count: ``brief`` for the sentence, ``full`` with figures for whoever looks closer.

    ``foremost`` tells that a mode was not there at all, which comes before every other reason.
    """

    brief: str
    full: str
    foremost: bool = False


@dataclass(frozen=True)
class Verdict:
    """The outcome of a run."""

    result: str
    sentence: str
    reasons: tuple[str, ...]


#: Half of an interval around zero up to which a P99 may be called unchanged, in %: what objectives usually allow.
UNCHANGED_PCT = 5.0
#: How the sentence of a run begins in which a mode was not there at all.
INVALID_LEAD = f"{effects.INVALID}: "


def p99_clause(change: Interval | None, brief: bool = False) -> str:
    """Return what a mode did to P99, with its interval: ``added 1.2 % (0.4 to 2.1) to P99``."""
    if change is None:
        return "has no P99 to compare"
    if change.low <= 0.0 <= change.high:
        shown = f"({_signed(change.value)}, {_span(change)})"
        if max(-change.low, change.high) <= UNCHANGED_PCT:
            return f"left P99 unchanged within the noise {shown}"
        return f"has a P99 that these blocks can't tell from the baseline's {shown}"
    verb, preposition = ("added", "to") if change.value > 0 else ("took", "off")
    size = Interval(*sorted_abs(change)) if change.value < 0 else change
    amount = f"{_number(size.value)} %" if brief else f"{_number(size.value)} % ({_span(size)})"
    return f"{verb} {amount}" if brief else f"{verb} {amount} {preposition} P99"


def sorted_abs(change: Interval) -> tuple[float, float, float]:
    """Return a fall as a positive amount: value, low, high."""
    return -change.value, -change.high, -change.low


def _number(value: float) -> str:
    """Return a figure with as many digits as it deserves."""
    return f"{value:.0f}" if abs(value) >= 20 else f"{value:.1f}"


def _signed(value: float) -> str:
    return f"{value:+.1f} %"


def _span(change: Interval) -> str:
    return f"{_number(change.low)} to {_number(change.high)}"


def mode_sentence(outcome: ModeOutcome) -> str:
    """Return one sentence about a mode, without its full stop."""
    used = ""
    if outcome.batch and outcome.utilisation_pct is not None and outcome.utilisation_baseline_pct is not None:
        before, after = outcome.utilisation_baseline_pct, outcome.utilisation_pct
        used = f"{_cpu_use(before, after)} and "
    return f"{outcome.title}{outcome.where} {used}{p99_clause(outcome.p99_change)}"


def _cpu_use(before_pct: float, after_pct: float) -> str:
    shown = f"{before_pct:.0f}", f"{after_pct:.0f}"
    if shown[0] == shown[1]:
        return f"left CPU use at {shown[0]} %"
    return f"{'raised' if after_pct > before_pct else 'lowered'} CPU use from {shown[0]} % to {shown[1]} %"


def run_verdict(
    outcomes: Sequence[ModeOutcome],
    invalid: Sequence[Reason],
    cut_short: str | None,
    open_reasons: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Verdict:
    """Return the verdict of a run.

    :param outcomes: every mode but the baseline, in the order of the schedule.
    :param invalid: why the run does not count, worst first; empty when it does.
    :param cut_short: how far a partial run came, or None.
    :param open_reasons: what keeps the run from being conclusive as a whole.
    :param notes: what a reader should know beside the verdict.
    """
    if invalid:
        return _invalid(sorted(invalid, key=lambda reason: not reason.foremost))
    judged = [outcome for outcome in outcomes if outcome.judged]
    reasons = [reason for outcome in judged for reason in outcome.reasons]
    if cut_short:
        sentence = f"This run was cut short: {cut_short}; run it again to resume."
        return Verdict(effects.INCONCLUSIVE, sentence, (cut_short, *reasons))
    result = effects.worst([outcome.result for outcome in judged])
    if result == effects.NONE:
        reasons.append("no mode has objectives: only the guards were judged")
        result = effects.PASS
    if open_reasons and result == effects.PASS:
        result = effects.INCONCLUSIVE
    return Verdict(result, _run_sentence(outcomes, judged, result), (*reasons, *open_reasons, *notes))


def _invalid(reasons: Sequence[Reason]) -> Verdict:
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    # These words are what programs look for, so a run without its mode says them itself, wherever it is quoted.
    lead = INVALID_LEAD if reasons[0].foremost else "This run does not count: "
    return Verdict(effects.INVALID, f"{lead}{reasons[0].brief}{more}.", tuple(reason.full for reason in reasons))


def _run_sentence(outcomes: Sequence[ModeOutcome], judged: Sequence[ModeOutcome], result: str) -> str:
    leading = judged or [outcome for outcome in outcomes if outcome.batch] or list(outcomes)
    if not leading:
        return "Only the baseline was measured: there is nothing to compare."
    clauses = [mode_sentence(outcome) for outcome in leading]
    clauses += [
        f"{outcome.title} {p99_clause(outcome.p99_change, brief=True)}"
        for outcome in outcomes
        if outcome not in leading and outcome.batch
    ]
    sentence = "; ".join(clauses)
    return f"{sentence}{_ending(judged, result)}."


def _ending(judged: Sequence[ModeOutcome], result: str) -> str:
    if result == effects.FAIL:
        missed = [text for outcome in judged for text in outcome.missed]
        more = f" (and {len(missed) - 1} more)" if len(missed) > 1 else ""
        return f". {missed[0]}{more}" if missed else ": an objective is missed"
    if result != effects.INCONCLUSIVE:
        return ""
    undecided = [outcome for outcome in judged if outcome.result == effects.INCONCLUSIVE]
    if not undecided:
        return ": too few blocks to conclude anything"
    can = undecided[0].p99_detectable_pct
    blocks = undecided[0].p99_blocks
    found = "" if can is None else f" ({blocks} blocks can find {_number(can)} % in P99 here)"
    return f": too noisy or too few blocks to tell whether the objectives are met{found}"
