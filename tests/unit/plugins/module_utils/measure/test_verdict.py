"""The sentences that somebody reads first."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.measure import verdict
from ansible_collections.colocation.testbed.plugins.module_utils.measure.statistics import Interval

SLO = verdict.ModeOutcome(
    title="SLO-aware colocation",
    judged=True,
    batch=True,
    result="pass",
    where="",
    utilisation_baseline_pct=41.2,
    utilisation_pct=99.1,
    p99_change=Interval(1.2, 0.4, 2.1),
    p99_blocks=10,
    p99_detectable_pct=1.4,
    reasons=("P99 is fine",),
)
PLAIN = dataclasses.replace(
    SLO, title="Default colocation", judged=False, result="none", p99_change=Interval(140, 120, 160), reasons=()
)


def test_the_sentence_that_a_manager_reads():
    found = verdict.run_verdict([PLAIN, SLO], (), None)
    assert found.result == "pass"
    assert found.sentence == (
        "SLO-aware colocation raised CPU use from 41 % to 99 % and added 1.2 % (0.4 to 2.1) to P99; "
        "Default colocation added 140 %."
    )


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        (Interval(0.3, -0.4, 1.0), "left P99 unchanged within the noise (+0.3 %, -0.4 to 1.0)"),
        (
            Interval(49.8, -24.9, 198.7),
            "has a P99 that these blocks can't tell from the baseline's (+49.8 %, -25 to 199)",
        ),
        (Interval(-4.0, -5.0, -3.0), "took 4.0 % (3.0 to 5.0) off P99"),
        (Interval(140.0, 120.0, 160.0), "added 140 % (120 to 160) to P99"),
        (None, "has no P99 to compare"),
    ],
)
def test_clause_about_p99(change, clause):
    assert verdict.p99_clause(change) == clause


def test_the_objective_that_failed_is_named_and_not_put_on_a_mode_without_objectives():
    missed = ("SLO-aware colocation misses its objective for P90: +7.1 % (+6.0 to +8.2), allowed are +5 %", "another")
    found = verdict.run_verdict([PLAIN, dataclasses.replace(SLO, result="fail", missed=missed)], (), None)
    assert found.result == "fail"
    assert found.sentence.endswith(
        "Default colocation added 140 %. SLO-aware colocation misses its objective for P90: +7.1 % (+6.0 to +8.2), "
        "allowed are +5 % (and 1 more)."
    )


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (99.8, 100.0, "left CPU use at 100 % and"),
        (41.2, 99.1, "raised CPU use from 41 % to 99 % and"),
        (60.0, 30.0, "lowered CPU use from 60 % to 30 % and"),
    ],
)
def test_cpu_use_that_stays_is_not_called_raised(before, after, words):
    found = verdict.mode_sentence(dataclasses.replace(SLO, utilisation_baseline_pct=before, utilisation_pct=after))
    assert words in found


def test_open_verdict_says_what_could_be_found():
    found = verdict.run_verdict([dataclasses.replace(SLO, result="inconclusive")], (), None)
    assert found.result == "inconclusive"
    assert found.sentence.endswith("(10 blocks can find 1.4 % in P99 here).")


def test_invalid_comes_before_everything():
    reasons = [verdict.Reason("idle states were not held off", "full"), verdict.Reason("requests failed", "more")]
    found = verdict.run_verdict([SLO], reasons, "3 of 9 cells were measured")
    assert found.result == "invalid"
    assert found.sentence == "This run does not count: idle states were not held off (and 1 more)."
    assert found.reasons == ("full", "more")


def test_a_mode_that_was_not_there_is_named_before_every_other_reason():
    reasons = [verdict.Reason("requests failed", "more"), verdict.Reason("pods not injected: x", "full", foremost=True)]
    found = verdict.run_verdict([SLO], reasons, "3 of 9 cells were measured")
    assert found.sentence == "invalid: pods not injected: x (and 1 more)."
    assert found.reasons == ("full", "more")


def test_a_run_that_was_cut_short_concludes_nothing():
    found = verdict.run_verdict([SLO], (), "3 of 9 cells were measured")
    assert (found.result, "cut short: 3 of 9" in found.sentence) == ("inconclusive", True)


def test_a_run_without_objectives_passes_when_its_guards_do_and_says_so():
    found = verdict.run_verdict([PLAIN], (), None)
    assert found.result == "pass"
    assert found.sentence.startswith("Default colocation raised CPU use from 41 % to 99 % and added 140 % (120 to 160)")
    assert "no mode has objectives" in found.reasons[0]
    assert verdict.run_verdict([PLAIN], (), None, ["one baseline repeat"]).result == "inconclusive"


def test_a_baseline_alone_has_nothing_to_compare():
    assert "nothing to compare" in verdict.run_verdict([], (), None).sentence
