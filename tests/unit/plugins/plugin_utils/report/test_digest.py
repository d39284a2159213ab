from __future__ import annotations

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import digest


@pytest.fixture(scope="session")
def digests_of(run_of):
    made = {}

    def shrink(kind):
        if kind not in made:
            made[kind] = digest.digests(run_of(kind))
        return made[kind]

    return shrink


def test_curve_goes_through_the_percentiles_of_the_summary(view_of, digests_of):
    view = view_of("good")
    curves, tails = digest.curves(view, digests_of("good"), view.conditions[0])
    for curve in curves:
        cell = view.cell(curve.mode.name, view.conditions[0])
        for tail, metric in ((0.5, "p50_us"), (0.1, "p90_us"), (0.01, "p99_us")):
            place = abs(tails - tail).argmin()
            assert curve.middle_ms[place] * 1000 == pytest.approx(cell.median(metric), rel=0.03)
            assert curve.least_ms[place] <= curve.middle_ms[place] <= curve.most_ms[place]


def test_curve_ends_where_one_request_is_left(view_of, digests_of):
    view, found = view_of("good"), digests_of("good")
    _, tails = digest.curves(view, found, view.conditions[0])
    fewest = min(item.requests for item in found)
    assert 1.0 / fewest <= tails[-1] * 1.001
    assert tails[-1] < 1.1 / fewest


def test_pairs_compare_within_a_block_and_skip_what_was_lost(view_of, digests_of):
    view, found = view_of("stolen"), digests_of("stolen")
    condition = view.conditions[0]
    p90, p99 = digest.pairs(view, found, "slo_aware", condition)
    assert (p90.label, p99.label, p90.blocks) == ("P90", "P99", (1, 2, 3))
    own = {item.record.block: item for item in digest.belonging(found, "slo_aware", condition)}
    base = {item.record.block: item for item in digest.belonging(found, "baseline", condition)}
    assert all(item.record.kept for item in own.values())
    for block, change in zip(p99.blocks, p99.change_pct, strict=True):
        assert change == pytest.approx((own[block].tail_us["p99_us"] / base[block].tail_us["p99_us"] - 1) * 100)
    assert digest.pairs(view_of("lost"), digests_of("lost"), "slo_aware", condition) == []


def test_cards_begin_with_the_typical_and_show_failed_ones(view_of, digests_of):
    view, found = view_of("stolen"), digests_of("stolen")
    cards = digest.cards(view, found, "slo_aware", view.conditions[0])
    reasons = [why for _, why in cards]
    assert reasons[:2] == ["typical", "greatest P99"]
    assert "failed" in reasons
    assert len({item.record.name for item, _ in cards}) == len(cards) <= digest.MOST_CARDS_FOR_MODE
    kept = sorted(item.tail_us["p99_us"] for item in digest.belonging(found, "slo_aware", view.conditions[0]))
    assert cards[0][0].tail_us["p99_us"] == kept[len(kept) // 2]
    assert cards[1][0].tail_us["p99_us"] == kept[-1]
