# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Section bandwidth of a policy: what is refused, and what it comes to for the modules of that name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import values
from ansible_collections.colocation.testbed.plugins.module_utils.policy import (
    effects,
    kernel_values,
    translation,
    validation,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import BE, LS, NodeFacts, Workload

GOOD: dict[str, Any] = {
    "enable": True,
    "total": "1Gbit/s",
    "waterline": "200Mbit/s",
    "low": "160Mbit/s",
    "high": "800Mbit/s",
    "batch": {"limit": "500Mbit/s"},
}
NODE = NodeFacts(4, 2**33)
WORKLOADS = [Workload("kubepods/besteffort", BE), Workload("kubepods/a", LS), Workload("kubepods/b", LS)]


def policy(**changes: Any) -> dict[str, Any]:
    return {"bandwidth": {key: value for key, value in {**GOOD, **changes}.items() if value is not None}}


@pytest.mark.parametrize("engine", ["static", "agent"])
def test_a_good_section_is_good(engine: str) -> None:
    assert validation.problems(policy(), "policy", engine) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"total": 1000}, "policy.bandwidth.total: '1000': has no unit that says bits or bytes"),
        ({"total": "1Gbps"}, "policy.bandwidth.total: '1Gbps': has no unit"),
        ({"low": "0bit/s"}, "policy.bandwidth.low: '0bit/s' would let nothing pass; leave it out for no limit"),
        ({"low": "900Mbit/s"}, "policy.bandwidth: pool link: low is above high"),
        ({"low": None}, "policy.bandwidth: pool link: has a waterline but not both low and high"),
        ({"waterline": "2Gbit/s"}, "policy.bandwidth: pool link: waterline is above total"),
        ({"total": None, "continuous": True}, "policy.bandwidth: pool link: continuous needs total"),
        ({"window": "2s"}, "policy.bandwidth: pool link: window: 2s is not between 1ms and 1000ms"),
        ({"hold": 0}, "policy.bandwidth.hold: 0 is below 1"),
        ({"accounting": "frames"}, "policy.bandwidth.accounting: 'frames' is not known; allowed: wire, l1"),
        ({"waterlin": "1Mbit/s"}, "policy.bandwidth.waterlin: is not a key of this collection; did you mean waterline"),
        ({"batch": {"limt": "1Mbit/s"}}, "policy.bandwidth.batch.limt: is not a key of this collection; did you mean"),
        ({"batch": {"request": "1Mbit/s"}}, "policy.bandwidth.batch.request: has no effect without shares"),
        (
            {"shares": "weights", "batch": {"request": "600Mbit/s"}, "service": {"request": "600Mbit/s"}},
            "policy.bandwidth: pool link: requests of its classes sum to 1200000000 bit/s, above total",
        ),
        (
            {"waterline": None, "low": None, "high": None, "batch": {}},
            "policy.bandwidth: limits nothing; give low and high, or a limit in batch",
        ),
    ],
)
def test_each_fault_has_its_sentence(changes: dict[str, Any], sentence: str) -> None:
    found = validation.problems(policy(**changes), "policy", "static")
    assert len(found) == 1
    assert sentence in found[0]


def test_engines_of_koordinator_do_not_act_on_it() -> None:
    (found,) = validation.problems(policy(), "policy", "koordinator")
    assert found.startswith("policy.bandwidth: is not a section of Koordinator")


def test_a_misspelled_section_is_known_again() -> None:
    (found,) = validation.problems({"bandwith": GOOD, **policy()}, "policy", "static")
    assert "did you mean bandwidth?" in found


def test_a_nodes_entry_counts_with_what_it_is_laid_over() -> None:
    entry = {"name": "slow link", "nodeSelector": {"matchLabels": {"link": "slow"}}, "total": "100Mbit/s"}
    (found,) = validation.problems(policy(nodeConfigs=[entry]), "policy", "agent")
    assert found.startswith("policy.bandwidth.nodeConfigs[0]: pool link: waterline is above total")


def test_batch_is_offline_and_all_else_online() -> None:
    link = kernel_values.wanted(policy(), NODE, WORKLOADS).bandwidth
    assert link["pools"] == [
        {
            "name": "link",
            **{key: GOOD[key] for key in ("total", "waterline", "low", "high")},
            **{"continuous": False, "window": "10ms", "hold": 3, "accounting": "wire", "shares": "none"},
        }
    ]
    assert [(item["name"], item["role"], item["cgroups"]) for item in link["classes"]] == [
        ("batch", "offline", ["kubepods/besteffort"]),
        ("service", "online", ["kubepods/a", "kubepods/b"]),
    ]
    assert link["classes"][0]["limit"] == "500Mbit/s"


def test_a_nodes_entry_reaches_the_pool() -> None:
    entry = {"nodeSelector": {"matchLabels": {"link": "slow"}}, "high": "300Mbit/s"}
    given = policy(nodeConfigs=[entry])
    slow = NodeFacts(4, 2**33, labels={"link": "slow"})
    assert kernel_values.wanted(given, slow, WORKLOADS).bandwidth["pools"][0]["high"] == "300Mbit/s"
    assert kernel_values.wanted(given, NODE, WORKLOADS).bandwidth["pools"][0]["high"] == "800Mbit/s"


@pytest.mark.parametrize("given", [policy(enable=False), policy(enable=None), {"colocation-config": {"enable": False}}])
def test_what_is_not_enabled_wants_nothing(given: dict[str, Any]) -> None:
    assert kernel_values.wanted(given, NODE, WORKLOADS).bandwidth == {"pools": [], "classes": []}
    assert translation.link(given, "root") is None


def test_a_node_without_groups_of_version_2_says_so_for_each_key() -> None:
    node = NodeFacts(4, 2**33, lacking=dict.fromkeys(effects.BANDWIDTH_NAMES, "no cgroup2"))
    found = kernel_values.wanted(policy(), node, WORKLOADS)
    assert found.bandwidth == {"pools": [], "classes": []}
    states = {key: (state, reason) for key, state, reason in found.states}
    assert states["bandwidth.waterline"] == states["bandwidth.batch.limit"] == ("unsupported", "no cgroup2")


def test_the_matrix_has_both_groups_below_its_root() -> None:
    found = translation.link(policy(), "ct/node")
    assert found is not None
    assert [item["cgroups"] for item in found["classes"]] == [["ct/node/batch"], ["ct/node/service"]]
    assert translation.link(None, "ct") is None


RATES = st.sampled_from(["10Mbit/s", "100Mbit/s", "300Mbit/s", "900Mbit/s", "2Gbit/s"])
CLASS = st.fixed_dictionaries({}, optional={"limit": RATES, "request": RATES, "priority": st.integers(0, 2)})
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("total", "waterline", "low", "high"), RATES | st.none()),
        "continuous": st.booleans(),
        "shares": st.sampled_from(["none", "weights", "strict"]),
        "window": st.sampled_from(["1ms", "10ms", "2s"]),
        "batch": CLASS,
        "service": CLASS,
    },
)


@given(CHANGES)
def test_what_validation_lets_pass_the_modules_take(changes: dict[str, Any]) -> None:
    given = policy(**changes)
    assume(not validation.problems(given, "policy", "static"))
    link = kernel_values.wanted(given, NODE, WORKLOADS).bandwidth
    pools = {raw["name"]: values.pool(raw) for raw in link["pools"]}
    classes = {raw["name"]: values.traffic_class(raw) for raw in link["classes"]}
    values.check(values.Policy(pools, classes))
    assert pools
    assert {item.role for item in classes.values()} == {"offline", "online"}
