"""Namespaces and interfaces, from what iproute2 and the kernel print; no namespace is made here."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netns, port_queue
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.netns import Interface
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.port_queue import PortQueue

# iproute2 6.1, shortened to the keys that say something.
ADDR_SHOW = """[
{"ifindex":1,"ifname":"lo","flags":["LOOPBACK"],"mtu":65536,"link_type":"loopback","addr_info":[
  {"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host"},
  {"family":"inet","local":"198.18.0.9","prefixlen":32,"scope":"global"}]},
{},
{"ifindex":3,"ifname":"ct-br","flags":["BROADCAST","MULTICAST"],"mtu":1500,"link_type":"ether",
 "linkinfo":{"info_kind":"bridge"},"addr_info":[]},
{"ifindex":4,"link_index":2,"ifname":"ct0","flags":["NO-CARRIER","BROADCAST","MULTICAST","UP"],"mtu":9000,
 "master":"ct-br","link_type":"ether","linkinfo":{"info_kind":"veth","info_slave_kind":"bridge"},"addr_info":[
  {"family":"inet","local":"198.18.9.1","prefixlen":24,"scope":"global"},
  {"family":"inet6","local":"fe80::1","prefixlen":64,"scope":"link"}]}
]"""
QDISC_SHOW = """[{"kind":"noqueue","handle":"0:","dev":"lo","root":true,"refcnt":2,"options":{}},
{"kind":"tbf","handle":"c000:","dev":"ct0","root":true,"refcnt":2,"options":{"rate":25000000,"burst":73700,"lat":18022}},
{"kind":"clsact","handle":"ffff:","dev":"ct0","parent":"ffff:fff1","options":{}}]"""


def test_reads_interfaces():
    assert netns.parse_interfaces(ADDR_SHOW) == {
        "lo": Interface(1, None, "loopback", False, 65536, None, ("198.18.0.9/32",)),
        "ct-br": Interface(3, None, "bridge", False, 1500, None, ()),
        "ct0": Interface(4, 2, "veth", True, 9000, "ct-br", ("198.18.9.1/24",)),
    }


@given(
    st.one_of(st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(json.dumps))
)
def test_any_output_is_read_or_refused_with_a_sentence(text):
    try:
        found = netns.parse_interfaces(text)
    except netns.NetnsError as exc:
        message = str(exc)
        assert message.startswith("ip -j -d addr show: unexpected output")
    else:
        assert found == {}


@given(st.dictionaries(st.sampled_from(["ifindex", "ifname", "flags", "mtu", "link_type", "addr_info"]), st.none()))
def test_an_interface_with_missing_or_wrong_parts_is_refused(item):
    text = json.dumps([item])
    if item:
        with pytest.raises(netns.NetnsError):
            netns.parse_interfaces(text)
    else:
        assert netns.parse_interfaces(text) == {}


def test_interfaces_are_asked_for_in_the_namespace():
    asked = []

    def run(argv):
        asked.append(list(argv))
        return ADDR_SHOW if argv[0] == "ip" else QDISC_SHOW

    found = netns.read_interfaces("colocation-a", run)
    assert {name: item.qdisc and item.qdisc.kind for name, item in found.items()} == {
        "lo": None,
        "ct-br": None,
        "ct0": "tbf",
    }
    assert found["ct0"].qdisc.is_like(PortQueue(25_000_000, 512 * 1024))
    assert asked == [
        ["ip", "-n", "colocation-a", "-j", "-d", "addr", "show"],
        ["tc", "-n", "colocation-a", "-j", "qdisc", "show"],
    ]


def test_qdiscs_are_asked_for_only_where_there_is_a_bridge():
    text = json.dumps([item for item in json.loads(ADDR_SHOW) if item.get("ifname") != "ct-br"])
    found = netns.read_interfaces("colocation-a", lambda argv: {"ip": text}[argv[0]])
    assert {item.qdisc for item in found.values()} == {None}


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_output_of_tc_is_read_or_refused_with_a_sentence(text):
    try:
        found = port_queue.parse(text)
    except port_queue.PortQueueError as exc:
        message = str(exc)
        assert message.startswith("tc -j qdisc show: unexpected output")
    else:
        assert found == {}


@pytest.fixture
def roots(tmp_path):
    """A /run/netns and a /proc whose 'namespaces' are plain files."""
    run_root, proc_root = tmp_path / "netns", tmp_path / "proc"
    run_root.mkdir()
    for pid in ("1", "22", "7"):
        (proc_root / pid / "ns").mkdir(parents=True)
        (proc_root / pid / "ns/net").touch()
    (proc_root / "self").symlink_to(proc_root / "1")
    (proc_root / "cmdline").touch()
    return run_root, proc_root


def test_a_name_that_is_there_can_be_entered(roots):
    run_root, proc_root = roots
    assert not netns.exists("a", str(run_root), str(proc_root))
    (run_root / "a").touch()
    assert netns.exists("a", str(run_root), str(proc_root))


@pytest.mark.skipif(not os.path.exists("/proc/self/ns/net"), reason="needs Linux")
def test_a_plain_file_is_no_namespace(roots):
    run_root, _ = roots
    (run_root / "stale").touch()
    assert not netns.exists("stale", str(run_root))


def test_names_are_sorted_and_none_without_the_directory(roots, tmp_path):
    run_root, _ = roots
    for name in ("b", "a"):
        (run_root / name).touch()
    assert netns.names(str(run_root)) == ("a", "b")
    assert netns.names(str(tmp_path / "nothing")) == ()


def test_a_directory_that_is_none_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(netns.NetnsError, match=r"file: cannot be read: Not a directory"):
        netns.names(str(tmp_path / "file"))


def test_processes_of_a_namespace(roots):
    run_root, proc_root = roots
    os.link(proc_root / "22/ns/net", run_root / "a")
    (proc_root / "7/ns/net").unlink()
    os.link(run_root / "a", proc_root / "7/ns/net")
    assert netns.pids("a", str(run_root), str(proc_root)) == (7, 22)
    assert netns.pids("b", str(run_root), str(proc_root)) == ()


def test_tells_whether_the_directory_is_a_mount(roots):
    _, proc_root = roots
    (proc_root / "1/mountinfo").write_text("42 27 254:0 /run/netns /run/netns rw shared:1 - ext4 /dev/vda rw\n")
    assert netns.is_mount("/run/netns", str(proc_root))
    assert not netns.is_mount("/run", str(proc_root))
