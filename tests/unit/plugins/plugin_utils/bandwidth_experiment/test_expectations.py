"""What a receiver should count: payload only, by accounting, limit, waterline, offer and request."""

from __future__ import annotations

from typing import Any

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import expectations, scenarios
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.expectations import Counting
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.scenario_checks import SHAPERS

WIRE = 1448 / 1514
FRAMES = Counting("wire", {"egress": "htb", "ingress": "htb"}, 1500)


def case(name: str, case: str, **given: Any) -> dict[str, Any]:
    return scenarios.load(ROOT, given, ["*"], SHAPERS)[name]["cases"][case]


@pytest.mark.parametrize(
    ("accounting", "plane", "expected"),
    [
        ("wire", "htb", WIRE),
        ("payload", "edt", 1.0),
        ("payload", "htb", WIRE),
        ("l1", "police", 1448 / 1538),
        ("payload", "tbf", WIRE),
    ],
)
def test_htb_and_tbf_count_frames_whatever_was_asked_for(accounting: str, plane: str, expected: float) -> None:
    counting = Counting(accounting, {"egress": plane}, 1500)
    assert counting.share({}, {"direction": "egress", "protocol": "tcp"}) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("family", "more", "expected"),
    [
        ("ipv4", {"protocol": "tcp"}, 1448 / 1514),
        ("ipv6", {"protocol": "tcp"}, 1428 / 1514),
        ("ipv4", {"protocol": "udp", "message_bytes": 1448}, 1448 / 1490),
        ("ipv6", {"protocol": "udp", "message_bytes": 200}, 200 / 262),
    ],
)
def test_what_of_a_frame_is_payload_depends_on_family_protocol_and_message(
    family: str, more: dict[str, Any], expected: float
) -> None:
    assert FRAMES.share({"family": family}, {"direction": "egress", **more}) == pytest.approx(expected)


def test_a_limit_is_reached_in_payload() -> None:
    found = expectations.expected_bps(
        case("single_priority", "both"), Counting("payload", {"egress": "htb", "ingress": "edt"}, 1500)
    )
    assert found == {"bulk": pytest.approx(500e6 * WIRE), "bulk_in": 300e6}


def test_an_unlimited_class_has_no_expectation_even_where_it_offers_a_rate() -> None:
    found = expectations.expected_bps(case("multi_priority", "limits"), FRAMES)
    assert found["online"] is None
    assert found["middle"] == pytest.approx(500e6 * WIRE)


def test_requests_are_floors_and_no_figures() -> None:
    shared = case("multi_priority", "requests")
    assert set(expectations.expected_bps(shared, FRAMES).values()) == {None}
    floors = expectations.floor_bps(shared, FRAMES)
    assert floors["high"] == pytest.approx(500e6 * WIRE)
    assert floors["low"] == pytest.approx(10e6 * WIRE)


@pytest.mark.parametrize(("name", "bound"), [("online_below", 800e6), ("online_above", 160e6)])
def test_the_waterline_decides_by_frames_what_offline_work_may_have(name: str, bound: float) -> None:
    found = expectations.expected_bps(case("waterline", name), FRAMES)
    assert found["bulk"] == pytest.approx(bound * WIRE)


def test_a_payload_just_below_the_waterline_is_above_it_as_frames() -> None:
    online = {"classes": {"online": {"offered": "155Mbit/s"}}}
    near = case("waterline", "online_below", waterline={"cases": {"online_below": online}})
    assert expectations.offline_bound_bps(near, FRAMES) == 160e6
    assert expectations.offline_bound_bps(near, expectations.unshaped(1500)) == 800e6


def test_nothing_is_expected_while_the_service_comes_and_goes() -> None:
    assert expectations.expected_bps(case("waterline", "dynamic"), FRAMES) == {"online": None, "bulk": None}


def test_a_sender_that_offers_less_than_its_limit_is_expected_to_get_that() -> None:
    less = {"single_priority": {"cases": {"egress": {"classes": {"bulk": {"offered": "100Mbit/s"}}}}}}
    assert expectations.expected_bps(case("single_priority", "egress", **less), FRAMES) == {"bulk": 100e6}


def test_the_cost_of_shaping_is_measured_with_a_little_more_offered_than_passes() -> None:
    for name in ("packets", "pieces"):
        found = case("cpu_cost", name)
        (expected,) = expectations.expected_bps(found, FRAMES).values()
        assert 1.02 < found["classes"]["bulk"]["offered_bps"] / (expected or 0.0) < 1.035
        assert found["shapers"] == ["ebpf", "htb", "tbf", "none"]
