"""What an operator may ask for, what is refused and in which words, and what becomes of it in maps and trees."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import objects, tables, tree, values
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import BandwidthError, Class, Pool
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf_elf, bpf_layout

LINK: dict[str, Any] = {"name": "link", "direction": "egress"}
POD: dict[str, Any] = {"name": "pod", "pool": "link", "prefixes": ["10.0.0.0/24"]}
LAYOUT = bpf_layout.parse(bpf_elf.parse(objects.variants()[0][1]).layout)


def policy(*classes: Class, pools: tuple[Pool, ...] = (Pool("link", "egress", total=10**9),)) -> values.Policy:
    return values.Policy(
        {item.name: item for item in pools},
        {item.name: item for item in classes},
        {item.name: number for number, item in enumerate(pools)},
        {item.name: 16 + number for number, item in enumerate(classes)},
    )


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"total": 5}, "pool link: total: '5': has no unit that says bits or bytes"),
        ({"total": "5Mbps"}, "pool link: total: '5Mbps': has no unit"),
        ({"total": "0Mbit/s"}, "pool link: total: 0Mbit/s is not between 1B/s and 10Tbit/s"),
        ({"total": "100Tbit/s"}, "100Tbit/s is not between"),
        ({"total": "4bit/s"}, "is not a whole number of bytes per second"),
        ({"low": "2Mbit/s", "high": "1Mbit/s"}, "pool link: low is above high"),
        ({"low": "2Mbit/s"}, "pool link: has only one of low and high"),
        ({"waterline": "2Mbit/s"}, "has a waterline but not both low and high"),
        ({"waterline": "2Mbit/s", "low": "1Mbit/s", "high": "1Mbit/s", "total": "1Mbit/s"}, "waterline is above total"),
        ({"low": "1Mbit/s", "high": "3Mbit/s", "total": "2Mbit/s"}, "pool link: high is above total"),
        ({"continuous": True}, "continuous needs total and waterline"),
        ({"shares": "strict"}, "shares need total"),
        ({"weights": [1, 2]}, "weights are not three numbers"),
        ({"weights": [0, 1, 2]}, "weights are not three numbers"),
        ({"hold": 0}, "hold 0 is not between 1 and 1000"),
        ({"hysteresis_pct": 51}, "hysteresis_pct 51 is not between 0 and 50"),
        ({"overhead": -1}, "overhead -1 is not between"),
        ({"window": "2s"}, "pool link: window: 2s is not between 1ms and 1000ms"),
        ({"window": "10"}, "pool link: window: '10': is not a duration"),
        ({"name": "../x"}, r"pool '\.\./x': is not a name"),
    ],
)
def test_pools_that_make_no_sense_are_refused(more: dict[str, Any], text: str) -> None:
    with pytest.raises(BandwidthError, match=text):
        values.pool({**LINK, **more})


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"limit": "0bit/s"}, "class pod: limit: 0bit/s is not between"),
        ({"limit": "1Mbit/s", "request": "2Mbit/s"}, "class pod: request is above limit"),
        ({"priority": 3}, "class pod: priority 3 is not 0, 1 or 2"),
        ({"prefixes": []}, "class pod: has nothing that it is recognised by"),
        ({"prefixes": ["10.0.0.1/24"]}, "class pod: prefixes: '10.0.0.1/24' is not a network"),
        ({"prefixes": ["somewhere"]}, "'somewhere' is not a network"),
        ({"classids": ["0"]}, "class pod: classids: '0' is not a classid"),
        ({"classids": ["10:1:1"]}, "'10:1:1' is not a classid"),
        ({"devices": ["a b"]}, "device 'a b': is not a name"),
        ({"devices": ["-force"]}, "device '-force': is not a name"),
        ({"burst": "11s"}, "class pod: burst: 11s is not between 0ms and 10000ms"),
    ],
)
def test_classes_that_make_no_sense_are_refused(more: dict[str, Any], text: str) -> None:
    with pytest.raises(BandwidthError, match=text):
        values.traffic_class({**POD, **more})


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        ((Class("a", "none"),), "class a: pool 'none' does not exist"),
        (
            (Class("a", "link", cgroups=("x",)), Class("b", "link", cgroups=("x",))),
            "class b: cgroup x belongs to class a",
        ),
        ((Class("a", "link", classids=(1,)), Class("b", "link", classids=(1,))), "classid 1 belongs to class a"),
        ((Class("a", "link", request=6 * 10**8), Class("b", "link", request=6 * 10**8)), "requests of its classes sum"),
        (
            (Class("a", "link", prefixes=("fd00::/8",)), Class("b", "link", prefixes=("fd00::/8",))),
            "class b: prefix fd00::/8 belongs to class a; give it to one only",
        ),
    ],
)
def test_classes_that_contradict_each_other_are_refused(classes: tuple[Class, ...], text: str) -> None:
    with pytest.raises(BandwidthError, match=text):
        values.check(policy(*classes))


@given(st.lists(st.tuples(st.integers(0, 2**16 - 1), st.integers(18, 32)), min_size=2, max_size=12, unique=True))
def test_only_the_same_network_is_given_to_one_class_only(found: list[tuple[int, int]]) -> None:
    networks = [
        ipaddress.ip_network((0x0A000000 | address << 8 & 0xFFFF00, length), strict=False) for address, length in found
    ]
    classes = [Class(f"c{number}", "link", prefixes=(str(item),)) for number, item in enumerate(networks)]
    try:
        values.check(policy(*classes))
    except BandwidthError:
        assert len(set(networks)) < len(networks)
    else:
        assert len(set(networks)) == len(networks)


def test_a_network_within_another_classs_has_an_entry_of_its_own() -> None:
    item = Class("a", "link", prefixes=("10.0.0.0/8",)), Class("b", "link", prefixes=("10.1.0.0/16",))
    values.check(policy(*item))
    found = tables.tables(policy(*item), tables.Found({}, {}), LAYOUT)
    assert sorted(LAYOUT["member"].unpack(entry)["egress"] for entry in found.members["by_prefix4"].values()) == [
        16,
        17,
    ]


_NETWORK = st.builds(
    lambda address, length: ipaddress.ip_network((0x0A000000 | address << 16, length), strict=False),
    st.integers(0, 15),
    st.integers(8, 18),
)


@given(st.dictionaries(st.tuples(_NETWORK, st.sampled_from(values.DIRECTIONS)), st.just(None), max_size=10))
def test_the_smallest_network_of_a_packets_own_direction_counts(found: dict[Any, None]) -> None:
    pools = (Pool("egress", "egress"), Pool("ingress", "ingress"))
    classes = [Class(f"c{number}", way, prefixes=(str(net),)) for number, (net, way) in enumerate(found)]
    made = tables.tables(policy(*classes, pools=pools), tables.Found({}, {}), LAYOUT).members["by_prefix4"]
    entries = {ipaddress.ip_network((key[4:], key[0])): LAYOUT["member"].unpack(value) for key, value in made.items()}
    for address in map(ipaddress.ip_address, range(0x0A000000, 0x0A100000, 0x4000)):
        around = [net for net in entries if address in net]
        entry = entries[max(around, key=lambda net: net.prefixlen)] if around else {"egress": 0, "ingress": 0}
        for way in values.DIRECTIONS:
            own = [
                (net.prefixlen, 16 + place) for place, (net, its) in enumerate(found) if its == way and address in net
            ]
            assert entry[way] == max(own, default=(0, 0))[1]


def test_the_other_direction_may_use_the_same_address() -> None:
    pools = (Pool("out", "egress"), Pool("in", "ingress"))
    item = Class("a", "out", prefixes=("10.0.0.0/8",)), Class("b", "in", prefixes=("10.0.0.0/8",))
    values.check(policy(*item, pools=pools))
    found = tables.tables(policy(*item, pools=pools), tables.Found({}, {}), LAYOUT)
    (entry,) = found.members["by_prefix4"].values()
    assert LAYOUT["member"].unpack(entry) == {"egress": 16, "ingress": 17}


@pytest.mark.parametrize(("text", "number"), [("10:1", 0x100001), ("1048577", 0x100001), ("0x100001", 0x100001)])
def test_classids_as_people_write_them(text: str, number: int) -> None:
    assert values.classid(text, "here") == number


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.integers(16, 30)), st.sets(st.text(min_size=1, max_size=3)))
def test_numbers_stay_and_are_unique(numbers: dict[str, int], names: set[str]) -> None:
    unique = {name: number for number, name in {number: name for name, number in numbers.items()}.items()}
    found = values.assign(sorted(names), unique, 16, 1024, "class")
    assert set(found) == names
    assert len(set(found.values())) == len(found)
    assert all(found[name] == number for name, number in unique.items() if name in names)


def test_there_is_an_end_to_numbers() -> None:
    with pytest.raises(BandwidthError, match="class c: there is room for 2 only"):
        values.assign(["a", "b", "c"], {}, 16, 18, "class")


def test_what_the_maps_hold_of_a_pool() -> None:
    item = values.pool({**LINK, "total": "1Gbit/s", "waterline": "20MiB/s", "low": "20MiB/s", "high": "800Mbit/s"})
    found = tables.pool_values(item, LAYOUT)
    assert (found["waterline"], found["budget"], found["clear"]) == (20_971_520, 209_715, 19_922_944)
    # A step is the power of two below a sixteenth of the budget.
    assert found["step_shift"] == 13
    assert found["flags"] == LAYOUT.constant("POOL_WATERLINE")


def test_only_sources_with_members_are_asked() -> None:
    item = Class("a", "link", cgroups=("x/y",), devices=("eth9",))
    found = tables.tables(policy(item), tables.Found({"x/y": (4711, 2)}, {"eth9": 7}), LAYOUT)
    names = ("SOURCE_CGROUP", "SOURCE_DEVICE")
    assert found.order == (*(LAYOUT.constant(name) for name in names), 0, 0, 0)
    assert found.levels_mask == 1 << 2
    assert set(found.members["by_cgroup"]) == {(4711).to_bytes(8, "little")}


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        (999, "999bit"),
        (1000, "1Kbit"),
        (1500, "1500bit"),
        (167_772_160, "167772Kbit"),
        (10**9, "1Gbit"),
        (160_000_001, "160Mbit"),
    ],
)
def test_rates_as_iproute2_prints_them(bits: int, text: str) -> None:
    assert tree.rate_text(bits) == text


TAIL = "linklayer ethernet burst 250000b/1 mpu 0b cburst 250000b/1 mpu 0b level 0"
SHOWN = f"""\
class htb 1:10 parent 1:1 leaf 8001: prio 0 quantum 60000 rate 840Mbit ceil 1Gbit {TAIL}
class htb 1:1 root rate 1Gbit ceil 1Gbit {TAIL}
class htb 1:20 parent 1:2 prio 1 quantum 60000 rate 64Kbit ceil 800Mbit burst 200000b cburst 200000b
"""


def test_what_tc_says_of_classes_is_understood() -> None:
    assert tree.parse_classes(SHOWN) == {
        (0x10, "1:1", "840Mbit", "1Gbit", 0, 60000),
        (0x1, "root", "1Gbit", "1Gbit", 0, 0),
        (0x20, "1:2", "64Kbit", "800Mbit", 1, 60000),
    }


@given(st.text())
def test_no_text_of_tc_is_a_fault(text: str) -> None:
    tree.parse_classes(text)


def test_a_tree_has_a_place_for_each_kind_of_class() -> None:
    pool = Pool("link", "egress", total=125_000_000, low=20_000_000, high=100_000_000)
    classes = (
        Class("batch", "link", role="offline"),
        Class("capped", "link", role="offline", limit=10_000_000),
        Class("service", "link"),
        Class("slow", "link", limit=1_000_000),
        Class("elsewhere", "other", limit=1_000_000),
    )
    made = {item.minor: item for item in tree.tree(policy(*classes, pools=(pool, Pool("other", "egress"))), pool)}
    assert sorted(made) == [0x1, 0x2, 0x3, 0x10, 0x20, 0x21, 0x122, 0x123, 0x126]
    assert (made[0x122].parent, made[0x122].ceil_bit) == (0x2, 80_000_000)
    assert (made[0x123].parent, made[0x123].ceil_bit) == (0x3, 80_000_000)
    assert (made[0x126].parent, made[0x126].ceil_bit) == (0x1, 8_000_000)
    # A rate is what HTB gives in any case: small, so that the parents' ceilings hold.
    assert all(item.rate_bit <= 64_000 for minor, item in made.items() if minor > 0x10)
    parents = {item.parent for item in made.values()}
    assert all(not item.leaf for minor, item in made.items() if minor in parents)
    assert all(item.leaf for minor, item in made.items() if minor not in parents)


def test_only_what_differs_is_written() -> None:
    pool = Pool("link", "egress", total=125_000_000)
    wanted = tree.tree(policy(pools=(pool,)), pool)
    present = {item.shown() for item in wanted}
    assert tree.missing(wanted, present, "eth0") == []
    foreign = (0x777, "1:1", "1Mbit", "1Mbit", 0, 1500)
    assert tree.missing(wanted, present | {foreign}, "eth0") == ["class delete dev eth0 classid 1:777"]
