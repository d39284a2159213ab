"""Instances on devices of a network namespace of this test's own: apply, again, change, fail, undo to an equal host."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands, undo
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import (
    devices,
    instance,
    reconcile,
    values,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf
from tools.bandwidth.host import Host
from tools.bandwidth.namespaces import Pair

LINK = {"name": "link", "direction": "egress", "total": "1Gbit/s", "waterline": "200Mbit/s", "low": "160Mbit/s",
        "high": "800Mbit/s"}  # fmt: skip
BATCH = {"name": "batch", "pool": "link", "role": "offline", "limit": "500Mbit/s", "classids": ["10:1"]}
SERVICE = {"name": "service", "pool": "link", "prefixes": ["10.99.0.0/28", "fd99::/64"]}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with Pair("bandwidth") as pair:
        made = Host(pair, tmp_path)
        yield made
        made.clear()


def everything(host: Host, **more: Any) -> reconcile.Outcome:
    return host.apply((LINK,), (BATCH, SERVICE), (("left", "link", "auto"),), **more)


def test_apply_once_and_undo_by_the_journal_to_an_equal_host(host: Host) -> None:
    Path(host.place.state_dir).mkdir()
    before = host.picture()
    predicted = everything(host, check=True)
    assert predicted.changed
    assert host.picture() == before
    done = everything(host)
    assert (done.changed, done.after, done.variant) == (True, predicted.after, "atomic")
    assert not everything(host).changed
    assert not everything(host, check=True).changed
    assert host.picture() != before
    handlers = {**undo.Undo().handlers(), "bandwidth": lambda entry, check: reconcile.undo(entry, check, host.host)}
    outcomes = host.book.undo(handlers)
    assert [item.outcome.result for item in outcomes if item.entry.kind == "bandwidth"] == ["undone"]
    left = host.picture()
    assert left == before
    assert not os.path.ismount(host.place.bpffs)


def test_a_change_is_seen_whoever_made_it(host: Host) -> None:
    everything(host)
    generation = host.meta()["generation"]
    opened = reconcile.open_at(host.place)
    assert opened is not None
    number = generation * opened.layout.constant("CLASSES") + 16
    with contextlib.closing(opened):
        bpf.update(
            opened.maps["class_configs"], struct.pack("<I", number), bytes(opened.maps["class_configs"].value_size)
        )
    assert everything(host, check=True).changed
    assert everything(host).changed
    assert host.meta()["generation"] == 1 - generation
    assert not everything(host).changed
    host.tc(f"filter delete dev left egress pref {devices.PREFERENCE}")
    assert everything(host).changed
    assert not everything(host).changed


def test_a_tree_that_somebody_changed_is_put_right(host: Host) -> None:
    host.apply((LINK,), (BATCH, SERVICE), (("left", "link", "htb"),))
    assert host.qdiscs() == [("htb", "1:")]
    assert not host.apply((LINK,), (BATCH, SERVICE), (("left", "link", "htb"),)).changed
    host.tc("class replace dev left parent 1:1 classid 1:2 htb rate 1mbit ceil 1mbit")
    assert everything(host, check=True).changed
    assert everything(host).changed
    host.tc("class add dev left parent 1:1 classid 1:777 htb rate 1mbit ceil 1mbit")
    again = everything(host)
    assert again.lines == ("class delete dev left classid 1:777",)
    assert not everything(host).changed


def test_a_foreign_program_and_its_hook_survive(host: Host, tmp_path: Path) -> None:
    host.tc("qdisc add dev left clsact")
    foreign_filter(host, 7)
    before = host.picture()
    everything(host)
    host.apply((), (), ())
    after = host.picture()
    assert after[:4] == before[:4]


def foreign_filter(host: Host, preference: int) -> None:
    """Attach a program of somebody else's, which lets everything pass on."""
    place = ["filter", "add", "dev", "left", "egress", "pref", str(preference), "protocol", "all"]
    host.pair.run(["tc", *place, "bpf", "bytecode", "1,6 0 0 0"])


def test_a_foreign_root_qdisc_is_refused_and_nothing_changes(host: Host) -> None:
    host.tc("qdisc add dev left root handle 8: pfifo limit 17")
    Path(host.place.state_dir).mkdir()
    before = host.picture()
    with pytest.raises(
        values.BandwidthError, match="device left: has root qdisc pfifo 8:, which isn't the kernel's def"
    ):
        host.apply((LINK,), (), (("left", "link", "htb"),))
    assert host.picture() == before


def test_the_policer_needs_no_qdisc(host: Host) -> None:
    host.tc("qdisc add dev left root handle 8: pfifo limit 17")
    host.apply((LINK,), (), (("left", "link", "police"),))
    assert host.qdiscs() == [("pfifo", "8:")]


def test_another_program_at_our_preference_is_refused(host: Host) -> None:
    host.tc("qdisc add dev left clsact")
    foreign_filter(host, devices.PREFERENCE)
    before = host.picture()[:4]
    with pytest.raises(values.BandwidthError, match="another program is attached at egress protocol all pref 45056"):
        everything(host)
    assert host.picture()[:4] == before


def test_a_failure_half_way_takes_everything_back(host: Host) -> None:
    everything(host)
    before, generation = host.picture(), host.meta()["generation"]
    real, failed = host.pair.run, []

    def run(argv: Any, **options: Any) -> commands.Result:
        if "input_text" in options and "replace" in options["input_text"] and not failed:
            # The first line is carried out, the second isn't one.
            failed.append(argv)
            first = options["input_text"].splitlines()[0]
            return real(argv, **{**options, "input_text": f"{first}\nnonsense\n"})
        return real(argv, **options)

    host.host = replace(host.host, run=run)
    with pytest.raises(commands.CommandError):
        host.apply(({**LINK, "high": "900Mbit/s"},), ({**BATCH, "limit": "1Mbit/s"}, SERVICE))
    assert failed
    host.host = replace(host.host, run=real)
    assert host.picture() == before
    assert not everything(host).changed
    assert host.meta()["generation"] == generation or host.meta()["generation"] == 1 - generation


def test_a_failure_of_the_first_apply_leaves_nothing(host: Host) -> None:
    Path(host.place.state_dir).mkdir()
    before = host.picture()
    real = host.pair.run

    def run(argv: Any, **options: Any) -> commands.Result:
        text = options.get("input_text", "")
        return real(argv, **{**options, "input_text": text + "nonsense\n"} if "replace" in text else options)

    host.host = replace(host.host, run=run)
    with pytest.raises(commands.CommandError):
        everything(host)
    host.host = replace(host.host, run=real)
    assert host.picture()[:4] == before[:4]
    assert instance.read_state(host.place) is None


@pytest.mark.parametrize("plane", ["police", "htb"])
def test_two_hundred_classes_in_one_call(host: Host, plane: str) -> None:
    host.apply((LINK,), (), (("left", "link", plane),))
    classes = tuple(
        {"name": f"pod{number}", "pool": "link", "role": "offline", "limit": f"{number + 1}Mbit/s",
         "prefixes": [f"10.{number}.0.0/24"]}
        for number in range(200)
    )  # fmt: skip
    assert host.apply(classes=classes).changed
    assert not host.apply(classes=classes).changed
    host.apply(classes=classes[:100])
    state = instance.read_state(host.place)
    assert state is not None
    assert len(state.classes) == 100


def test_classes_alone_start_no_program_unless_devices_have_places_for_them(host: Host) -> None:
    host.apply((LINK,), (BATCH,), (("left", "link", "police"),))
    real, started = host.pair.run, []

    def run(argv: Any, **options: Any) -> commands.Result:
        started.append(argv)
        return real(argv, **options)

    host.host = replace(host.host, run=run)
    assert host.apply(classes=(BATCH, SERVICE)).changed
    assert not host.apply(classes=(BATCH, SERVICE)).changed
    assert started == []
    assert not everything_policed(host).changed
    host.host = replace(host.host, run=real)
    host.apply(shaped=(("left", "link", "htb"),))
    assert host.apply(classes=(BATCH,)).after["devices"]["left/egress"]["chosen"] == "htb"
    assert host.apply(classes=({**BATCH, "limit": "1Mbit/s"},)).lines


def everything_policed(host: Host) -> reconcile.Outcome:
    return host.apply((LINK,), (BATCH, SERVICE), (("left", "link", "police"),))


def test_a_device_that_goes_away_while_it_is_looked_at_is_left_out(host: Host) -> None:
    host.pair.run(["ip", "link", "add", "pod", "type", "veth", "peer", "inside"])
    there = host.pair.indexes()
    real, gone = host.pair.run, []

    def run(argv: Any, **options: Any) -> commands.Result:
        if not gone:
            gone.append(real(["ip", "link", "delete", "pod"]))
        return real(argv, **options)

    seen = devices.look_now(["left", "pod"], there, host.pair.indexes, run)
    assert list(seen) == ["left"]

    def fails(argv: Any, **options: Any) -> commands.Result:
        raise commands.CommandError("tc: not there")

    with pytest.raises(commands.CommandError, match="not there"):
        devices.look_now(["left"], there, lambda: there, fails)


def test_a_class_that_is_gone_gets_a_warning_and_its_number_is_used_again(host: Host) -> None:
    commands.run(["ip", "-n", host.pair.here, "link", "add", "pod", "type", "veth", "peer", "inside"])
    pod = {**BATCH, "name": "pod", "devices": ["pod"], "classids": []}
    host.apply((LINK,), (pod,), (("left", "link", "police"),))
    commands.run(["ip", "-n", host.pair.here, "link", "delete", "pod"])
    done = host.apply(((LINK),))
    assert done.warnings == ("class pod: device pod is gone; it is left out until it is back",)
    assert not host.apply((LINK,)).changed
    host.apply(classes=(BATCH,))
    state = instance.read_state(host.place)
    assert state is not None
    assert state.classes["batch"]["number"] == 16
