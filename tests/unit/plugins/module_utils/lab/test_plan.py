"""From any lab to any other: the steps, carried out on a model of the kernel, lead there and leave nothing behind."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel.netns import Interface
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.port_queue import RootQdisc
from ansible_collections.colocation.testbed.plugins.module_utils.lab import plan, topology
from ansible_collections.colocation.testbed.plugins.module_utils.lab.topology import Host, Names

NAMES = Names("colocation-", "ct")


class Kernel:
    """Just enough of iproute2 and of the journal to carry out steps; refuses what the real ones refuse."""

    def __init__(self) -> None:
        self.state: dict[str, dict[str, Interface]] = {}
        self.own: set[tuple[str, str]] = set()
        self._index = 1

    def take(self, steps) -> None:
        for step in steps:
            self.own |= set(step.records)
            (self._tc if step.argv[0] == "tc" else self._ip)(list(step.argv[1:]))
            self.own -= set(step.forgets)

    def _ip(self, words: list[str]) -> None:
        if words[:2] == ["netns", "add"]:
            assert words[2] not in self.state
            self.state[words[2]] = {"lo": Interface(1, None, "loopback", False, 65536, None, ())}
        elif words[:2] == ["netns", "delete"]:
            for name in list(self.state[words[2]]):
                self._remove(words[2], name)
            del self.state[words[2]]
        else:
            assert words[0] == "-n"
            self._inside(words[1], words[2:])

    def _tc(self, words: list[str]) -> None:
        assert (words[0], words[2], words[4]) == ("-n", "qdisc", "dev")
        space, name = self.state[words[1]], words[5]
        if words[3] == "delete":
            assert space[name].qdisc is not None
            space[name] = dataclasses.replace(space[name], qdisc=None)
            return
        given = dict(zip(words[10::2], words[11::2], strict=True))
        rate, burst, limit = (int(given[key].rstrip("bit")) for key in ("rate", "burst", "limit"))
        present = space[name].qdisc
        assert present is None or present.kind == words[9], "the kernel changes no kind in place"
        options = {"rate": rate // 8, "burst": burst - 20, "lat": round(8e6 * (limit - burst) / rate)}
        space[name] = dataclasses.replace(space[name], qdisc=RootQdisc(words[9], words[8], options))

    def _inside(self, namespace: str, words: list[str]) -> None:
        if words[:2] == ["link", "add"] and words[4] == "veth":
            assert words[5:7] == ["peer", "name"]
            far = words[9]
            near_index, far_index = self._next(), self._next()
            self._new(namespace, words[2], Interface(near_index, far_index, "veth", False, 1500, None, ()))
            self._new(far, words[7], Interface(far_index, near_index, "veth", False, 1500, None, ()))
        elif words[:2] == ["link", "add"]:
            self._new(namespace, words[2], Interface(self._next(), None, words[4], False, 1500, None, ()))
        elif words[:3] == ["tuntap", "add", "dev"]:
            assert words[4:] == ["mode", "tap"]
            self._new(namespace, words[3], Interface(self._next(), None, "tun", False, 1500, None, ()))
        elif words[:2] == ["link", "del"]:
            self._remove(namespace, words[2])
        elif words[:2] == ["link", "set"]:
            self._set(namespace, words[2], words[3:])
        else:
            assert words[0] == "addr"
            found = self.state[namespace][words[4]]
            assert (words[2] in found.addresses) == (words[1] == "del")
            left = {*found.addresses} ^ {words[2]}
            self.state[namespace][words[4]] = dataclasses.replace(found, addresses=tuple(sorted(left)))

    def _set(self, namespace: str, name: str, words: list[str]) -> None:
        found = self.state[namespace][name]
        changes = {"up": True} if words[0] == "up" else {}
        if words[0] == "mtu":
            changes = {"mtu_bytes": int(words[1])}
        if words[0] == "master":
            assert self.state[namespace][words[1]].kind == "bridge"
            changes = {"bridge": words[1]}
        assert changes, words
        self.state[namespace][name] = dataclasses.replace(found, **changes)

    def _next(self) -> int:
        self._index += 1
        return self._index

    def _new(self, namespace: str, name: str, interface: Interface) -> None:
        assert name not in self.state[namespace]
        self.state[namespace][name] = interface

    def _remove(self, namespace: str, name: str) -> None:
        gone = self.state[namespace].pop(name)
        for interfaces in self.state.values():
            for other, found in list(interfaces.items()):
                if gone.kind == found.kind == "veth" and found.index == gone.peer_index:
                    del interfaces[other]


def lab(count: int, first: int = 0, mtu_bytes: int = 1500, rate: str = "") -> topology.Topology:
    hosts = [Host(f"h{first + n}", f"198.18.0.{10 * first + n + 1}") for n in range(count)]
    return topology.build(hosts, "198.18.0.0/24", NAMES, mtu_bytes, topology.port_queue(rate, 512))


def things(kernel: Kernel) -> set[tuple[str, str]]:
    links = {("link", f"{space}/{name}") for space, found in kernel.state.items() for name in found if name != "lo"}
    return links | {("netns", name) for name in kernel.state}


def guest_lab(count: int, mtu_bytes: int = 1500, rate: str = "") -> topology.Topology:
    hosts = [Host(f"h{n}", f"198.18.0.{n + 1}") for n in range(count)]
    return topology.build_for_guests(hosts, "198.18.0.0/24", NAMES, mtu_bytes, topology.port_queue(rate, 512))


RATES = st.sampled_from(["", "1Mbit/s", "1Gbit/s", "32Gbit/s"])
MTUS = st.sampled_from([1500, 9000])
LABS = st.one_of(
    st.builds(lab, st.integers(1, 4), st.integers(0, 2), MTUS, RATES),
    st.builds(guest_lab, st.integers(1, 4), MTUS, RATES),
)


@given(st.lists(LABS, min_size=1, max_size=4))
def test_any_lab_after_any_other(labs):
    kernel = Kernel()
    for wanted in labs:
        kernel.take(plan.to_topology(wanted, kernel.state, kernel.own))
        assert plan.to_topology(wanted, kernel.state, kernel.own) == ()
        assert set(kernel.state) == set(wanted.namespaces)
        assert plan.describe_state(kernel.state, kernel.own, wanted.queue) == plan.describe(wanted)
        assert kernel.own == things(kernel), "the journal names exactly what is there"


@given(LABS, st.data())
def test_a_run_that_was_cut_short_is_continued(wanted, data):
    kernel = Kernel()
    steps = plan.to_topology(wanted, kernel.state, kernel.own)
    kernel.take(steps[: data.draw(st.integers(0, len(steps)))])
    kernel.take(plan.to_topology(wanted, kernel.state, kernel.own))
    assert plan.to_topology(wanted, kernel.state, kernel.own) == ()


def test_a_cable_that_leads_elsewhere_is_replaced():
    kernel = Kernel()
    wanted = lab(2)
    kernel.take(plan.to_topology(wanted, kernel.state, kernel.own))
    end = wanted.cables[0].near
    kernel.state[end.namespace][end.name] = dataclasses.replace(kernel.state[end.namespace][end.name], peer_index=99)
    steps = plan.to_topology(wanted, kernel.state, kernel.own)
    assert [step.text for step in steps][:3] == [
        "remove interface colocation-h0/ct0",
        "remove interface colocation-h1/ct0",
        "connect colocation-h0/ct0 with colocation-h1/ct0",
    ]


def test_a_rate_puts_two_hosts_on_a_switch_with_a_queue_towards_each():
    kernel = Kernel()
    kernel.take(plan.to_topology(lab(2), kernel.state, kernel.own))
    steps = plan.to_topology(lab(2, rate="1Gbit/s"), kernel.state, kernel.own)
    assert [step.argv for step in steps][-1] == (
        *("tc", "-n", "colocation-switch", "qdisc", "replace", "dev", "ct2", "root", "handle", "c000:"),
        *("tbf", "rate", "1000000000bit", "burst", "73728b", "limit", "524288b"),
    )
    kernel.take(steps)
    assert {name for name, found in kernel.state["colocation-switch"].items() if found.qdisc} == {"ct1", "ct2"}
    assert "colocation-switch/ct1 veth mtu=1500 queue=1000 Mbit/s and 512 KiB" in plan.describe(lab(2, rate="1Gbit/s"))
    kernel.take(plan.to_topology(lab(2), kernel.state, kernel.own))
    assert "colocation-switch" not in kernel.state


@pytest.mark.parametrize(
    "other",
    [
        None,
        RootQdisc("htb", "1:", {}),
        RootQdisc("tbf", "8001:", {"rate": 125_000_000, "burst": 73708, "lat": 3604}),
        RootQdisc("tbf", "c000:", {"rate": 12_500_000, "burst": 73708, "lat": 3604}),
        RootQdisc("tbf", "c000:", {"rate": 125_000_000, "burst": 73708, "lat": 7000}),
    ],
)
def test_a_queue_that_was_changed_by_hand_is_put_right(other):
    kernel = Kernel()
    wanted = lab(2, rate="1Gbit/s")
    kernel.take(plan.to_topology(wanted, kernel.state, kernel.own))
    inside = kernel.state["colocation-switch"]
    good = inside["ct2"].qdisc
    inside["ct2"] = dataclasses.replace(inside["ct2"], qdisc=other)
    kernel.take(plan.to_topology(wanted, kernel.state, kernel.own))
    assert inside["ct2"].qdisc == good


def test_a_port_without_a_rate_keeps_what_somebody_gave_it():
    kernel = Kernel()
    kernel.take(plan.to_topology(lab(3), kernel.state, kernel.own))
    inside = kernel.state["colocation-switch"]
    inside["ct2"] = dataclasses.replace(inside["ct2"], qdisc=RootQdisc("netem", "8001:", {}))
    assert plan.to_topology(lab(3), kernel.state, kernel.own) == ()


def test_an_address_of_an_earlier_subnet_goes():
    kernel = Kernel()
    kernel.take(plan.to_topology(lab(2), kernel.state, kernel.own))
    hosts = [Host("h0", "198.19.0.1"), Host("h1", "198.19.0.2")]
    wanted = topology.build(hosts, "198.19.0.0/24", NAMES, 1500)
    assert [step.text for step in plan.to_topology(wanted, kernel.state, kernel.own)][:2] == [
        "remove 198.18.0.1/24 from colocation-h0/ct0",
        "give colocation-h0/ct0 the address 198.19.0.1/24",
    ]


def test_guests_hang_on_a_bridge_with_an_address_of_the_machine():
    kernel = Kernel()
    kernel.take(plan.to_topology(guest_lab(2), kernel.state, kernel.own))
    inside = kernel.state["colocation-switch"]
    assert {name: found.kind for name, found in inside.items() if name != "lo"} == {
        "ct-br": "bridge",
        "ct1": "tun",
        "ct2": "tun",
    }
    assert inside["ct1"].bridge == inside["ct2"].bridge == "ct-br"
    assert inside["ct-br"].addresses == ("198.18.0.254/24",)


def test_the_tap_of_a_guest_that_is_gone_goes():
    kernel = Kernel()
    kernel.take(plan.to_topology(guest_lab(2), kernel.state, kernel.own))
    steps = plan.to_topology(guest_lab(1), kernel.state, kernel.own)
    assert [step.text for step in steps] == ["remove interface colocation-switch/ct2"]


def test_a_foreign_namespace_is_refused():
    state = {"colocation-h0": {"lo": Interface(1, None, "loopback", True, 65536, None, ())}}
    with pytest.raises(plan.ForeignError, match="network namespace colocation-h0 exists and was not made by this"):
        plan.to_topology(lab(2), state, frozenset())


def test_a_foreign_interface_in_an_own_namespace_is_refused():
    state = {"colocation-h0": {"ct0": Interface(2, None, "dummy", True, 1500, None, ())}}
    with pytest.raises(plan.ForeignError, match="interface colocation-h0/ct0 exists"):
        plan.to_topology(lab(2), state, frozenset({("netns", "colocation-h0")}))


def test_namespaces_of_others_are_not_even_looked_at():
    kernel = Kernel()
    foreign = {"lo": Interface(1, None, "loopback", True, 65536, None, ())}
    kernel.state["vpn"] = foreign
    kernel.take(plan.to_topology(lab(3), kernel.state, kernel.own))
    kernel.take(plan.to_topology(lab(1), kernel.state, kernel.own))
    assert kernel.state["vpn"] == foreign
