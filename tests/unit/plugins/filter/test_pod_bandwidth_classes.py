"""Annotations of pods as Kubernetes and oncn-bwm read them, and what is refused in one sentence."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.filter.pod_bandwidth_classes import (
    FilterModule,
    pod_bandwidth_classes,
)
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import pods, values

UID = "0f5a1b2c-3d4e-5f60-7182-93a4b5c6d7e8"
EGRESS, INGRESS = "kubernetes.io/egress-bandwidth", "kubernetes.io/ingress-bandwidth"
ONCN = "oncn-bwm.openeuler.org/egress-bandwidth"


def pod(annotations: dict[str, str], **more: Any) -> dict[str, Any]:
    """Return a pod as the API server tells it, as far as it is read."""
    status = {"phase": "Running", "qosClass": "BestEffort", "podIPs": [{"ip": "10.1.0.7"}, {"ip": "fd00::7"}]}
    return {
        "metadata": {
            "namespace": "shop",
            "name": "web",
            "uid": UID,
            "annotations": annotations,
            **more.pop("about", {}),
        },
        "spec": {"nodeName": "worker1", **more.pop("spec", {})},
        "status": {**status, **more},
    }


def made(*found: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return FilterModule().filters()["pod_bandwidth_classes"](found, **{"egress": "up", "ingress": "down", **options})


def test_both_directions_of_a_pod() -> None:
    assert made(pod({EGRESS: "10M", INGRESS: "20M"})) == [
        {"name": "shop.web:egress", "pool": "up", "role": "offline", "limit": "10000000bit/s",
         "prefixes": ["10.1.0.7/32", "fd00::7/128"]},
        {"name": "shop.web:ingress", "pool": "down", "role": "offline", "limit": "20000000bit/s",
         "prefixes": ["10.1.0.7/32", "fd00::7/128"]},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "limit_bytes"), [("10M", 1_250_000), ("1k", 125), ("1Mi", 131_072), ("1e6", 125_000), ("8001", 1000)]
)
def test_kubernetes_counts_bits_in_powers_of_a_thousand(text: str, limit_bytes: int) -> None:
    (item,) = made(pod({EGRESS: text}))
    assert values.traffic_class(item).limit == limit_bytes


@pytest.mark.parametrize("text", ["1P", "10T", "20T"])
def test_more_than_any_link_has_is_the_most_that_a_class_takes(text: str) -> None:
    (item,) = made(pod({EGRESS: text}))
    assert values.traffic_class(item).limit == 1_250_000_000_000


def test_a_label_instead_of_an_annotation_is_told() -> None:
    """As in issue 1 of github.com/Pharb/kubernetes-iperf3: Kubernetes and network plugins pass over it."""
    with pytest.raises(
        AnsibleFilterError, match=r"pod shop/web: kubernetes\.io/egress-bandwidth is a label, which nobody"
    ):
        made(pod({}, about={"labels": {EGRESS: "1M"}}))
    assert len(made(pod({EGRESS: "1M"}, about={"labels": {EGRESS: "1M"}}))) == 1


def test_oncn_counts_in_powers_of_1024_and_has_requests() -> None:
    (item,) = made(pod({ONCN: '{"request": "600Mb", "limit": "800M", "priority": "1"}'}, qosClass="Burstable"))
    found = values.traffic_class(item)
    assert (found.request, found.limit, found.priority, found.role) == (600 << 17, 800 << 17, 1, "online")


def test_a_priority_above_the_highest_is_the_highest() -> None:
    assert made(pod({ONCN: '{"limit": "1m", "priority": 7}'}))[0]["priority"] == 2


def test_a_pod_in_the_hosts_network_is_known_by_its_group() -> None:
    (item,) = made(pod({EGRESS: "10M"}, spec={"hostNetwork": True}))
    assert item["pods"] == [UID]
    assert "prefixes" not in item
    assert values.traffic_class(item).pods == (UID,)


def test_the_hosts_end_of_a_link_is_a_member_too() -> None:
    (item,) = made(pod({EGRESS: "10M"}), devices={UID: "veth7"})
    assert item["devices"] == ["veth7"]


@pytest.mark.parametrize(
    ("found", "options"),
    [
        (pod({}), {}),
        (pod({EGRESS: "10M"}), {"egress": ""}),
        (pod({EGRESS: "10M"}), {"node": "worker2"}),
        (pod({EGRESS: "10M"}, phase="Succeeded"), {}),
        (pod({EGRESS: "10M"}, podIPs=[], phase="Pending"), {}),
        (pod({}, about={"annotations": None}), {}),
    ],
)
def test_no_class_where_none_is_asked_for_or_possible(found: dict[str, Any], options: dict[str, Any]) -> None:
    assert made(found, **options) == []


def test_only_the_pods_of_a_node() -> None:
    assert len(made(pod({EGRESS: "10M"}), node="worker1")) == 1


@pytest.mark.parametrize(
    ("annotations", "text"),
    [
        ({EGRESS: "ten"}, "pod shop/web: annotation kubernetes.io/egress-bandwidth: 'ten': is not a quantity"),
        ({EGRESS: "10K"}, "'10K': 'K' is not a suffix of a quantity; write k"),
        ({EGRESS: "100"}, "'100' is not between 1k and 1P bits a second"),
        ({EGRESS: "2P"}, "is not between 1k and 1P"),
        ({EGRESS: "-5M"}, "is not between 1k and 1P"),
        ({EGRESS: "10M", ONCN: "{}"}, "pod shop/web: has both kubernetes.io/egress-bandwidth and oncn-bwm"),
        ({ONCN: "600Mb"}, "annotation oncn-bwm.openeuler.org/egress-bandwidth: is not JSON"),
        ({ONCN: "[]"}, "is not an object with request, limit and priority only"),
        ({ONCN: '{"limit": "1Mb", "burst": "1Mb"}'}, "is not an object with request, limit and priority only"),
        ({ONCN: '{"limit": "1Gb"}'}, "limit '1Gb' is not a number with Mb"),
        ({ONCN: '{"limit": "0Mb"}'}, "limit '0Mb' is not a number with Mb"),
        ({ONCN: '{"limit": "1Mb", "priority": -1}'}, "priority -1 is not a number from 0"),
        ({ONCN: '{"limit": "1Mb", "request": "2Mb"}'}, "class shop.web:egress: request is above limit"),
    ],
)
def test_annotations_that_cannot_be_honoured_are_refused(annotations: dict[str, str], text: str) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        made(pod(annotations))
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("raw", [{}, {"metadata": {}}, {"metadata": 7}, {"metadata": {"uid": UID, "name": "x"}}])
def test_what_is_no_pod_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(AnsibleFilterError, match="is not as the API server tells it"):
        pod_bandwidth_classes([raw])


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(AnsibleFilterError, match="pod shop/web: its address is not one"):
        made(pod({EGRESS: "10M"}, podIPs=[{"ip": "somewhere"}]))


def test_one_address_as_older_servers_tell_it() -> None:
    (item,) = made(pod({EGRESS: "10M"}, podIPs=None, podIP="10.1.0.8"))
    assert item["prefixes"] == ["10.1.0.8/32"]


@given(
    st.from_regex(r"[a-z0-9][a-z0-9-]{0,62}", fullmatch=True),
    st.from_regex(r"[a-z0-9][a-z0-9.-]{0,252}", fullmatch=True),
)
def test_every_name_of_a_pod_gives_a_name_of_a_class(namespace: str, name: str) -> None:
    found = pods.Pod(namespace, name, UID, addresses=("10.1.0.7",), annotations={EGRESS: "1M", INGRESS: "1M"})
    first, second = pods.classes(found, {"egress": "up", "ingress": "down"})
    assert values.check_name(first["name"], "class") != values.check_name(second["name"], "class")


@given(st.dictionaries(st.sampled_from([EGRESS, INGRESS, ONCN]), st.text() | st.integers().map(str)))
def test_no_annotation_is_a_fault(annotations: dict[str, str]) -> None:
    said = "pod shop/web"
    try:
        made(pod(annotations))
    except AnsibleFilterError as exc:
        said = str(exc)
    assert "shop/web" in said or "shop.web" in said
