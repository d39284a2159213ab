"""What follows from cumulative counts: where the window begins, rates in it, how long a switch took."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import counts
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.counts import Window

MBIT = 1_000_000


def made(rates: dict[str, list[float]], step_s: float = 0.1, flows: Any = None, start_s: float = 50.0) -> counts.Counts:
    """Return counts of classes that have a rate in bits a second between each two readings."""
    cumulative = {}
    for name, found in rates.items():
        values = [0]
        for rate in found:
            values.append(values[-1] + round(rate * step_s / 8))
        cumulative[name] = values
    readings = len(next(iter(cumulative.values())))
    raw = {
        "mono_s": [start_s + step_s * number for number in range(readings)],
        "wall_minus_mono_s": 1000.0,
        "bytes": cumulative,
        "flows": flows or {name: [[0, 1]] for name in rates},
    }
    return counts.parse(raw)


def test_a_rate_between_readings_is_what_the_straight_line_gives() -> None:
    found = made({"bulk": [8 * MBIT] * 10})
    assert found.rate_bps(["bulk"], 50.05, 50.75) == pytest.approx(8 * MBIT)
    assert found.at("bulk", 49.0) == 0
    assert found.at("bulk", 99.0) == MBIT


def test_classes_together_are_their_sum() -> None:
    found = made({"a": [8 * MBIT] * 4, "b": [2 * MBIT] * 4})
    assert found.rate_bps(["a", "b"], 50.0, 50.4) == pytest.approx(10 * MBIT)


def test_the_window_begins_when_all_connections_are_there_and_all_classes_receive() -> None:
    flows = {"early": [[0, 0], [2, 4]], "late": [[0, 0], [5, 2], [6, 3]]}
    found = made({"early": [0, 0, 0, MBIT, MBIT, MBIT, MBIT, MBIT], "late": [0] * 5 + [MBIT] * 3}, flows=flows)
    assert counts.begin_s(found, {"early": 4, "late": 3}) == pytest.approx(50.6)


@pytest.mark.parametrize(("rates", "connections"), [([0.0] * 5, 1), ([1e6] * 5, 2)])
def test_a_class_that_never_came_is_named(rates: list[float], connections: int) -> None:
    with pytest.raises(counts.CountsError, match=r"bulk: nothing was received; see the logs"):
        counts.begin_s(made({"bulk": rates}), {"bulk": connections})


def test_a_counter_that_was_killed_is_said_so() -> None:
    with pytest.raises(counts.CountsError, match="did not come to its end"):
        counts.parse({})


def test_intervals_are_tenths_of_a_second() -> None:
    found = made({"bulk": [8 * MBIT] * 5 + [4 * MBIT] * 5})
    assert counts.intervals_bps(found, "bulk", Window(50.0, 51.0)) == pytest.approx([8 * MBIT] * 5 + [4 * MBIT] * 5)


def test_a_connection_that_was_lost_in_the_window_shows() -> None:
    found = made({"bulk": [MBIT] * 10}, flows={"bulk": [[0, 4], [7, 3]]})
    assert found.steady("bulk", Window(50.0, 50.6))
    assert not found.steady("bulk", Window(50.0, 50.9))


def test_switching_takes_until_the_next_10_ms_keep_the_bound() -> None:
    # 800 Mbit/s for 107 ms, then 160: throttled 7 ms after the wanted moment at 100 ms.
    found = made({"bulk": [800 * MBIT] * 107 + [160 * MBIT] * 200}, step_s=0.001)
    # A mean over 10 ms may hold a third of a millisecond of the old rate and still be within 15 %.
    assert counts.settled_ms(found, ["bulk"], 50.1, 160 * MBIT, True, 50.3) == 7
    assert counts.settled_ms(found, ["bulk"], 50.1, 100 * MBIT, True, 50.3) is None


def test_switching_up_is_reaching_the_bound() -> None:
    found = made({"bulk": [160 * MBIT] * 140 + [800 * MBIT] * 100}, step_s=0.001)
    took = counts.settled_ms(found, ["bulk"], 50.1, 800 * MBIT, False, 50.24)
    assert took == pytest.approx(38, abs=1)
    assert counts.settled_ms(found, ["bulk"], 50.1, 800 * MBIT, False, 50.13) is None
