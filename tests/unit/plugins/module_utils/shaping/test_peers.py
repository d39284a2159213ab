"""HTB and TBF as they are set up: fair sizes, classes by port, and read back as written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import tree
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import BandwidthError
from ansible_collections.colocation.testbed.plugins.module_utils.shaping import ours, peers, qdiscs, wanted
from ansible_collections.colocation.testbed.plugins.module_utils.shaping.wanted import Class, Wanted

BULK = {"name": "bulk", "role": "offline", "limit": "500Mbit/s", "group": "ct/bulk", "ports": [5201]}
ONLINE = {"name": "online", "group": "ct/online", "ports": [5202, 7202]}
IN = {"name": "in", "direction": "ingress", "limit": "300Mbit/s", "address": "192.0.2.1", "ports": [5203]}


def parse(kind: str, *classes: dict[str, Any], **pool: str) -> Wanted:
    empty = dict.fromkeys(("request", "limit", "group", "address"))
    full = [{"direction": "egress", "role": "online", "priority": 0, **empty, **item} for item in classes]
    return wanted.parse({"kind": kind, "pool": pool, "classes": full, "plane": "auto", "to": None}, "ct0")


def test_sizes_are_those_of_our_own_tree() -> None:
    """Both planes that use HTB give it the same bursts, queues and quanta, or a comparison would be of those."""
    for rate in (2_000_000, 500_000_000, 1_000_000_000):
        mine = peers.HtbClass(0x10, 1, rate, rate).lines("d")
        other = tree.HtbClass(0x10, 1, rate, rate).lines("d")
        as_ours = [line.replace("b101:", "1:").replace(" add ", " replace ") for line in mine]
        assert as_ours == other


def test_a_bucket_of_tbf_takes_whole_pieces_of_the_stack() -> None:
    (line,) = peers.tbf_lines("ct0", 62_500_000)
    assert line == "qdisc add dev ct0 root handle b102: tbf rate 500000000bit burst 131072 limit 1250000"
    # 45 frames of 1514 bytes: what TCP hands down at once, headers of each frame included.
    assert peers.tbf_sizes(1000)[0] > 45 * 1514


def test_a_limit_is_both_rate_and_ceiling_and_a_request_a_rate_alone() -> None:
    requested = {"name": "high", "request": "200Mbit/s", "group": "ct/high", "ports": [5204]}
    found = peers.htb_classes(parse("htb", BULK, requested, total="1Gbit/s"), parse("htb", BULK, requested).classes)
    assert (found["bulk"].rate_bit, found["bulk"].ceil_bit) == (500_000_000, 500_000_000)
    assert (found["high"].rate_bit, found["high"].ceil_bit) == (200_000_000, 1_000_000_000)


def test_offline_classes_borrow_up_to_high_after_all_others() -> None:
    offline = {**BULK, "limit": None}
    asked = parse("htb", offline, ONLINE, total="1Gbit/s", waterline="160Mbit/s", low="160Mbit/s", high="800Mbit/s")
    found = peers.htb_classes(asked, asked.classes)
    assert (found["bulk"].rate_bit, found["bulk"].ceil_bit, found["bulk"].priority) == (160_000_000, 800_000_000, 1)
    assert (found["online"].rate_bit, found["online"].priority) == (840_000_000, 0)


def test_classes_are_found_by_a_hash_table_of_ports() -> None:
    asked = parse("htb", BULK, ONLINE)
    lines = peers.htb_lines("ct0", asked, asked.classes)
    assert (
        "filter add dev ct0 parent b101: protocol ip pref 1 u32 ht 2:51: match u32 0x1451 0xffff at 20 flowid b101:10"
        in (lines)
    )
    assert sum("0xffff at 20" in line for line in lines) == 3
    assert sum("divisor 256" in line for line in lines) == 1


def test_what_tc_prints_is_read_back_as_it_was_wanted() -> None:
    asked = parse("htb", BULK, ONLINE, total="1Gbit/s")
    shown = (
        "class htb b101:1 root rate 1Gbit ceil 1Gbit linklayer ethernet burst 250000b/1 level 7 \n"
        "class htb b101:2 parent b101:1 leaf 8001: prio 0 quantum 60000 rate 1Gbit ceil 1Gbit linklayer ethernet b\n"
        "class htb b101:10 parent b101:1 leaf 8002: prio 0 quantum 60000 rate 500Mbit ceil 500Mbit linklayer ether\n"
        "class htb b101:11 parent b101:1 leaf 8003: prio 0 quantum 60000 rate 1Gbit ceil 1Gbit linklayer ethernet \n"
    )
    filters = (
        "filter protocol ip pref 1 u32 chain 0 fh 2:51:800 order 2048 key ht 2 bkt 51 *flowid b101:10 not_in_hw \n"
        "  match 00001451/0000ffff at 20\n"
        "filter protocol ip pref 1 u32 chain 0 fh 2:52:800 order 2048 key ht 2 bkt 52 flowid b101:11 not_in_hw \n"
        "  match 00001452/0000ffff at 20\n"
        "filter protocol ip pref 1 u32 chain 0 fh 2:22:800 order 2048 key ht 2 bkt 22 *flowid b101:11 not_in_hw \n"
        "  match 00001c22/0000ffff at 20\n"
        "filter protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 link 2: not_in_hw \n"
        "  match 00000000/00000000 at 0\n"
        "    hash mask 000000ff at 20 \n"
    )
    assert peers.read_htb(shown, filters) == peers.htb_wanted(asked, asked.classes)
    assert peers.read_htb(shown, filters.replace("00001451", "00001450")) != peers.htb_wanted(asked, asked.classes)
    assert peers.read_htb(shown.replace("500Mbit ceil", "400Mbit ceil"), filters) != peers.htb_wanted(
        asked, asked.classes
    )


def test_what_arrives_is_shaped_where_it_leaves_an_intermediate_device() -> None:
    links, lines = qdiscs.lines_for(parse("tbf", IN), "")
    # Together with "up" the setting would come too late: the kernel brings the device up first.
    silent = ["link set dev ctbwifb0 addrgenmode none"] if Path("/proc/net/if_inet6").exists() else []
    assert links == ["link add ctbwifb0 type ifb", *silent, "link set dev ctbwifb0 up"]
    assert lines[0].startswith("qdisc add dev ctbwifb0 root handle b102: tbf rate 300000000bit")
    assert "qdisc add dev ct0 clsact" in lines
    assert qdiscs.lines_for(parse("tbf", IN), "clsact")[1] == [lines[0], lines[2]]


def test_only_what_is_ours_is_taken_off() -> None:
    seen = qdiscs.devices.Attached(
        2, "htb", "b101:", (), "clsact", {"egress": (), "ingress": ({"pref": 5},)}, frozenset()
    )
    there = qdiscs.There(root="b101:", ifb=True, redirected="ip")
    lines, links = qdiscs.removal("ct0", there, seen, made_hook=True)
    assert lines == ["qdisc delete dev ct0 root", "filter delete dev ct0 ingress protocol ip pref 45100"]
    assert links == ["link delete dev ctbwifb0"]
    alone = qdiscs.devices.Attached(2, "htb", "b101:", (), "clsact", {"egress": (), "ingress": ()}, frozenset())
    assert qdiscs.removal("ct0", there, alone, made_hook=True)[0][-1] == "qdisc delete dev ct0 clsact"
    assert qdiscs.removal("ct0", there, alone, made_hook=False)[0][-1].startswith("filter delete")
    assert qdiscs.removal("ct0", qdiscs.There(), seen, made_hook=False) == ([], [])


@pytest.mark.parametrize(
    ("kind", "classes", "sentence"),
    [
        ("htb", [BULK, BULK], "class bulk: is named twice"),
        ("htb", [{**BULK, "ports": []}], "has no ports, by which tc knows its packets"),
        ("htb", [{**IN, "address": None}], "is received, but nothing says by what"),
        ("tbf", [BULK, {**ONLINE, "limit": "1Mbit/s"}], "2 classes are limited for egress"),
        ("tbf", [ONLINE], "0 classes are limited for egress"),
        ("ebpf", [{**BULK, "limit": "500"}], "has no unit that says bits or bytes"),
    ],
)
def test_what_cannot_be_is_one_sentence(kind: str, classes: list[dict[str, Any]], sentence: str) -> None:
    with pytest.raises(BandwidthError, match=sentence):
        parse(kind, *classes)


def test_our_programs_know_what_is_sent_by_groups_and_what_is_received_by_the_address() -> None:
    made = ours.edit(parse("ebpf", BULK, IN, total="1Gbit/s"))(qdiscs_nothing())
    assert made.classes["bulk"].cgroups == ("ct/bulk",)
    assert made.classes["in"].prefixes == ("192.0.2.1/32",)
    assert set(made.devices) == {"ct0/egress", "ct0/ingress"}
    assert made.pools["experiment-egress"].total == 125_000_000


def test_with_another_shaper_our_programs_stay_loaded_and_shape_nothing() -> None:
    made = ours.edit(parse("htb", BULK, total="1Gbit/s"))(qdiscs_nothing())
    assert set(made.pools) == {"experiment-egress", "experiment-ingress"}
    assert not made.classes
    assert not made.devices


def qdiscs_nothing() -> Any:
    return ours.plan.Wanted({}, {}, {})


def test_directions_are_those_of_the_classes() -> None:
    both = Wanted("none", "ct0", (Class("a"), Class("b", "ingress")))
    assert both.directions == ("egress", "ingress")
    assert [item.name for item in both.of("ingress")] == ["b"]
