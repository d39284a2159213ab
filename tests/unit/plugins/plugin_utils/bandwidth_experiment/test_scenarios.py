"""Scenarios: the built-in ones hold, the user's are laid over them, and what is wrong is said in a sentence."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import scenarios
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.scenario_checks import SHAPERS

EVERYTHING = ["*.*"]


def load(given: Any = None, select: Any = None, shapers: Any = SHAPERS) -> dict[str, dict[str, Any]]:
    return scenarios.load(ROOT, {} if given is None else given, select or EVERYTHING, shapers)


def problems(given: Any, select: Any = None) -> list[str]:
    with pytest.raises(scenarios.ScenariosError) as caught:
        load(given, select)
    return list(caught.value.problems)


def own(**case: Any) -> dict[str, Any]:
    """Return a scenario of the user's with one case."""
    good = {"direction": "egress", "shapers": ["ebpf"], "classes": {"bulk": {"limit": "10Mbit/s"}}}
    return {"mine": {"title": "Mine", "description": "one case", "cases": {"one": {**good, **case}}}}


def test_the_published_reports_scenarios_are_there() -> None:
    found = load()
    assert set(found) == {
        "single_priority", "multi_priority", "waterline", "message_sizes", "class_count", "latency", "cpu_cost"
    }  # fmt: skip
    assert set(found["single_priority"]["cases"]) == {
        "egress", "ingress", "both", "ipv6", "udp", "udp_received"
    }  # fmt: skip
    sizes = {(case["classes"]["bulk"]["message_bytes"], case["classes"]["bulk"]["flows"])
             for case in found["message_sizes"]["cases"].values()}  # fmt: skip
    assert sizes == {(size, flows) for size in (512, 4096, 16384, 131072) for flows in (1, 8, 64)}
    counts = [len(case["classes"]) for case in found["class_count"]["cases"].values()]
    assert counts == [10, 50, 100, 200]
    sums = {sum(item["limit_bps"] for item in case["classes"].values())
            for case in found["class_count"]["cases"].values()}  # fmt: skip
    assert sums == {800_000_000}
    assert found["class_count"]["cases"]["200_classes"]["window_s"] == 10.0


def test_a_case_inherits_from_its_scenario_and_the_users_keys_come_last() -> None:
    given = {"message_sizes": {"cases": {"512B_x64": {"classes": {"bulk": {"limit": "250Mbit/s"}}}, "4KB_x1": None}}}
    found = load(given)["message_sizes"]["cases"]
    changed = found["512B_x64"]["classes"]["bulk"]
    assert (changed["limit_bps"], changed["flows"], changed["message_bytes"]) == (250_000_000, 64, 512)
    assert found["512B_x1"]["classes"]["bulk"]["limit_bps"] == 200_000_000
    assert "4KB_x1" not in found


@pytest.mark.parametrize(
    ("select", "shapers", "expected"),
    [
        (["latency"], ["ebpf", "none"], {"latency.offline_saturates": ["ebpf", "none"]}),
        (["waterline.online_*"], SHAPERS, {"waterline.online_below": ["ebpf"], "waterline.online_above": ["ebpf"]}),
        (["single_priority.egress"], ["tbf"], {"single_priority.egress": ["tbf"]}),
    ],
)
def test_what_is_measured_can_be_chosen(select: list[str], shapers: list[str], expected: dict[str, list[str]]) -> None:
    found = load(select=select, shapers=shapers)
    cells = {f"{name}.{case}": item["shapers"] for name, scenario in found.items()
             for case, item in scenario["cases"].items()}  # fmt: skip
    assert cells == expected


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ({"classes": {"bulk": {"limit": "10Mbps"}}}, r"mine\.cases\.one\.classes\.bulk\.limit: '10Mbps': has no unit"),
        ({"classes": {"bulk": {"limit": "0Mbit/s"}}}, "write more than 0"),
        ({"classes": {"bulk": {"limt": "1Mbit/s"}}}, r"bulk\.limt: is not known; did you mean limit\?"),
        ({"classes": {"bulk": {"message": "512"}}}, "is not a size; write a number with B, KiB or MiB"),
        ({"classes": {"bulk": {"flows": 0}}}, "is 0, so that the class sends nothing"),
        ({"classes": {"bulk": {"bursts": {"length": "1s", "pause": "1s"}}}}, "need offered, the rate"),
        ({"direction": "both"}, "has no direction; say egress or ingress"),
        ({"direction": "sideways"}, "'sideways' is not known"),
        ({"pool": {"total": "5Mbit/s"}}, "limit is above the pool's total"),
        (
            {"pool": {"total": "1Gbit/s", "waterline": "2Gbit/s", "low": "1Mbit/s", "high": "1Gbit/s"}},
            "waterline is ab",
        ),
        ({"pool": {"low": "2Mbit/s", "high": "1Mbit/s"}}, "low is above high"),
        ({"pool": {"waterline": "2Mbit/s"}}, "a waterline but not both low and high"),
        (
            {"pool": {"total": "10Mbit/s"}, "classes": {n: {"request": "6Mbit/s"} for n in ("a", "b")}},
            "requests of its classes sum to 12000000 bit/s, above total",
        ),
        ({"shapers": ["tbf"], "classes": {"a": {}, "b": {}}}, "tbf has one rate for all, but 0 classes are limited"),
        ({"shapers": ["hfsc"]}, "'hfsc' is not known; allowed: ebpf, htb, none, tbf|'hfsc' is not known"),
        ({"family": "ipv5"}, "'ipv5' is not known"),
        ({"block_factor": 0}, r"block_factor: 0 is not a whole number from 1 to 10"),
        ({"classes": {"a": {"protocol": "sctp"}}}, "'sctp' is not known"),
        ({"classes": {"a": {"protocol": "udp", "message": "2KiB"}}}, "is more than 1472 B, so that a datagram would"),
        (
            {"family": "ipv6", "classes": {"a": {"protocol": "udp", "message": "1460B"}}},
            "is more than 1452 B, so that a datagram would",
        ),
        ({"window": "10"}, r"window: '10': is not a duration"),
        ({"objectives": {"accuracy": 99}}, r"objectives\.accuracy: is not known"),
        ({"objectives": {"accuracy_pct_min": {"edt": "high"}}}, "'high' is not a number from 0 up"),
    ],
)
def test_what_is_wrong_is_said_with_its_path_and_what_is_allowed(case: dict[str, Any], sentence: str) -> None:
    import re

    found = problems(own(**case))
    assert any(re.search(sentence, text) for text in found), found
    assert all("bandwidth_matrix_scenarios.mine" in text for text in found), found


def test_a_scenario_that_lacks_its_lines_is_refused() -> None:
    assert any("title: is missing" in text for text in problems({"new": {"cases": {"a": {}}}}))
    assert problems([1]) == ["bandwidth_matrix_scenarios: is list, not a mapping of names to scenarios; write one"]


def test_a_selection_that_names_nothing_is_refused() -> None:
    (text,) = problems(None, ["singel_priority"])
    assert "'singel_priority' names no scenario or case; did you mean single_priority?" in text


def test_the_example_of_the_documentation_works_as_written() -> None:
    text = (ROOT / "docs" / "bandwidth.md").read_text(encoding="utf-8")
    (block,) = [part for part in text.split("```yaml\n")[1:] if "bandwidth_matrix_scenarios:" in part]
    given = yaml.safe_load(block.split("```")[0])
    found = load(given["bandwidth_matrix_scenarios"], given["bandwidth_matrix_select"])
    assert found["backup"]["cases"]["sixteen"]["classes"]["backup"]["flows"] == 16
    assert found["latency"]["cases"]["offline_saturates"]["classes"]["bulk"]["limit_bps"] == 800_000_000


def test_more_classes_than_possible_are_refused() -> None:
    classes = {"a": {"count": 300}, "b": {"count": 300}}
    assert any("come to 600; at most 500" in text for text in problems(own(classes=classes)))


def test_several_classes_may_be_received() -> None:
    found = load(own(direction="ingress", classes={"a": {}, "b": {}}))["mine"]["cases"]["one"]
    assert [item["direction"] for item in found["classes"].values()] == ["ingress", "ingress"]


def test_every_plane_has_a_bar_for_every_exactness() -> None:
    """One that is asked of one plane only would say nothing on hosts with the other."""
    for scenario in load().values():
        for case in scenario["cases"].values():
            for name, limit in case["objectives"].items():
                assert not isinstance(limit, dict) or {"edt", "htb"} <= set(limit), name
